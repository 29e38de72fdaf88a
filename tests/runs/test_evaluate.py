"""Fitting, deciding and evaluating from files in one call each, as the commands do."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_up_methods import COSTS, made_up
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, UnpriorWarning, evaluate
from unprior.baselines.answers import write_answers
from unprior.calibration.files import apply_file, fit_file
from unprior.runs.evaluate import evaluate_file


def test_files_give_what_the_estimator_gives(table: ScoreTable, tmp_path: Path) -> None:
    scores, calibrator, decided = (tmp_path / name for name in ("scores.jsonl", "cal.json", "decisions.jsonl"))
    table.write(scores)
    fitted = fit_file(scores, calibrator, SelectivePriorCalibrator(epsilon_cs=0.1))
    own = SelectivePriorCalibrator(epsilon_cs=0.1).fit(table)
    assert (fitted.calibrator.settings_, fitted.bounds, fitted.cautions, fitted.skipped) == (own.settings_, 0, (), ())
    assert SelectivePriorCalibrator.load(calibrator).settings_ == own.settings_
    decisions = apply_file(calibrator, scores, decided)
    assert decisions.final.tolist() == own.predict(table).final.tolist()
    test = table.where(split="test")
    assert evaluate_file(scores, decided).evaluation == evaluate(test, own.predict(test))
    # Without a file to write, nothing is written.
    apply_file(calibrator, scores)
    fit_file(scores)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cal.json", "decisions.jsonl", "scores.jsonl"]


def test_other_methods_stand_beside_the_decisions(table: ScoreTable, tmp_path: Path) -> None:
    scores, calibrator, decided = (tmp_path / name for name in ("scores.parquet", "cal.json", "decisions.jsonl"))
    table.write(scores)
    fit_file(scores, calibrator)
    apply_file(calibrator, scores, decided)
    test = table.where(split="test")
    methods = made_up(test)
    rows = [
        {"method": each.info.name, "model": row["model"], "benchmark": row["benchmark"], "pair_id": row["pair_id"],
         "side": row["side"], "task": row["task"], "example_id": row["example_id"], "text": "", "answer": answer,
         "matched_text": None if each.matched is None else "", "matched_answer": answer}
        for each in methods
        for row, answer in zip(test.arrow.to_pylist(), test.candidate_names(each.answers), strict=True)
    ]  # fmt: skip
    write_answers(tmp_path / "baselines.parquet", [each.info for each in methods], rows, references=COSTS)
    compared = evaluate_file(scores, decided, baselines=tmp_path / "baselines.parquet", resamples=10).methods
    assert compared is not None
    names = {record["method"] for record in compared.records()}
    assert {"focus", "nolan", "fixed-strength"} <= names
    everything = evaluate_file(scores, decided, split=None, resamples=10)
    assert everything.methods is None


def test_mistakes_speak_to_both_audiences(table: ScoreTable, tmp_path: Path) -> None:
    scores = tmp_path / "scores.jsonl"
    rows = table.arrow.to_pylist()
    for row in rows[:4]:
        row["censored"] = [True] + [False] * (len(row["candidates"]) - 1)
    ScoreTable.from_rows(rows).write(scores)
    with pytest.raises(UnpriorError, match=r"allow_censored=True \(command line: --allow-censored\)"):
        fit_file(scores)
    with pytest.warns(UnpriorWarning, match="only an upper bound"):
        assert fit_file(scores, allow_censored=True).bounds == 4
    with pytest.raises(UnpriorError, match="this would overwrite its own input"):
        fit_file(scores, scores)


def test_an_output_that_cannot_be_written_is_refused_before_any_work(table: ScoreTable, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for call in (
        lambda out: fit_file(tmp_path / "none", out),
        lambda out: apply_file(tmp_path / "none", tmp_path / "none", out),
    ):
        with pytest.raises(UnpriorError, match=r"file/cal\.jsonl: cannot be written"):
            call(tmp_path / "file" / "cal.jsonl")
