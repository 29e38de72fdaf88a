"""Promises on the command line: plan, fit, apply, evaluate, monitor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from row_changes import read_lines
from unprior import SelectivePriorCalibrator, read_scores, synthesize
from unprior.evaluation.promise import check_promise
from unprior.runs.promise import plan_promise


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("promise") / "scores.parquet"
    synthesize(seed=3).write(path)
    return path


@pytest.fixture(scope="module")
def fitted(scores: Path) -> SelectivePriorCalibrator:
    calibrator = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(read_scores(scores))
    calibrator.save(scores.with_name("calibrator.json"))
    return calibrator


# --- plan


def test_a_plan_shows_the_ladder(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run("plan", "--epsilon", 0.04, "--pairs", 70)
    assert (result.code, result.err) == (0, "")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert any(line.startswith("70 0.033 0.055 0.075 0.093 0, stop of 57") for line in lines)
    assert any(line.startswith("pairs for ε = 0.04 57 96") for line in lines)
    assert "ε = 0.04 needs at least 57 pairs." in lines
    assert "ε = 0.044 is just above a step" in result.out
    steps = {epsilon: plan_promise(epsilon, 70).record()["pairs"][0]["steps"] for epsilon in (0.04, 0.043, 0.044)}
    assert steps == {0.04: [0, -1], 0.043: [0, -1], 0.044: [0, 0]}
    assert max(len(line.rstrip()) for line in result.out.splitlines()) <= 80


def test_a_plan_as_json_is_that_of_the_library(run: Callable) -> None:
    record = run("plan", "--epsilon-cs", 0.06, "--delta", 0.05, "--tasks", 3, "--json").json
    assert record == plan_promise(0.06, delta=0.05, tasks=3).record()
    assert [each["pairs"] for each in record["pairs"]] == [35, 70, 140, 280, 560]
    assert [len(each["steps"]) for each in record["pairs"] if each["steps"]] == [3] * 4
    assert record["pairs"][0] == {
        "pairs": 35, "smallest_epsilon": record["pairs"][0]["smallest_epsilon"], "steps": None, "calibration": None,
        "strength": None,
    }  # fmt: skip


def test_a_plan_is_what_a_fit_does(run: Callable, fitted: SelectivePriorCalibrator) -> None:
    (planned,) = run("plan", "--epsilon", 0.06, "--pairs", 70, "--json").json["pairs"]
    certificate = fitted.certificate_
    assert certificate is not None
    assert (planned["steps"], planned["calibration"]) == (list(certificate.steps), certificate.calibration)
    assert planned["strength"] == certificate.strength_rule == "split"


def test_a_target_mixture_costs_its_weight(run: Callable) -> None:
    result = run("plan", "--pairs", 70, "--target-mixture", "cdh-bench")
    assert "A subcategory is 1.217 times as frequent" in " ".join(result.out.split())
    record = run("plan", "--pairs", 70, "--target-mixture", "cdh-bench", "--json").json
    assert record["weight"] == pytest.approx(1.217, abs=5e-4)
    assert record["pairs_needed"][0] > 57
    Path("mixture.json").write_text('{"Color": 3, "Size": 1, "Shape": 0}', encoding="utf-8")
    assert run("plan", "--target-mixture", "mixture.json", "--json").json["weight"] == 1.5


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("--epsilon", 0), "a rate of harm is above 0 and at most 1"),
        (("--epsilon", 1.5), "a rate of harm is above 0 and at most 1"),
        (("--epsilon", "much"), "--epsilon"),
        (("--pairs", 0), "--pairs"),
        (("--tasks", 0), "--tasks"),
        (("--delta", 0.9), "must be above 0 and at most 0.5"),
        (("--target-mixture", "nowhere.json"), "nowhere.json is neither cdh-bench nor a file"),
    ],
)
def test_plans_that_cannot_be(run: Callable, options: tuple[Any, ...], fragment: str) -> None:
    run("plan", *options).refused(fragment)


# --- fit, apply, evaluate


def test_a_fit_prints_its_promise(run: Callable, scores: Path, fitted: SelectivePriorCalibrator) -> None:
    assert fitted.certificate_ is not None
    result = run("fit", scores, "--out", "cal.json", "--retention", "certified", "--epsilon-cs", 0.06)
    assert (result.code, result.err) == (0, "")
    shown = " ".join(result.out.split())
    assert "Fitted SPC (certified, ε = 0.06) on 280 rows → cal.json" in shown
    assert shown.endswith(fitted.certificate_.sentence)
    assert SelectivePriorCalibrator.load("cal.json").certificate_ == fitted.certificate_
    record = run("fit", scores, "--out", "cal.json", "--retention", "certified", "--epsilon-cs", 0.06, "--json").json
    assert record["certificate"] == json.loads(json.dumps(fitted.certificate_.record()))
    assert record["abstains"] is False


def test_a_fit_that_can_promise_nothing_warns(run: Callable, scores: Path) -> None:
    result = run("fit", scores, "--out", "cal.json", "--retention", "certified", "--epsilon-cs", 0.02)
    assert result.code == 0
    shown = " ".join(result.err.split())
    assert "70 pairs cannot promise ε = 0.02 with 90 % confidence, so no answer is ever changed." in shown
    assert "It needs 114 pairs" in shown
    assert SelectivePriorCalibrator.load("cal.json").settings_ is None


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("--retention", "certifed"), "did you mean certified"),
        (("--retention", "certified", "--uncertainty"), "has a gate of its own"),
        (("--target-mixture", "cdh-bench"), "goes with --retention certified"),
        (("--retention", "certified", "--prior", "canonical"), "were not scored for --prior canonical"),
        (("--retention", "certified", "--strict"), "--strict goes with --prior canonical"),
    ],
)
def test_fits_that_cannot_be(run: Callable, scores: Path, options: tuple[str, ...], fragment: str) -> None:
    run("fit", scores, "--out", "cal.json", *options).refused(fragment)
    assert not Path("cal.json").exists()


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_promise_travels_with_the_decisions(
    run: Callable, scores: Path, fitted: SelectivePriorCalibrator, ending: str
) -> None:
    decisions = f"decisions.{ending}"
    assert run("apply", scores.with_name("calibrator.json"), scores, "--out", decisions).code == 0
    test = read_scores(scores).where(split="test")
    assert fitted.certificate_ is not None
    expected = check_promise(fitted.certificate_, test, fitted.predict(test).final_positions)
    assert expected is not None
    record = run("evaluate", scores, decisions, "--resamples", 50, "--json").json
    assert record["promise"] == json.loads(json.dumps(expected.record()))
    assert record["promise"]["held"] is True
    assert [each["harms"] for each in record["promise"]["tasks"]] == [each.harms for each in expected.tasks]
    shown = run("evaluate", scores, decisions, "--resamples", 50).out
    assert "Promise and outcome" in shown
    assert fitted.certificate_.sentence in " ".join(shown.split())


def test_a_promise_that_its_counts_do_not_support_is_refused(
    run: Callable, scores: Path, fitted: SelectivePriorCalibrator
) -> None:
    decisions = Path("decisions.jsonl")
    fitted.predict(read_scores(scores)).write(decisions)
    text = decisions.read_text(encoding="utf-8")
    assert text.count('"calibration": 67') == 1
    decisions.write_text(text.replace('"calibration": 67', '"calibration": 20'), encoding="utf-8")
    run("evaluate", scores, "decisions.jsonl", "--resamples", 50).refused(
        "other pairs or more harms than its steps permit"
    )


# --- monitor


def _labelled(scores: Path, fitted: SelectivePriorCalibrator, harmed: int = 0) -> Path:
    """Decisions with their answers; on the last commonsense images of a task a right answer is changed."""
    table = read_scores(scores).where(split="test")
    fitted.predict(table).write("decisions.jsonl")
    decided = read_lines(Path("decisions.jsonl"))
    rows = [row | {"answer": answer} for row, answer in zip(decided, table.answer, strict=True)]
    ordinary = [row for row in rows if (row["task"], row["side"]) == ("qa", "cs")]
    for row in ordinary[len(ordinary) - harmed :]:
        row |= {"original": row["answer"], "final": "no" if row["answer"] == "yes" else "yes"}
    path = Path("labelled.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_promise_that_stands_ends_with_zero(run: Callable, scores: Path, fitted: SelectivePriorCalibrator) -> None:
    path = _labelled(scores, fitted)
    result = run("monitor", scores.with_name("calibrator.json"), path)
    assert (result.code, result.err) == (0, "")
    assert "nothing contradicts it." in result.out
    assert "stands" in result.out


def test_a_stream_of_harms_ends_with_one(run: Callable, scores: Path, fitted: SelectivePriorCalibrator) -> None:
    path = _labelled(scores, fitted, harmed=60)
    calibrator = scores.with_name("calibrator.json")
    result = run("monitor", calibrator, path, "--figure", "promise.svg")
    assert result.code == 1
    assert "Recalibrate:" in result.out
    assert "given up at" in result.out
    assert "<svg" in Path("promise.svg").read_text(encoding="utf-8")
    record = run("monitor", calibrator, path, "--json")
    assert (record.code, record.json["stands"]) == (1, False)
    mc, qa = record.json["tasks"]
    assert mc["alarm"] is None
    assert 170 < qa["alarm"] <= 230
    assert read_lines(path)[qa["line"] - 1]["task"] == "qa"
    assert run("monitor", calibrator, path, "--alpha", 1e-30).code == 0


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("--alpha", 0), "a chance between 0 and 1"),
        (("--alpha", 1.5), "a chance between 0 and 1"),
        (("--figure", "promise.gif"), "choose one of these endings"),
    ],
)
def test_watches_that_cannot_be(
    run: Callable, scores: Path, fitted: SelectivePriorCalibrator, options: tuple[Any, ...], fragment: str
) -> None:
    run("monitor", scores.with_name("calibrator.json"), _labelled(scores, fitted), *options).refused(fragment)


def test_decisions_without_answers_are_refused(run: Callable, scores: Path, fitted: SelectivePriorCalibrator) -> None:
    fitted.predict(read_scores(scores)).write("decisions.jsonl")
    run("monitor", scores.with_name("calibrator.json"), "decisions.jsonl").refused("no decision has an answer")
    SelectivePriorCalibrator().fit(read_scores(scores)).save("paper.json")
    run("monitor", "paper.json", "decisions.jsonl").refused("promises nothing about new pairs")


# --- what must not be lost, and what cannot be


def test_inputs_are_never_overwritten(run: Callable, scores: Path, fitted: SelectivePriorCalibrator) -> None:
    mixture = Path("mixture.json")
    mixture.write_text('{"Color": 1}', encoding="utf-8")
    options = ("--retention", "certified", "--epsilon-cs", 0.5)
    run("fit", scores, "--out", mixture, *options, "--target-mixture", mixture).refused("mixture.json")
    assert mixture.read_text(encoding="utf-8") == '{"Color": 1}'
    decisions = Path("decisions.svg")
    fitted.predict(read_scores(scores)).write("decisions.jsonl")
    Path("decisions.jsonl").rename(decisions)
    before = decisions.read_bytes()
    run("monitor", scores.with_name("calibrator.json"), decisions, "--figure", decisions).refused("decisions.svg")
    assert decisions.read_bytes() == before


@pytest.mark.parametrize(
    "shares", ['{"Color": 1' + 400 * "0" + "}", '{"Color": 1e308, "Material": 1e308}', '{"Color": -1}']
)
def test_shares_beyond_reason_are_refused(run: Callable, shares: str) -> None:
    Path("mixture.json").write_text(shares, encoding="utf-8")
    run("plan", "--target-mixture", "mixture.json").refused("mixture.json", "share")


@pytest.mark.parametrize("pairs", ["99999999999999999999", "0"])
def test_pairs_beyond_reason_are_refused(run: Callable, pairs: str) -> None:
    assert run("plan", "--pairs", pairs).code == 2


def test_development_pairs_do_not_test_a_promise(run: Callable, scores: Path, fitted: SelectivePriorCalibrator) -> None:
    assert run("apply", scores.with_name("calibrator.json"), scores, "--out", "decisions.jsonl").code == 0
    assert (
        "promise" not in run("evaluate", scores, "decisions.jsonl", "--split", "dev", "--resamples", 50, "--json").json
    )
    every, test = (
        run("evaluate", scores, "decisions.jsonl", "--split", split, "--resamples", 50, "--json").json["promise"]
        for split in ("all", "test")
    )
    assert every == test
