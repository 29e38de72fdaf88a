"""Runs as logs of Inspect: what inspect_ai reads back is what the run says."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log_sample_summaries
from PIL import Image

from inspect_logs import apart, read_log
from recorded_runs import DATE, SYSTEM, write_run
from unprior import ScoreTable, UnpriorError, read_scores
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.schema import Example
from unprior.errors import UnpriorWarning
from unprior.images import open_image
from unprior.prompts import PromptLayout
from unprior.runs.export import export_run

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[^\"]*")
LABEL = re.compile("“([A-D])”")


@pytest.fixture(scope="module")
def log(default_run: Path, tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """The log of the run that a newcomer makes."""
    path = tmp_path_factory.mktemp("log") / "run.eval"
    assert export_run(default_run, out=path) == [path]
    return read_log(path, resolve_attachments=True)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run on synthetic scores. Do not write into it."""
    return write_run(tmp_path_factory.mktemp("small") / "run")


@pytest.fixture
def exported(small: Path, tmp_path: Path) -> EvalLog:
    return read(export_run(small, out=tmp_path / "log.eval")[0])


def read(path: Path) -> EvalLog:
    return read_log(path, resolve_attachments=True)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "decisions.jsonl").read_text(encoding="utf-8").splitlines()]


def by_name(log: EvalLog) -> dict[Any, EvalSample]:
    return {sample.id: sample for sample in log.samples or []}


def content(sample: EvalSample) -> dict[str, str]:
    """Text and image of the question."""
    assert not isinstance(sample.input, str)
    parts = sample.input[-1].content
    assert not isinstance(parts, str)
    return {part.type: getattr(part, part.type) for part in parts}


def picture(sample: EvalSample) -> Image.Image:
    kind, _, data = content(sample)["image"].partition(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


def with_texts(sentence: str, example: Example) -> str:
    """The letters of a sentence with what they stand for."""
    if example.texts is None:
        return sentence
    texts = dict(zip(example.labels, example.texts, strict=True))
    return LABEL.sub(lambda found: f"“{found[1]}: {texts[found[1]]}”", sentence)


def test_every_sample_says_what_the_run_says(log: EvalLog, default_run: Path) -> None:
    test: ScoreTable = read_scores(default_run / "scores.parquet").where(split="test")
    examples = {example.example_id: example for example in microworld(default_run)}
    samples = by_name(log)
    assert len(samples) == len(log.samples or []) == len(test) == 920
    for row, decided in zip(test.arrow.to_pylist(), lines(default_run), strict=True):
        sample, example = samples[row["example_id"]], examples[row["example_id"]]
        assert sample.scores is not None
        original, final = sample.scores["original"], sample.scores["spc"]
        assert content(sample)["text"] == example.user_text(PromptLayout())
        assert sample.choices == (None if example.texts is None else list(example.texts))
        assert (sample.target, sample.output.completion) == (row["answer"], row["original_text"])
        assert (original.answer, final.answer) == (decided["original"], decided["final"])
        assert original.value == ("C" if decided["original"] == row["answer"] else "I")
        assert final.value == ("C" if decided["final"] == row["answer"] else "I")
        assert final.explanation == with_texts(decided["explanation"], example)
        about = sample.metadata
        for name in ("side", "task", "category", "subcategory", "split"):
            assert about[name] == row[name]
        for name in ("original", "final", "proposal", "revised", "condition", "strength", "margin"):
            assert about[name] == decided[name]
        assert (about["pair"], about["gate"]) == (row["pair_id"], decided["reason"])
        ends = (about["stable_range_low"], about["stable_range_high"])
        assert ends == (decided["range_low"], decided["range_high"])
        assert list(about["s_I"]) == list(about["s_P"]) == about["candidates"] == row["candidates"]
        assert list(about["s_I"].values()) == row["image_scores"]
        assert list(about["s_P"].values()) == row["prior_scores"]
        (image, prior), strength = (row["image_scores"], row["prior_scores"]), decided["strength"]
        means = (math.fsum(image) / len(image), math.fsum(prior) / len(prior))
        by_hand = [a - means[0] - strength * (b - means[1]) for a, b in zip(image, prior, strict=True)]
        assert list(about["corrected"].values()) == pytest.approx(by_hand, abs=1e-9)


def test_the_metrics_are_those_of_the_report(log: EvalLog, default_run: Path) -> None:
    report = json.loads((default_run / "report.json").read_text(encoding="utf-8"))["evaluation"]
    assert log.results is not None
    scores = {each.name: each.metrics for each in log.results.scores}
    assert list(scores) == ["original", "spc", "spc_mc", "spc_qa"]
    for task in report["tasks"]:
        for side in ("cf", "cs"):
            for scorer, when in (("original", "original"), ("spc", "method")):
                metric = scores[scorer][f"{task['task']}_{side}_accuracy"]
                assert metric.value == task[when][side]["value"]
                assert metric.metadata == {"right": task[when][side]["count"], "of": task[when][side]["total"]}
            changed = scores[f"spc_{task['task']}"]
            delta = changed[f"delta_{side}"]
            assert delta.value == task[side]["delta"]
            noted = {name: task[side][name] for name in ("low", "high", "p", "holm_p")}
            assert delta.metadata == noted | {"level": report["level"]}
            assert changed[f"{side}_repairs"].value == task[side]["repairs"]
            assert changed[f"{side}_harms"].value == task[side]["harms"]
    # The samples add up to the same: nothing is counted in two ways.
    for task in report["tasks"]:
        for side in ("cf", "cs"):
            members = [
                sample.metadata["outcome"]
                for sample in log.samples or []
                if (sample.metadata["task"], sample.metadata["side"]) == (task["task"], side)
            ]
            assert members.count("repaired") == task[side]["repairs"]
            assert members.count("harmed") == task[side]["harms"]


def test_the_header_says_what_was_run_and_when(log: EvalLog, default_run: Path) -> None:
    (made,) = read_scores(default_run / "scores.parquet").provenance
    assert (log.status, log.eval.task, log.eval.model) == ("success", "microworld", "embedded")
    assert log.eval.created == log.stats.started_at == log.stats.completed_at == made.date
    assert log.eval.packages == made.versions
    assert log.metadata["headline"].startswith("On counterfactual images SPC (standard, ε = 0.04) raises accuracy")
    assert "only for trying the method" in log.metadata["note"]
    assert log.metadata["provenance"] == [made.record()]
    assert str(default_run) not in log.model_dump_json(exclude={"samples"})


def test_the_images_are_those_of_the_questions(log: EvalLog, default_run: Path) -> None:
    examples = {example.example_id: example for example in microworld(default_run)}
    for name in ("100-cf-mc", "100-cs-qa"):
        shown, drawn = picture(by_name(log)[name]), open_image(examples[name].image)
        assert shown.size == drawn.size
        near = np.abs(np.subtract(*(np.asarray(image.resize((8, 8)), dtype=float) for image in (shown, drawn))))
        assert near.max() < 16


def test_the_transcript_tells_answer_and_scores(exported: EvalLog) -> None:
    for sample in exported.samples or []:
        assert [event.event for event in sample.events] == ["model", "score", "score"]
        assert sample.scores is not None
        told = {event.scorer: event.score for event in sample.events if event.event == "score"}
        assert told == sample.scores
        assert [message.role for message in sample.messages] == ["system", "user", "assistant"]
        assert sample.messages[0].text == SYSTEM


def test_an_answer_that_could_not_be_read_is_wrong(exported: EvalLog) -> None:
    (unread,) = [sample for sample in exported.samples or [] if sample.metadata["original"] is None]
    assert unread.scores is not None
    assert (unread.scores["original"].value, unread.scores["original"].answer) == ("I", None)
    assert str(unread.scores["original"].explanation).startswith("No answer could be read from the model's text; “")
    assert unread.output.completion == "I cannot tell."


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_the_same_run_gives_the_same_log_wherever_it_lies(small: Path, tmp_path: Path, suffix: str) -> None:
    shutil.copytree(small.parent, tmp_path / "moved")
    moved = tmp_path / "moved" / "run"
    config = (moved / "run.toml").read_text(encoding="utf-8")
    (moved / "run.toml").write_text(config.replace(str(small.parent), str(tmp_path / "moved")), encoding="utf-8")
    (one,) = export_run(small, out=tmp_path / f"one{suffix}")
    (two,) = export_run(moved, out=tmp_path / f"two{suffix}")
    assert one.read_bytes() == two.read_bytes()
    texts = [one.read_text(encoding="utf-8")] if suffix == ".json" else list(members(one))
    assert {moment for text in texts for moment in MOMENT.findall(text)} == {DATE}


def members(path: Path) -> Iterator[str]:
    """The texts in a log; the archive itself tells no time."""
    with ZipFile(path) as archive:
        for member in archive.infolist():
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            yield archive.read(member).decode()


def test_both_formats_hold_the_same(small: Path, exported: EvalLog, tmp_path: Path) -> None:
    as_json = read(export_run(small, out=tmp_path / "log.json")[0])
    assert as_json.eval == exported.eval
    assert as_json.results == exported.results
    assert [each.id for each in as_json.samples or []] == [each.id for each in exported.samples or []]
    for one, other in zip(as_json.samples or [], exported.samples or [], strict=True):
        assert one.model_dump(exclude={"attachments"}) == other.model_dump(exclude={"attachments"})


def test_a_large_image_is_made_smaller_or_left_out(small: Path, exported: EvalLog, tmp_path: Path) -> None:
    assert {picture(sample).size for sample in exported.samples or []} == {(512, 256)}
    (path,) = export_run(small, out=tmp_path / "plain.eval", images=False)
    assert path.stat().st_size < (tmp_path / "log.eval").stat().st_size
    for sample in read(path).samples or []:
        assert set(content(sample)) == {"text"}


def test_inspect_finds_and_lists_the_log(small: Path, tmp_path: Path) -> None:
    (path,) = export_run(small, out=tmp_path)
    assert path == tmp_path / "run.eval"
    (listed,) = apart(list_eval_logs, str(tmp_path))
    assert listed.task == "questions"
    summaries = apart(read_eval_log_sample_summaries, str(path))
    assert {each.metadata["outcome"] for each in summaries} >= {"repaired", "right before and after"}
    assert all(each.completed and not each.error for each in summaries)


def test_all_rows_keep_the_metrics_of_the_test_rows(small: Path, exported: EvalLog, tmp_path: Path) -> None:
    everything = read(export_run(small, out=tmp_path / "all.eval", split=None)[0])
    assert len(everything.samples or []) == len(read_scores(small / "scores.parquet"))
    assert {sample.metadata["split"] for sample in everything.samples or []} == {"dev", "test"}
    assert everything.results is not None
    assert exported.results is not None
    assert everything.results.scores == exported.results.scores
    assert everything.metadata["metrics"] == f"of the {len(exported.samples or [])} rows of split test"
    assert everything.eval.eval_id != exported.eval.eval_id
    development = read(export_run(small, out=tmp_path / "dev.eval", split="dev")[0])
    assert development.results is not None
    assert development.results.scores[0].scored_samples == len(development.samples or [])
    with pytest.raises(UnpriorError, match="trian"):
        export_run(small, out=tmp_path / "none.eval", split="trian")
    assert not (tmp_path / "none.eval").exists()


@pytest.mark.parametrize(
    "parameters", [{"uncertainty": True}, {"retention": "certified", "epsilon_cs": 0.5}, {"epsilon_cs": 0.0}]
)
def test_other_versions_of_the_method(tmp_path: Path, parameters: dict[str, Any]) -> None:
    folder = write_run(tmp_path / "run", parameters=parameters)
    log, decided = read(export_run(folder)[0]), lines(folder)
    samples = by_name(log)
    for line in decided:
        about = samples[f"{line['pair_id']}-{line['side']}-{line['task']}"].metadata
        for name in ("support", "distance", "lead"):
            assert about.get(name) == line.get(name)
        assert about["final"] == line["final"]
    assert ("promise" in log.metadata) is ("retention" in parameters)


def test_open_questions_have_no_options_and_several_right_answers(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", openly=True)
    log, rows = (
        read(export_run(folder)[0]),
        read_scores(folder / "scores.parquet").where(split="test").arrow.to_pylist(),
    )
    samples = by_name(log)
    for row, decided in zip(rows, lines(folder), strict=True):
        if row["task"] != "open":
            continue
        sample = samples[row["example_id"]]
        assert sample.scores is not None
        assert sample.target == [row["answer"], *row["aliases"]]
        assert sample.choices is None
        assert content(sample)["text"].endswith("Answer with a short phrase.")
        assert sample.scores["spc"].answer == decided["final"]
        assert sample.scores["spc"].value == ("C" if decided["final"] in sample.target else "I")
        assert {"s_I_used", "s_P_used"} <= set(sample.metadata)
    assert log.results is not None
    assert "spc_open" in {each.name for each in log.results.scores}
    assert not any("s_I_used" in sample.metadata for sample in samples.values() if sample.metadata["task"] == "qa")


def test_without_the_questions_the_decisions_are_exported(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path / "run")
    (tmp_path / "run" / "run.toml").unlink()
    with pytest.warns(UnpriorWarning, match="does not say which benchmark was asked"):
        (path,) = export_run(tmp_path / "run")
    for sample in read(path).samples or []:
        assert content(sample) == {"text": f"(example {sample.id})"}
        assert sample.choices is None
    assert [each.scores["spc"].answer for each in read(path).samples or [] if each.scores] == [
        each["final"] for each in sorted(lines(small), key=lambda row: f"{row['pair_id']}-{row['side']}-{row['task']}")
    ]


def test_other_questions_than_those_that_were_scored_are_not_shown(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    questions = tmp_path / "questions.jsonl"
    questions.write_text(questions.read_text(encoding="utf-8").replace("What is", "Who is"), encoding="utf-8")
    with pytest.warns(UnpriorWarning, match="holds other questions than those that were scored"):
        (path,) = export_run(folder)
    assert "Who is" not in "".join(content(sample)["text"] for sample in read(path).samples or [])


def test_missing_images_are_counted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    row = lines(folder)[0]
    (tmp_path / f"{row['pair_id']}-{row['side']}.png").unlink()
    with pytest.warns(UnpriorWarning, match="2 of 36 samples have no image, the first because of .*: no such image"):
        (path,) = export_run(folder)
    assert sum("image" not in content(sample) for sample in read(path).samples or []) == 2


def test_a_run_of_version_0_1_0(small: Path, tmp_path: Path) -> None:
    """It has no provenance, names of examples may be missing, and its record is another file."""
    shutil.copytree(small, tmp_path / "run")
    folder = tmp_path / "run"
    rows = read_scores(small / "scores.parquet").arrow.to_pylist()
    ScoreTable.from_rows([row | {"views": None} for row in rows]).write(folder / "scores.parquet")
    kept = [{name: value for name, value in line.items() if name != "provenance"} for line in lines(small)]
    (folder / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    (folder / "run.toml").unlink()
    model = dict.fromkeys(("revision", "device", "device_map", "attention")) | {"model": "synthetic", "dtype": "auto"}
    record = {"model": model, "benchmark": str(small.parent / "questions.jsonl"), "variant": None, "seed": 0}
    (folder / "run.json").write_text(json.dumps(record | {"data_dir": None, "resize": None}), encoding="utf-8")
    log = read(export_run(folder)[0])
    assert log.eval.created == "1970-01-01T00:00:00+00:00"
    assert len(log.samples or []) == len(kept)
    assert all(content(sample)["image"] for sample in log.samples or [])


def test_rows_without_names_are_named_after_their_pairs(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    table = read_scores(folder / "scores.parquet")
    table.with_column("example_id", [None] * len(table)).write(folder / "scores.parquet")
    log = read(export_run(folder)[0])
    assert {sample.id for sample in log.samples or []} == {
        f"{row['pair_id']}-{row['side']}-{row['task']}" for row in lines(folder)
    }


def test_a_damaged_wording_leaves_the_questions_out(small: Path, tmp_path: Path) -> None:
    """A width would fill gigabytes, and a place that is not known cannot be filled in."""
    shutil.copytree(small, tmp_path / "run")
    config = (small / "run.toml").read_text(encoding="utf-8")
    for wording in ("{label:9999999999}", "{nobody}", "{"):
        changed, count = re.subn("(?m)^option_line = .*$", f'option_line = "{wording}"', config)
        changed = changed if count else f'{config}\n[prompt]\noption_line = "{wording}"\n'
        (tmp_path / "run" / "run.toml").write_text(changed, encoding="utf-8")
        with pytest.warns(UnpriorWarning, match="questions and images are left out, .*option_line"):
            (path,) = export_run(tmp_path / "run", force=True)
        assert {content(sample)["text"] for sample in read(path).samples or []} == {
            f"(example {sample.id})" for sample in read(path).samples or []
        }


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "yesterday"])
def test_a_date_outside_the_calendar_is_not_known(tmp_path: Path, date: str) -> None:
    log = read(export_run(write_run(tmp_path / "run", date=date), images=False)[0])
    assert log.eval.created == "1970-01-01T00:00:00+00:00"


def test_long_names_are_cut_and_stay_different(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    table = read_scores(folder / "scores.parquet")
    table.with_column("example_id", [f"{'x' * 70_000}{row}" for row in range(len(table))]).write(
        folder / "scores.parquet"
    )
    (path,) = export_run(folder, images=False)
    names = [str(sample.id) for sample in read(path).samples or []]
    assert len(set(names)) == len(names) == len(lines(folder))
    assert all(name.startswith("xxx") and len(name) < 100 for name in names)


def test_the_page_about_it_runs_as_it_stands(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(small, tmp_path / "unprior-run")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "inspect.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    apart(exec, compile(code.replace('"harmed"', '"repaired"'), "inspect.md", "exec"), {})
    assert "Changed “" in capsys.readouterr().out
    about = (read(tmp_path / "unprior-run" / "inspect.eval").samples or [])[0].metadata
    fields = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall("`(.+?)`", row)}
    assert fields - {"s_I_used", "s_P_used"} <= set(about)


def test_a_running_event_loop_stays_as_it_is(tmp_path: Path) -> None:
    before = asyncio.run

    async def work() -> None:
        export_run(write_run(tmp_path / "run"), out=tmp_path / "log.eval")

    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop in this one
        thread.submit(asyncio.run, work()).result()
    assert asyncio.run is before  # inspect_ai would replace it
