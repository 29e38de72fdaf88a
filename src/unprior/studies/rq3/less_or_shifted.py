"""RQ3: which rule still works with less development data, or with data of other categories?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.baselines.controls import run_controls
from unprior.benchmarks.splits import NESTED_SEEDS, nested_development
from unprior.calibration import SelectivePriorCalibrator
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.scores.table import concatenate
from unprior.studies.common.resplit import Fold, fold, held_out_folds, outline_by_subcategory
from unprior.studies.common.trade_off import TradeOff, mean_utility, trade_offs
from unprior.studies.common.variants import spc_name
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import EQUAL, format_count, format_limit, format_list, format_name, format_points, highest
from unprior.tables.model import Row, Section, Table

METHODS = {"spc": "SPC", "selected-strength-gated": "Fixed strength", "learned-rule-fixed": "Learned revision rule"}
"""Names in tables by the name of the control."""
SHIFTED = "Target category excluded"


@dataclass(frozen=True, slots=True)
class ShiftRun:
    """One method fitted on one choice of development data."""

    condition: str
    """The choice of development data, as the table names it."""
    method: str
    seed: int | None
    """Of the draw of development pairs; None where nothing is drawn."""
    tasks: tuple[TradeOff, ...]


@dataclass(frozen=True, slots=True)
class LessOrShifted(StudyResult):
    """Average utility of three methods with less or shifted development data.

    >>> from unprior import synthesize
    >>> result = study_less_or_shifted(synthesize(seed=0), seeds=(0,))
    >>> result.conditions
    ('Target category excluded', '14 pairs', 'All 70 pairs')
    """

    epsilon: float
    runs: tuple[ShiftRun, ...]

    @property
    def labels(self) -> dict[str, str]:
        """Names of the methods in the table, with the version and ε of SPC."""
        return METHODS | {"spc": spc_name(self.epsilon, uncertainty=True)}

    @property
    def conditions(self) -> tuple[str, ...]:
        """Choices of development data, in the order of the table."""
        return tuple(dict.fromkeys(run.condition for run in self.runs))

    def utility(self, condition: str, method: str) -> float:
        """Mean over tasks and seeds."""
        runs = [run for run in self.runs if (run.condition, run.method) == (condition, method)]
        return statistics.fmean(mean_utility(run.tasks) for run in runs)

    def records(self) -> list[dict[str, Any]]:
        """One record per fit and task."""
        return [
            {"condition": run.condition, "method": run.method, "seed": run.seed, "epsilon": self.epsilon}
            | result.record()
            | {"mean_utility": mean_utility(run.tasks)}
            for run in self.runs
            for result in run.tasks
        ]

    def _best(self, condition: str) -> tuple[str, ...]:
        return highest({method: self.utility(condition, method) for method in METHODS})

    @property
    def table(self) -> Table:
        """U_0.5 by condition and method, the best of a row marked."""
        rows = [
            Row(
                (condition, *(format_points(self.utility(condition, method), 2) for method in METHODS)),
                bold_cells=tuple(1 + list(METHODS).index(method) for method in self._best(condition)),
            )
            for condition in self.conditions
        ]
        return Table(
            "Average utility with less or shifted development data",
            ("Development data", *self.labels.values()),
            (Section(None, tuple(rows)),),
            f"U = ΔCF + 0.5 ΔCS in points, the mean over the tasks; ε = {format_limit(self.epsilon)}. SPC and the gate "
            f"of the fixed strength are uncertainty-aware. With few pairs also the mean over the seeds. Bold: best of "
            f"a row.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which method is best where, and whether adapting the strength pays."""
        sentences, limit = [], format_limit(self.epsilon)
        for condition in self.conditions:
            best = format_list([format_name(self.labels[method]) for method in self._best(condition)])
            height = format_points(max(self.utility(condition, method) for method in METHODS), 2)
            where = "Without the tested category" if condition == SHIFTED else f"With {condition.lower()}"
            verb = "has" if len(self._best(condition)) == 1 else "have"
            sentences.append(f"{where} {best} {verb} the highest U ({height}, ε = {limit}).")
        ahead = [
            self.utility(condition, "spc") - self.utility(condition, "selected-strength-gated")
            for condition in self.conditions
        ]
        sentences.append(
            f"The adaptive strength of {self.labels['spc']} adds {format_points(min(ahead), 2)} to "
            f"{format_points(max(ahead), 2)} points of U to one fixed strength; it is ahead in "
            f"{sum(value > EQUAL for value in ahead)} of {len(ahead)} conditions."
        )
        return tuple(sentences)


def study_less_or_shifted(
    table: ScoreTable, *, seeds: Sequence[int] = NESTED_SEEDS, epsilon: float = 0.04
) -> LessOrShifted:
    """Fit SPC, one fixed strength and the learned rule without the tested category, and with one pair of every kind.

    The answers of the folds are judged together; the last condition has all development pairs, for comparison.
    """
    outside = [each for _, each in held_out_folds(table, "category")]
    choices: list[tuple[str, int | None, list[Fold]]] = [(SHIFTED, None, outside)]
    whole = outline_by_subcategory(table)
    for seed in seeds:
        few = fold(table, nested_development(whole, seed, [1])[1])
        choices.append((format_count(few.development_pairs, "pair"), seed, [few]))
    everything = fold(table, whole)
    choices.append((f"All {format_count(everything.development_pairs, 'pair')}", None, [everything]))
    runs = []
    for condition, drawn, folds in choices:
        test, given = concatenate([each.test for each in folds]), [_answers(each, epsilon) for each in folds]
        for method in METHODS:
            results = trade_offs(test, np.concatenate([answers[method] for answers in given]))
            runs.append(ShiftRun(condition, method, drawn, results))
    return LessOrShifted(epsilon, tuple(runs))


def _answers(each: Fold, epsilon: float) -> dict[str, IntArray]:
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon, uncertainty=True).fit(each.development, split=None)
    names = [method for method in METHODS if method != "spc"]
    controls = run_controls(each.development, each.test, calibrator=calibrator, names=names)
    return {"spc": calibrator.predict(each.test).final_positions} | {
        control.name: control.answers for control in controls
    }


STUDY = Study(
    name="less-or-shifted",
    title="Less or shifted development data",
    asks="Which rule still works with fewer development pairs, or with pairs of other categories only?",
    how="Average U over the tasks (ε = {epsilon}): each category tested with a fit on the other ones, all answers "
    "judged together; and one development pair of every subcategory, mean of five seeds. SPC and the gate of the "
    "selected fixed strength are uncertainty-aware; the learned rule decides about proposals of a fixed strength.",
    run=lambda inputs: study_less_or_shifted(inputs.table, epsilon=inputs.epsilon),
    label="tab:matched-shift",
)
