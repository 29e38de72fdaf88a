"""Answers of everything that was chosen on the run's development pairs, and of other methods, to any benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unprior.baselines.answers import MethodAnswers
from unprior.baselines.controls import run_controls
from unprior.calibration import SelectivePriorCalibrator
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.tables.format import format_limit

WIDE_CONTROLS = {"selected-strength-gated": "Fixed strength", "learned-rule-fixed": "Learned rule"}
"""Controls that the paper carries over at the wide limit."""
PRIMARY_CONTROLS = {"cfg-score": "CFG on scores"}
"""Controls that it carries over at the primary limit."""


class Given(NamedTuple):
    """What one method answers to some rows."""

    method: str
    label: str
    """The name for people."""
    answers: IntArray


def spc_answers(calibrators: Sequence[SelectivePriorCalibrator], part: ScoreTable) -> list[Given]:
    """Final answers of fitted calibrators."""
    return [
        Given(
            f"spc-{each.epsilon_cs:g}", f"SPC (ε = {format_limit(each.epsilon_cs)})", each.predict(part).final_positions
        )
        for each in calibrators
    ]


def control_answers(
    calibrators: Sequence[SelectivePriorCalibrator], development: ScoreTable, part: ScoreTable
) -> list[Given]:
    """Answers of controls chosen on development rows, with the limits of the last and the first calibrator."""
    known = {str(task) for task in development.column("task")} >= {str(task) for task in part.column("task")}
    given = []
    # Guidance has a scale for every task, so that it has none for a task without development rows.
    for calibrator, labels in ((calibrators[-1], WIDE_CONTROLS), (calibrators[0], PRIMARY_CONTROLS if known else {})):
        for result in run_controls(development, part, calibrator=calibrator, names=list(labels)):
            label = f"{labels[result.name]} ε = {format_limit(calibrator.epsilon_cs)}"
            given.append(Given(f"{result.name}-{calibrator.epsilon_cs:g}", label, result.answers))
    return given


def baseline_answers(baselines: Sequence[MethodAnswers], rows: IntArray) -> list[Given]:
    """Some rows of what other methods answered."""
    return [Given(each.info.name, each.info.label, each.answers[rows]) for each in baselines]
