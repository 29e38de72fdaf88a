"""The main comparison: original answers against a method's, with paired intervals and exact tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unprior.calibration import Decisions
from unprior.errors import UnpriorError
from unprior.evaluation.metrics import Change, Metrics, as_answers, compare, correct, measure, utility
from unprior.evaluation.statistics import (
    BOOTSTRAP_RESAMPLES,
    BOOTSTRAP_SEED,
    BootstrapResult,
    McNemarResult,
    holm,
    mcnemar,
    pair_bootstrap,
)
from unprior.scores import ScoreTable
from unprior.scores.pairs import check_pairs, table_pairs
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray


@dataclass(frozen=True, slots=True)
class SideResult:
    """One side of one task: what changed, how sure we are."""

    change: Change
    low: float
    """Lower end of the bootstrap interval of Δ."""
    high: float
    """Upper end of the bootstrap interval of Δ."""
    test: McNemarResult
    holm_p: float
    """p adjusted over all comparisons of the evaluation."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Original answers, or another reference, against a method's answers on one task of one model."""

    model: str | None
    benchmark: str | None
    task: str
    original: Metrics
    """Of the reference, which are the original answers unless another one was given."""
    method: Metrics
    cf: SideResult
    cs: SideResult

    @property
    def utility(self) -> float:
        """U_0.5 = ΔCF + 0.5 ΔCS."""
        return utility(self.cf.change.delta, self.cs.change.delta)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All tasks of a table; the Holm family is every side of every task in it.

    >>> Evaluation(tasks=(), level=0.95, resamples=10_000, seed=1).family
    0
    """

    tasks: tuple[TaskResult, ...]
    level: float
    resamples: int
    seed: int

    @property
    def family(self) -> int:
        """Number of tests that the Holm adjustment covers."""
        return 2 * len(self.tasks)


def evaluate(
    table: ScoreTable,
    answers: ArrayLike | Decisions,
    *,
    reference: ArrayLike | Decisions | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
    level: float = 0.95,
) -> Evaluation:
    """Compare decisions, or any answers (candidate positions, -1 for none), with the original answers.

    A ``reference`` takes the place of the original answers, such as those of the same decoder without its correction.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> test = table.where(split="test")
    >>> result = evaluate(test, SelectivePriorCalibrator().fit(table).predict(test))
    >>> [task.task for task in result.tasks], result.family
    (['mc', 'qa'], 4)
    """
    answers = as_answers(table, answers)
    before = table.original_positions if reference is None else as_answers(table, reference)
    check_pairs(table_pairs(table), complete=False).refuse(table.source, skippable=True)
    parts = []
    for label, rows in group_rows(table, "model", "benchmark", "task").items():
        part, given, base = table.take(rows), answers[rows], before[rows]
        _check_both_sides(part, label[2])
        parts.append((label, part, given, base, _delta_bootstrap(part, given, base, resamples, seed, level)))
    changes = [
        [compare(part, given, side=side, reference=base) for side in ("cf", "cs")] for _, part, given, base, _ in parts
    ]
    tests = [mcnemar(change.repairs, change.harms) for pair in changes for change in pair]
    adjusted = holm([test.p_value for test in tests]).adjusted
    results = []
    for index, ((model, benchmark, task), part, given, base, interval) in enumerate(parts):
        sides = [
            SideResult(
                changes[index][side],
                interval.low[side],
                interval.high[side],
                tests[2 * index + side],
                adjusted[2 * index + side],
            )
            for side in (0, 1)
        ]
        results.append(TaskResult(model, benchmark, task, measure(part, base), measure(part, given), *sides))
    return Evaluation(tuple(results), level, resamples, seed)


def _check_both_sides(part: ScoreTable, task: str) -> None:
    if not part.is_paired.all():
        raise UnpriorError(
            f"task {task}: {int((~part.is_paired).sum())} of {len(part)} rows do not say their side (cf or cs), which "
            f"ΔCF and ΔCS need"
        )
    for missing, name in (
        (not part.is_cf.any(), "counterfactual (cf)"),
        (part.is_cf.all(), "commonsense (cs)"),
    ):
        if missing:
            raise UnpriorError(f"task {task} has no {name} row to evaluate; ΔCF and ΔCS need both images of the pairs")


def _delta_bootstrap(
    part: ScoreTable, answers: IntArray, before: IntArray, resamples: int, seed: int, level: float
) -> BootstrapResult:
    """Intervals of ΔCF and ΔCS: gains and row counts add up over pairs, their ratios are the deltas."""
    gain = correct(part, answers).astype(np.float64) - correct(part, before)
    pair, labels = part.codes("model", "benchmark", "pair_id")
    columns = [
        np.bincount(pair, weights=weight * side, minlength=len(labels))
        for side in (part.is_cf, ~part.is_cf)
        for weight in (gain, np.ones(len(part)))
    ]
    return pair_bootstrap(np.stack(columns, axis=1), _deltas, resamples=resamples, seed=seed, level=level)


def _deltas(totals: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample without a side has no delta there
        return totals[:, ::2] / totals[:, 1::2]


def group_rows(table: ScoreTable, *columns: str) -> dict[tuple[Any, ...], IntArray]:
    """Row positions of every group of some columns, in order of the groups' names.

    >>> from unprior import synthesize
    >>> len(group_rows(synthesize(seed=0), "subcategory", "task"))
    28
    """
    code, labels = table.codes(*columns)
    order = sorted(range(len(labels)), key=lambda index: tuple(str(value) for value in labels[index]))
    return {labels[index]: np.flatnonzero(code == index) for index in order}
