"""`unprior score` and `unprior ask` on a real small model, in process and as a command."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tiny_models
from small_tables import synthetic
from unprior import ScoreTable, SelectivePriorCalibrator, read_scores
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.tokens import PromptEncoder
from unprior.scores.provenance import Provenance
from unprior.scoring.benchmark import Scored
from unprior.scoring.run import Summary


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("llava"))


@pytest.fixture
def questions(tmp_path: Path) -> str:
    generator = np.random.default_rng(0)
    rows = []
    for index in range(4):
        Image.fromarray(generator.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(tmp_path / f"{index}.png")
        rows.append({"image": f"{index}.png", "question": "Is it red?", "id": f"q{index}"})
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(tmp_path / "mine.jsonl")


def score(run: Callable, model: Path, questions: str, *more: str) -> Any:
    """Score briefly: random models never end an answer by themselves."""
    common = ("--out", "scored", "--device", "cpu", "--max-new-tokens", "8")
    return run("score", "--model", model, "--benchmark", questions, *common, *more)


def test_score_writes_a_table_and_resumes(run: Callable, model: Path, questions: str) -> None:
    first = score(run, model, questions)
    assert (first.code, first.out) == (
        0,
        "4 of 4 examples scored (5 results computed now, 0 stored before) → scored/scores.parquet\n",
    )
    table = read_scores("scored/scores.parquet", require_answers=False)
    assert table.column("example_id") == ["q0", "q1", "q2", "q3"]
    assert set(table.column("model")) == {str(model)}
    again = score(run, model, questions, "--json").json
    assert (again["examples"], again["computed"], again["reused"], again["failures"]) == (4, 0, 5, [])


def test_answers_cut_off_while_thinking_are_counted(
    run: Callable, model: Path, questions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random model does not think of itself, so its words get the tag with which others begin."""
    own = PromptEncoder.written
    monkeypatch.setattr(PromptEncoder, "written", lambda encoder, tokens: "<think>" + own(encoder, tokens))
    thinking = model
    result = score(run, thinking, questions, "--max-new-tokens", "5")
    assert result.code == 0
    assert result.err.count("4 of 4 answers were cut off while the model was thinking") == 1
    assert "Let it write more with --max-new-tokens" in result.err
    table = read_scores("scored/scores.parquet", require_answers=False)
    assert table.column("original") == [None] * 4
    again = score(run, thinking, questions, "--max-new-tokens", "5", "--json").json
    assert (again["cut_off"], again["computed"]) == (4, 0)
    longer = score(run, thinking, questions, "--max-new-tokens", "6", "--json").json
    assert longer["computed"] == 5  # another length is another answer
    converted = run("convert", "scored/scores.parquet", "--out", "again.jsonl")
    assert "4 of 4 answers were cut off" in converted.err
    asked = run(
        "ask", tmp_path / "0.png", "Is it red?", "--model", thinking, "--device", "cpu", "--max-new-tokens", "5"
    )
    assert "1 of 1 answers were cut off" in asked.err
    monkeypatch.setattr(PromptEncoder, "written", own)
    assert score(run, model, questions, "--max-new-tokens", "7", "--json").json["cut_off"] == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_told_to_stop_says_so_and_goes_on_later(
    run: Callable, model: Path, questions: str, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    answer = TransformersEngine.answer_batch

    def told_to_stop(engine: TransformersEngine, queries: Sequence[Query]) -> Any:
        answered = answer(engine, queries)
        asked.append(len(queries))
        if len(asked) == 2:
            os.kill(os.getpid(), number)
        return answered

    asked: list[int] = []
    monkeypatch.setattr(TransformersEngine, "answer_batch", told_to_stop)
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it
    stopped = score(run, model, questions, "--batch-size", "1")
    signal.signal(signal.SIGINT, heeded)
    assert (stopped.code, stopped.out) == (code, "")
    assert stopped.err.endswith("Stopped. What was scored is stored; the same command goes on from there.\n")
    assert sorted(path.name for path in Path("scored").iterdir() if "store" not in path.name) == ["run.toml"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    again = score(run, model, questions, "--batch-size", "1", "--json").json
    assert (again["examples"], again["reused"], again["failures"]) == (4, 1, [])


def test_a_damaged_result_is_computed_again(run: Callable, model: Path, questions: str) -> None:
    assert score(run, model, questions).code == 0
    before = read_scores("scored/scores.parquet", require_answers=False)
    with closing(sqlite3.connect("scored/store.sqlite")) as store, store:
        store.execute("UPDATE result SET value = substr(value, 1, 9) WHERE rowid <= 2")
    again = score(run, model, questions)
    assert again.code == 0
    assert "(2 results computed now, 3 stored before)" in again.out
    assert "scored/store.sqlite: 2 stored results were damaged and have been computed again" in again.err
    after = read_scores("scored/scores.parquet", require_answers=False)
    assert after.column("example_id") == before.column("example_id")
    np.testing.assert_allclose(after.image_scores, before.image_scores, atol=1e-4)
    assert "damaged" not in score(run, model, questions).err


def test_images_whose_names_no_file_can_have_fail_alone(run: Callable, model: Path, questions: str) -> None:
    lines = Path(questions).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for row, name in zip(rows[1:], ("nul\0.png", "x" * 300, "\x1b[31mred\x07.png"), strict=True):
        row["image"] = name
    Path(questions).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = score(run, model, questions)
    assert (result.code, result.out[:24]) == (1, "1 of 4 examples scored (")
    assert [f"failed: q{index}: " in result.err for index in range(4)] == [False, True, True, True]
    assert "\x1b" not in result.err
    assert "\0" not in result.err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are those of POSIX")
def test_a_pipe_or_a_device_as_an_image_fails_alone(run: Callable, model: Path, questions: str) -> None:
    folder = Path(questions).parent
    for name in ("1.png", "2.png"):
        (folder / name).unlink()
    os.mkfifo(folder / "1.png")
    (folder / "2.png").symlink_to("/dev/zero")
    failures = {each["example"]: each["reason"] for each in score(run, model, questions, "--json").json["failures"]}
    assert list(failures) == ["q1", "q2"]
    assert "this is a pipe, not an image file" in failures["q1"]
    assert "this is a device, not an image file" in failures["q2"]


def test_limit_shards_and_views(run: Callable, model: Path, questions: str) -> None:
    assert score(run, model, questions, "--limit", "3", "--json").json["examples"] == 3
    parts = [score(run, model, questions, "--shard", f"{part}/2", "--json").json for part in (1, 2)]
    assert [part["examples"] for part in parts] == [2, 2]
    assert [part["computed"] for part in parts] == [0, 1]  # the first three were stored by the run before
    whole = read_scores("scored/scores.parquet", require_answers=False)
    assert whole.column("example_id") == ["q0", "q1", "q2", "q3"]  # parts add up
    assert score(run, model, questions, "--views", "white,black", "--json").code == 0
    views = read_scores("scored/scores.parquet", require_answers=False).column("views")
    assert set(dict(views[0])) == {"white", "black"}


def test_failures_are_listed_and_exit_with_one(run: Callable, model: Path, questions: str) -> None:
    Path(questions).with_name("1.png").write_bytes(b"broken")
    Path(questions).with_name("3.png").unlink()
    result = score(run, model, questions)
    assert result.code == 1
    assert result.out.startswith("2 of 4 examples scored")
    assert "failed: q1: " in result.err
    assert "not a readable image" in result.err
    assert "failed: q3: " in result.err
    assert len(read_scores("scored/scores.parquet", require_answers=False)) == 2
    failures = score(run, model, questions, "--json").json["failures"]
    assert [failure["example"] for failure in failures] == ["q1", "q3"]


def test_nothing_scored_writes_no_table(run: Callable, model: Path, questions: str) -> None:
    for index in range(4):
        Path(questions).with_name(f"{index}.png").write_bytes(b"broken")
    result = score(run, model, questions)
    assert (result.code, result.out) == (
        1,
        "0 of 4 examples scored (2 results computed now, 0 stored before) → no score table\n",
    )
    assert not Path("scored/scores.parquet").exists()


def test_missing_images_are_named_before_the_model_is_loaded(run: Callable, model: Path, questions: str) -> None:
    for index in range(3):
        Path(questions).with_name(f"{index}.png").unlink()
    some = score(run, model, questions)
    assert some.code == 1
    lines = some.err.splitlines()
    assert lines[0] == "warning: 3 of 4 images of mine are missing:"
    assert [line.rpartition("/")[2] for line in lines[1:4]] == ["0.png", "1.png", "2.png"]
    Path(questions).with_name("3.png").unlink()
    none = run("score", "--model", "no-such-model", "--benchmark", questions, "--out", "other")
    none.refused("4 of 4 images of mine are missing", "0.png", "3.png", "Put them there")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A small CDH-Bench in a data directory: two pairs."""
    folder = tmp_path / "data" / "cdh-bench"
    lines = []
    for number in (1, 222):
        images = folder / "images" / "Color" / f"Pair_{number}"
        images.mkdir(parents=True)
        for side, colour in (("counterfactual", (90, 0, 90)), ("commonsense", (0, 120, 0))):
            Image.new("RGB", (40, 40), colour).save(images / f"{side}.png")
        right = {"counterfactual_gt": "A" if number == 222 else "B", "commonsense_gt": "A"}
        lines.append({
            "category": "Attribute Anomalies", "subcategory": "Color", "pair_id": f"Pair {number}",
            "pair_name": "purple vs green",
            "multiple_choice": {"question": "Which color?", "options": ["A. Green", "B. Purple", "C. Red", "D. Blue"]}
            | right,
            "direct_qa": {"question": "Is it green, not purple?", "counterfactual_gt": "no", "commonsense_gt": "yes"},
        })  # fmt: skip
    (folder / "benchmark.jsonl").write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("variant", "rows", "answers"),
    [
        ("standard", 8, {("1", "cf", "mc"): "B", ("1", "cf", "qa"): "no"}),
        ("order-1230", 4, {("1", "cf", "mc"): "A", ("1", "cs", "mc"): "D"}),
        ("reject-second-atypical-first", 4, {("1", "cf", "qa"): "yes", ("222", "cf", "qa"): "yes"}),
        ("claim-order", 8, {}),
    ],
)
def test_variants_are_scored(
    run: Callable, model: Path, pairs: Path, variant: str, rows: int, answers: dict[tuple[str, str, str], str]
) -> None:
    result = score(run, model, "cdh-bench", "--variant", variant)
    assert result.code == 0
    assert "512" not in result.err
    table = read_scores("scored/scores.parquet")
    assert len(table) == rows
    assert set(table.column("benchmark")) == {"cdh-bench" if variant == "standard" else f"cdh-bench-{variant}"}
    found = dict(
        zip(
            zip(map(str, table.column("pair_id")), table.column("side"), table.column("task"), strict=True),
            table.column("answer"),
            strict=True,
        )
    )
    assert found | answers == found


def test_a_variant_that_is_none(run: Callable, model: Path, pairs: Path, questions: str) -> None:
    score(run, model, "cdh-bench", "--variant", "order-0123").refused("--variant order-0123", "order-1230", "forms")
    score(run, model, questions, "--variant", "forms").refused("no multiple-choice questions")


def test_qwen_sees_the_size_of_the_paper_unless_told_otherwise(
    run: Callable, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = []
    monkeypatch.setattr(
        "unprior.scoring.benchmark.score_benchmark", lambda *_, resize, **__: sides.append(resize) or _nothing_scored()
    )
    qwen = tiny_models.build("qwen3_vl", tmp_path / "qwen")
    said = score(run, qwen, "cdh-bench").err
    assert "Images of cdh-bench are brought to 512×512 for qwen3_vl, as in the paper" in said
    assert "512" in score(run, qwen, "cdh-bench", "--variant", "forms", "--out", "forms").err
    assert score(run, qwen, "cdh-bench", "--resize", "64").err == ""
    assert score(run, qwen, "cdh-bench", "--resize", "0").err == ""
    assert sides == [512, 512, 64, None]


def _nothing_scored() -> Scored:
    return Scored(Summary(0, 0, 0, ()), None)


@pytest.mark.parametrize(
    ("more", "fragment"),
    [
        (["--shard", "3/2"], "--shard 3/2: give part and number of parts as i/n"),
        (["--shard", "two"], "--shard two"),
        (["--shard", "5/9"], "this part is empty"),
        (["--views", "grey"], "unknown view grey"),
        (["--dtype", "int8"], "--dtype int8: no such precision"),
    ],
)
def test_wrong_options_are_named(run: Callable, model: Path, questions: str, more: list[str], fragment: str) -> None:
    score(run, model, questions, *more).refused(fragment)


def test_wrong_models_and_files_are_named(run: Callable, model: Path, questions: str, tmp_path: Path) -> None:
    score(run, tmp_path, questions).refused("cannot be loaded")
    score(run, model, "nowhere.jsonl").refused("nowhere.jsonl: no such file of questions")


def test_without_torch_the_remedy_is_named(
    run: Callable, model: Path, questions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    score(run, model, questions).refused("pip install 'unprior[hf]'")


@pytest.fixture
def picture(tmp_path: Path) -> str:
    Image.new("RGB", (40, 40), (200, 30, 30)).save(tmp_path / "picture.png")
    return str(tmp_path / "picture.png")


@pytest.fixture
def calibrator(tmp_path: Path) -> str:
    SelectivePriorCalibrator().fit(synthetic(seed=0)).save(tmp_path / "calibrator.json")
    return str(tmp_path / "calibrator.json")


def ask(run: Callable, model: Path, picture: str, *more: str) -> Any:
    return run("ask", picture, "How many fingers?", "--model", model, "--device", "cpu", *more)


def test_ask_shows_scores_and_an_explanation(run: Callable, model: Path, picture: str, calibrator: str) -> None:
    forced = ("--calibrator", calibrator, "--force")
    result = ask(run, model, picture, "--options", "four|five|six|seven", *forced)
    assert result.code == 0
    assert "Candidate" in result.out
    assert "B. five" in result.out
    assert re.search(
        r"The model answered ([A-D]\. (four|five|six|seven)|nothing that names a candidate) \(", result.out
    )
    assert result.out.strip().split("\n")[-1].startswith(("Kept", "Changed"))
    record = ask(run, model, picture, "--options", "four|five|six|seven", *forced, "--json").json
    assert [row["candidate"] for row in record["candidates"]] == ["A", "B", "C", "D"]
    assert all(row["image_score"] < 0 and row["prior_score"] < 0 for row in record["candidates"])
    assert abs(sum(row["corrected_score"] for row in record["candidates"])) < 1e-6
    assert record["explanation"].startswith(("Kept", "Changed"))


def test_ask_gives_the_engine_s_scores_and_minds_whose_calibrator_it_is(
    run: Callable, model: Path, picture: str, calibrator: str
) -> None:
    ask(run, model, picture, "--calibrator", calibrator).refused("model synthetic, here ", "--force")
    result = ask(run, model, picture, "--resize", "20", "--calibrator", calibrator, "--force", "--json")
    engine = TransformersEngine(model, device="cpu")
    image = Image.open(picture).convert("RGB").resize((20, 20), Image.Resampling.LANCZOS)
    text = engine.layout.user_text("How many fingers?", ("yes", "no"), None)
    for name, shown in (("image_score", image), ("prior_score", None)):
        expected = engine.score_candidates(shown, text, (" yes", " no")).scores
        assert [row[name] for row in result.json["candidates"]] == pytest.approx(expected, abs=1e-4)
    assert "model synthetic, here " in result.err


def test_ask_shows_the_image_at_the_size_that_the_calibrator_was_fitted_at(
    run: Callable, model: Path, picture: str, tmp_path: Path
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    Image.fromarray(noise).save(picture)
    table = synthetic(seed=0)
    made = ScoreTable(table.arrow, provenance=[Provenance(model=str(model), image_size=20)])
    SelectivePriorCalibrator().fit(made).save(tmp_path / "twenty.json")

    def scores(*more: str) -> tuple[list[float], str]:
        told = ask(run, model, picture, "--calibrator", str(tmp_path / "twenty.json"), "--json", *more)
        return [row["image_score"] for row in told.json["candidates"]], told.err

    fitted, said = scores()
    assert fitted == scores("--resize", "20")[0]
    assert "The image is brought to 20×20, as those that the calibrator was fitted on" in said
    ask(run, model, picture, "--calibrator", str(tmp_path / "twenty.json"), "--resize", "0").refused(
        "image size 20×20, here as stored"
    )
    assert fitted != scores("--resize", "0", "--force")[0]


def test_pairs_are_checked_before_the_model_is_loaded(run: Callable, tmp_path: Path) -> None:
    row = {"image": "0.png", "question": "How many?", "options": ["five", "six"], "answer": "six", "split": "dev"}
    rows = [
        row | {"pair": 1, "side": "cf"}, row | {"pair": 1, "side": "cs", "options": ["six", "five"]},
        row | {"pair": 2, "side": "cs"}, row | {"pair": 2, "side": "cs", "image": "1.png"},
        row | {"pair": 3, "side": "cf"}, row | {"pair": 3, "side": "cs"}, row | {"pair": 3, "side": "cs"},
    ]  # fmt: skip
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    for command in ("score", "run"):
        more = ("--model", "not/there", "--benchmark", "mine.jsonl", "--out", "scored")
        refused = run(command, *more)
        if command == "score":
            refused.refused(
                "mine.jsonl: 3 pairs are not sound",
                "lines 1, 2: pair 1 (mc): has other options",
                "lines 3, 4: pair 2 (mc): has no counterfactual (cf) side",
                "lines 5, 6, 7: pair 3 (mc): the same example stands there more than once",
            )
        assert refused.code == 2
    assert not Path("scored/store.sqlite").exists()


def test_tables_say_how_they_were_made(run: Callable, model: Path, questions: str) -> None:
    score(run, model, questions, "--resize", "24")
    (made,) = read_scores("scored/scores.parquet", require_answers=False).provenance
    engine = TransformersEngine(model, device="cpu", max_new_tokens=8)
    assert (made.model, made.benchmark, made.image_size, made.prior) == (str(model), "mine", 24, "text")
    assert (made.fingerprint, made.precision) == (engine.fingerprint, "float32")
    assert made.weights == engine.identity["weights"]
    assert set(made.versions) == {"torch", "transformers", "pillow", "unprior"}
    assert len(made.questions or "") == 64
    assert (made.date or "").startswith("20")


def test_little_probability_on_the_candidates_is_said(run: Callable, model: Path, picture: str, questions: str) -> None:
    assert "the candidates hold only" in ask(run, model, picture).err
    assert "the candidates hold only" in score(run, model, questions).err


def test_plain_progress_lines(run: Callable, model: Path, questions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unprior.cli.progress._PLAIN_SECONDS", 0.0)
    lines = score(run, model, questions, "--batch-size", "1").err.split("\n")
    assert lines[0].startswith("scored 0 of 4 (0.0/s")
    assert any(re.fullmatch(r"scored 3 of 4 \(\d+\.\d/s, \d+ s left\)", line) for line in lines)


def test_ask_without_calibrator_or_options(run: Callable, model: Path, picture: str) -> None:
    result = ask(run, model, picture)
    assert result.code == 0
    assert "yes" in result.out
    assert "`unprior run` and `unprior fit` make one" in result.out
    record = ask(run, model, picture, "--options", "a, b", "--json").json
    assert [row["text"] for row in record["candidates"]] == ["a", "b"]
    assert record["explanation"] is None


@pytest.mark.parametrize("options", ["one", "a|a", "|"])
def test_ask_needs_different_options(run: Callable, model: Path, picture: str, options: str) -> None:
    ask(run, model, picture, "--options", options).refused("give 2 to 26 different answers")


def test_ask_names_a_broken_image(run: Callable, model: Path, tmp_path: Path) -> None:
    ask(run, model, str(tmp_path / "gone.png")).refused("gone.png: no such image")
