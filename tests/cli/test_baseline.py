"""`unprior baseline` and `unprior run --baselines`, on small real models."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import tiny_models
from hand_questions import write_benchmark
from unprior.baselines import run as run_module
from unprior.baselines import trial
from unprior.baselines.answers import read_left_out
from unprior.baselines.controls import CONTROLS
from unprior.baselines.mfcd import MFCD
from unprior.baselines.revis.data import microworld_data
from unprior.cli import main
from unprior.runs import score as score_module

FEW = ("--cost-examples", 1, "--max-new-tokens", 4)
"""Random models never end an answer by themselves."""
pytestmark = pytest.mark.usefixtures("_few_studies")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("llava"), size="deep")


@pytest.fixture(scope="module")
def compared(small_world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and terminal output of every method on the embedded model; REVIS learns from less than usual."""
    out, printed = tmp_path_factory.mktemp("compared"), io.StringIO()
    command = ["baseline", "all", "--benchmark", small_world, "--out", out, *FEW]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr(microworld_data, "__defaults__", (24, 48))
        with pytest.raises(SystemExit, match="0"):
            main([str(part) for part in command])
    return out, printed.getvalue()


DECODED = ["focus-on-vision", "vcd", "mfcd", "pai", "revis", "revis-2.5", "nolan"]


def test_all_methods_stand_beside_spc(compared: tuple[Path, str]) -> None:
    out, printed = compared
    for label in ("Focus on Vision", "VCD", "MFCD", "PAI", "REVIS", "NoLan", "Fixed λ = 0.8", "Learned rule", "SPC"):
        assert label in printed
    assert "Cost of one example" in printed
    rows = parquet.read_table(out / "baselines.parquet").to_pylist()
    tests = 14 * 4  # a pair of every subcategory, two images, two tasks
    assert [sum(row["method"] == name for row in rows) for name in DECODED] == [tests] * len(DECODED)
    assert (out / "revis.safetensors").exists()
    assert (out / "scores.parquet").exists()


def test_a_further_method_joins_those_before_it(run: Callable, small_world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--benchmark", small_world, "--out", out, *FEW, "--json")
    first = run("baseline", "nolan", *arguments)
    assert {record["method"] for record in first.json} == {"nolan", "spc"}
    second = run("baseline", "pai", "cfg-score", *arguments)
    assert [record["method"] for record in second.json if record["task"] == "mc"] == [
        "pai",
        "nolan",
        "cfg-score",
        "spc",
    ]
    kept = {record["method"]: record for record in second.json if record["task"] == "mc"}["nolan"]
    before = first.json[0]
    assert {name: value for name, value in kept.items() if not name.startswith("cost") and "holm" not in name} == {
        name: value for name, value in before.items() if not name.startswith("cost") and "holm" not in name
    }


@pytest.mark.slow
def test_the_report_shows_every_method(
    run: Callable, compared: tuple[Path, str], small_world: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(compared[0], tmp_path / "copy"))
    done = run("run", "--benchmark", small_world, "--out", out, "--baselines", "all", *FEW)
    assert done.code == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "SPC beside other methods" in page
    assert "Focus on Vision" in page
    record = json.loads((out / "report.json").read_text())
    assert {each["method"] for each in record["studies"]["methods"]} >= {*DECODED, "spc"}
    assert "NoLan" in done.out
    # The files of a run fit together, although its decisions are about the test rows alone.
    beside = run("evaluate", out / "scores.parquet", out / "decisions.jsonl", "--baselines", out / "baselines.parquet")
    assert beside.code == 0
    assert "Learned rule" in beside.out
    everything = ("evaluate", out / "scores.parquet", out / "decisions.jsonl", "--split", "all")
    run(*everything, "--baselines", out / "baselines.parquet").refused("decisions")


def test_decisions_are_evaluated_beside_the_methods(run: Callable, compared: tuple[Path, str], tmp_path: Path) -> None:
    scores, answers = compared[0] / "scores.parquet", compared[0] / "baselines.parquet"
    run("fit", scores, "--out", tmp_path / "cal.json")
    run("apply", tmp_path / "cal.json", scores, "--out", tmp_path / "decisions.jsonl")
    shown = run("evaluate", scores, tmp_path / "decisions.jsonl", "--baselines", answers)
    assert shown.code == 0
    assert "NoLan" in shown.out
    record = run("evaluate", scores, tmp_path / "decisions.jsonl", "--baselines", answers, "--json").json
    methods = {each["method"]: each for each in record["methods"] if each["task"] == "mc"}
    assert list(methods) == [*DECODED, *CONTROLS, "spc"]
    task = next(task for task in record["tasks"] if task["task"] == "mc")
    assert methods["spc"]["delta_cf"] == task["cf"]["delta"]


def test_an_unpaired_benchmark_gets_accuracies(run: Callable, tmp_path: Path, model: Path) -> None:
    questions = write_benchmark(tmp_path, pairs=1)
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for row in rows:
        for name in ("pair", "side", "split"):
            del row[name]
    questions.write_text("\n".join(json.dumps(row) for row in rows))
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    shown = run("baseline", "nolan", *common)
    assert shown.code == 0
    assert "NoLan" in shown.out
    assert "Accuracy" in shown.out
    told = run("baseline", "nolan", "cfg-score", *common)
    assert "left out" in told.err
    record = run("baseline", "nolan", *common, "--json").json[0]
    assert record["matched_delta"] == record["delta"]
    assert record["cost_passes"] > 2


def test_pairs_without_splits_are_compared_without_spc(run: Callable, tmp_path: Path, model: Path) -> None:
    questions = write_benchmark(tmp_path)
    rows = [{name: value for name, value in json.loads(line).items() if name != "split"}
            for line in questions.read_text().splitlines()]  # fmt: skip
    questions.write_text("\n".join(json.dumps(row) for row in rows))
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    records = run("baseline", "nolan", *common, "--json").json
    assert {record["method"] for record in records} == {"nolan"}
    assert {"delta_cf", "delta_cs"} <= set(records[0])


def test_an_image_that_cannot_be_read_does_not_stop_the_comparison(run: Callable, tmp_path: Path, model: Path) -> None:
    questions = write_benchmark(tmp_path, pairs=5, development=2)
    (tmp_path / "3-cf.png").write_bytes(b"")
    (tmp_path / "4-cs.png").unlink()
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    told = run("baseline", "nolan", *common)
    assert told.code == 1  # as in scoring: some examples have no result
    assert "NoLan" in told.out
    assert told.err.count("3-cf-mc") == 1
    told = run("run", *common, "--baselines", "NoLan,VCD")
    assert told.code == 1
    assert "VCD" in told.out


def test_answers_to_another_benchmark_are_left_aside(run: Callable, tmp_path: Path, model: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = write_benchmark(tmp_path / "a"), write_benchmark(tmp_path / "b")
    second = second.rename(second.with_name("others.jsonl"))
    common = ("--model", model, "--out", tmp_path / "out", *FEW)
    assert run("baseline", "nolan", "--benchmark", first, *common).code == 0
    run("baseline", "cfg-score", "--benchmark", second, *common).refused("holds a run of benchmark")
    (tmp_path / "out" / "run.toml").unlink()  # as if it were a folder of scores alone
    told = run("baseline", "cfg-score", "--benchmark", second, *common, "--json")
    assert told.code == 0
    assert "left aside" in told.err
    assert {record["method"] for record in told.json} == {"cfg-score", "spc"}


def test_mistakes_are_told_before_anything_is_computed(run: Callable, tmp_path: Path, model: Path) -> None:
    questions = write_benchmark(tmp_path)
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out")
    for strength in ("nan", "inf", "-1"):
        run("baseline", "revis", *common, "--revis-strength", strength).refused("--revis-strength")
    run("baseline", "all", *common, "--revis-data", tmp_path / "nosuch.jsonl").refused("nosuch.jsonl", "no such file")
    run("baseline", "nolan", *common, "--epsilon-cs", -1).refused("--epsilon-cs -1.0: give at least 0 and at most 1")
    run("run", *common, "--epsilon-cs", -1).refused("--epsilon-cs -1.0: give at least 0 and at most 1")
    assert not (tmp_path / "out").exists()


def test_revis_asks_for_data_when_the_model_is_not_the_embedded_one(run: Callable, tmp_path: Path, model: Path) -> None:
    questions = write_benchmark(tmp_path)
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    run("baseline", "revis", *common).refused("REVIS needs captions", "--revis-data")
    told = run("baseline", "all", *common)
    assert told.code == 0
    assert "revis is left out" in told.err
    assert "NoLan" in told.out


@pytest.mark.slow
def test_revis_learns_from_a_file(run: Callable, tmp_path: Path, model: Path) -> None:
    questions = write_benchmark(tmp_path)
    lines = [
        {"image": f"{pair}-{side}.png", "caption": f"a hand of kind {pair}", "hallucinated": "a hand with six fingers"}
        for pair in range(3) for side in ("cf", "cs")
    ] + [
        {"image": f"{pair}-cf.png", "question": "Is there a dog in the image?", "answer": answer}
        for pair in range(3) for answer in ("yes", "no")
    ]  # fmt: skip
    data = tmp_path / "revis.jsonl"
    data.write_text("\n".join(json.dumps(line) for line in lines))
    out = tmp_path / "out"
    common = ("--model", model, "--benchmark", questions, "--out", out, *FEW)
    assert run("baseline", "revis", *common, "--revis-data", data).code == 0
    stored = (out / "revis.safetensors").read_bytes()
    assert run("baseline", "revis", *common, "--revis-data", data).code == 0
    assert (out / "revis.safetensors").read_bytes() == stored
    assert run("baseline", "revis", *common, "--revis-data", data, "--revis-strength", 2.5).code == 0
    changed = (out / "revis.safetensors").read_bytes()
    assert changed != stored
    # A further method leaves REVIS as it is, and needs its data no more.
    records = run("baseline", "nolan", *common, "--json").json
    assert (out / "revis.safetensors").read_bytes() == changed
    assert any(record["method"] == "revis" and "strength 2.5" in record["settings"] for record in records)


def test_a_model_that_cannot_be_edited_is_refused_by_name(run: Callable, tmp_path: Path) -> None:
    shallow = tiny_models.build("llava", tmp_path / "shallow")  # two layers; PAI edits from the third on
    questions = write_benchmark(tmp_path)
    common = ("--model", shallow, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    run("baseline", "pai", *common).refused("layers 2 to 1", "decoder has layers 0 to 1")
    assert not (tmp_path / "out").exists()  # nothing was scored, either
    told = run("baseline", "all", *common)
    assert told.code == 0
    assert "pai is left out" in told.err


@pytest.mark.usefixtures("_figures_unseen")
def test_of_methods_asked_for_by_name_those_that_run_are_compared(run: Callable, tmp_path: Path) -> None:
    shallow = tiny_models.build("llava", tmp_path / "shallow")
    questions = write_benchmark(tmp_path, pairs=5, development=3)
    out = tmp_path / "out"
    common = ("--model", shallow, "--benchmark", questions, "--out", out, *FEW)
    told = run("run", *common, "--baselines", "pai")
    assert told.code == 0  # a run is more than the comparison
    assert any(
        "pai (PAI cannot run on llava" in note for note in json.loads((out / "report.json").read_text())["notes"]
    )
    told = run("baseline", "nolan", "pai", *common)
    assert told.code == 0
    assert told.err.count("pai is left out: PAI cannot run on llava") == 1
    assert "NoLan" in told.out
    assert "Left out: pai (PAI cannot run on llava" in told.out
    assert list(read_left_out(out / "baselines.parquet")) == ["pai"]
    for page in ("report.json", "report.html"):
        assert (out / page).read_text(encoding="utf-8").count("Left out of the comparison: pai (") == 1
    run("baseline", "pai", "revis", *common).refused("layers 2 to 1", "REVIS needs captions")
    assert run("baseline", "pai", "cfg-score", *common, "--json").json[-1]["method"] == "spc"


@pytest.mark.usefixtures("_figures_unseen")
def test_methods_are_tried_before_anything_is_scored(
    run: Callable, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = write_benchmark(tmp_path, pairs=5, development=3)
    done = []
    tried, scored = trial.try_method, score_module.score_all
    monkeypatch.setattr(trial, "try_method", lambda *args: (done.append("tried"), tried(*args))[1])
    monkeypatch.setattr(score_module, "score_all", lambda *args: (done.append("scored"), scored(*args))[1])
    common = ("--model", model, "--benchmark", questions, *FEW)
    for command in (("baseline", "nolan", "vcd"), ("run", "--baselines", "nolan,vcd")):
        done.clear()
        assert run(*command, *common, "--out", tmp_path / command[0]).code == 0
        assert done == ["tried", "tried", "scored"]


@pytest.mark.usefixtures("_figures_unseen")
def test_a_method_that_fails_its_dry_run_is_left_out(
    run: Callable, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = write_benchmark(tmp_path, pairs=5, development=3)

    def failing(*_: object) -> None:
        raise RuntimeError("a kernel is missing\nand much more")

    monkeypatch.setattr(MFCD, "combine", failing)
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    run("baseline", "mfcd", *common).refused("MFCD cannot run on llava: a kernel is missing")
    assert not (tmp_path / "out" / "baselines.parquet").exists()
    for command in (("baseline", "all"), ("run", "--baselines", "vcd,mfcd")):
        told = run(*command, *common)
        assert told.code == 0
        assert "mfcd is left out: MFCD cannot run on llava: a kernel is missing\n" in told.err
        assert "VCD" in told.out
        assert told.out.count("MFCD") == told.out.count("MFCD cannot run on llava") == 1


@pytest.mark.usefixtures("_figures_unseen")
def test_a_method_that_fails_in_the_middle_is_left_out(
    run: Callable, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = write_benchmark(tmp_path, pairs=5, development=3)
    work = run_module.decode_observed

    def failing(engine: Any, method: Any, asked: Any) -> Any:
        if method.name == "mfcd" and any(question.name == "4-cf-mc" for question in asked):
            raise RuntimeError("this one is too large")
        return work(engine, method, asked)

    monkeypatch.setattr(run_module, "decode_observed", failing)
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    for command in (("baseline", "mfcd", "nolan"), ("run", "--baselines", "mfcd,nolan")):
        told = run(*command, *common)
        assert told.code == 0
        assert "mfcd is left out: 1 of its answers are missing" in told.err
        assert "4-cf-mc, mfcd: RuntimeError: this one is too large" in " ".join(told.err.split())
        assert "NoLan" in told.out
    monkeypatch.undo()
    told = run("baseline", "mfcd", *common)
    assert told.code == 0
    assert "MFCD" in told.out


def test_an_unknown_method_is_refused_before_anything_is_done(run: Callable, tmp_path: Path) -> None:
    run("baseline", "vdc", "--out", tmp_path / "out").refused("no method 'vdc'", "vcd", "cfg-score")
    run("run", "--baselines", "vdc", "--out", tmp_path / "out").refused("no method 'vdc'")
    assert not (tmp_path / "out").exists()


def test_missing_answers_are_named(run: Callable, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = write_benchmark(tmp_path)

    def failing(*_: object) -> list[str]:
        raise RuntimeError("a part is missing")

    monkeypatch.setattr(run_module, "decode_observed", failing)
    common = ("--model", model, "--benchmark", questions, "--out", tmp_path / "out", *FEW)
    told = run("baseline", "nolan", *common)
    assert told.code == 2
    assert "nolan: RuntimeError: a part is missing" in told.err
    monkeypatch.undo()
    assert run("baseline", "nolan", *common).code == 0
