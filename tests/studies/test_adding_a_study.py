"""The study of docs/how-to/extend.md is complete: it counts what SPC changes, and one line makes it known."""

from __future__ import annotations

from pathlib import Path

from extend_page import module_with
from study_checks import is_plain
from unprior import SelectivePriorCalibrator, synthesize
from unprior.studies import StudyInputs, run_studies


def test_the_example_counts_changed_answers(tmp_path: Path) -> None:
    study = module_with("class ChangedAnswers(StudyResult)", tmp_path).STUDY
    table = synthesize(seed=0)
    (finished,) = run_studies([study], [StudyInputs(table)])
    result = finished.result
    assert result is not None
    assert is_plain(result)
    rows = table.where(split="test").arrow.to_pylist()
    calibrator = SelectivePriorCalibrator().fit(table)
    changed = {}
    for row in rows:
        decision = calibrator.decide(row["candidates"], row["image_scores"], row["prior_scores"], row["original"])
        place = row["task"], row["side"]
        changed[place] = changed.get(place, 0) + (decision.final != row["original"])
    assert {(each["task"], each["side"]): each["changed"] for each in result.records()} == changed
    assert sum(each["answers"] for each in result.records()) == len(rows)
