from __future__ import annotations

import json

import pytest

from small_tables import twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.studies.suite import run_studies


def test_all_records_are_plain() -> None:
    table = twelve_pairs()
    calibrator = SelectivePriorCalibrator().fit(table)
    studies = run_studies(calibrator.predict(table.where(split="test")), calibrator, table.where(split="dev"))
    records = studies.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert all(records.values())
    assert studies.frontier is not None
    (point,) = (each for each in studies.frontier.of("mc", "fixed_selected") if each.epsilon == calibrator.epsilon_cs)
    assert studies.ranges.tasks[0].fixed_strength == point.strength


def test_without_development_rows_there_is_no_frontier() -> None:
    table = twelve_pairs()
    calibrator = SelectivePriorCalibrator().fit(table)
    studies = run_studies(calibrator.predict(table), calibrator)
    assert studies.frontier is None
    assert studies.records()["frontier"] is None
    assert studies.ranges.tasks[0].fixed_strength is None


def test_a_mixture_of_models_is_refused() -> None:
    table = twelve_pairs()
    calibrator = SelectivePriorCalibrator().fit(table)
    rows = table.arrow.to_pylist()
    rows[0]["model"] = "another"
    decisions = calibrator.predict(ScoreTable.from_rows(rows))
    with pytest.raises(UnpriorError, match=r"several models .*another on synthetic.* one report for each"):
        run_studies(decisions, calibrator)
