"""A finished run to report on: the arguments of `write_report`, by name."""

from __future__ import annotations

from types import SimpleNamespace

from unprior import ScoreTable, SelectivePriorCalibrator, evaluate
from unprior.studies.suite import run_studies

Finished = SimpleNamespace


def finish(table: ScoreTable) -> Finished:
    calibrator = SelectivePriorCalibrator().fit(table)
    decisions = calibrator.predict(table.where(split="test"))
    return Finished(
        table=table,
        calibrator=calibrator,
        decisions=decisions,
        evaluation=evaluate(decisions.table, decisions, resamples=500),
        studies=run_studies(decisions, calibrator, table.where(split="dev")),
    )
