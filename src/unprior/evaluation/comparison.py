"""The main comparison: original answers against a method's, with paired intervals and exact tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unprior.calibration import Decisions
from unprior.errors import UnpriorError, did_you_mean
from unprior.evaluation.metrics import Change, Metrics, as_answers, compare, correct, measure, utility
from unprior.evaluation.show import as_text, changes_table, flat_record, main_table, nested_record
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
from unprior.tables.format import format_changes
from unprior.tables.model import Table
from unprior.tables.records import to_pandas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from unprior.plots.style import FigureStyle


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
    group: str | None = None
    """The group of rows, where the evaluation has groups."""

    @property
    def utility(self) -> float:
        """U_0.5 = ΔCF + 0.5 ΔCS."""
        return utility(self.cf.change.delta, self.cs.change.delta)

    @property
    def changes(self) -> str:
        """ΔCF/ΔCS in points, as tables show them."""
        return format_changes(self.cf.change.delta, self.cs.change.delta)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """All tasks of a table; the Holm family is every side of every task, and of every group, in it.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = evaluate(table, SelectivePriorCalibrator().fit(table).predict(table))
    >>> [row.cells[:4] for row in result.table.rows][:2]
    [('MC', 'Original', '0.547', '0.960'), ('', 'SPC (standard, ε = 0.04)', '0.770', '0.940')]
    """

    tasks: tuple[TaskResult, ...]
    """One result for every task of every model and benchmark, and for every group where there are groups."""
    level: float
    """Coverage of the intervals."""
    resamples: int
    seed: int
    method: str = field(default="Method", compare=False)
    """What tables call the answers that are evaluated."""
    reference: str = field(default="Original", compare=False)
    """What tables call the answers that they are compared with."""
    by: str | None = None
    """The column whose values are the groups."""
    left_out: tuple[str, ...] = ()
    """Tasks and groups without both sides, which have no result."""

    @property
    def family(self) -> int:
        """Number of tests that the Holm adjustment covers."""
        return 2 * len(self.tasks)

    @property
    def table(self) -> Table:
        """The paper's main table: accuracies of both sides, the gap between them, and what changed."""
        return main_table(self)

    @property
    def changes_table(self) -> Table:
        """Changes of accuracy with their intervals, repairs and harms, and exact tests."""
        return changes_table(self)

    def records(self) -> list[dict[str, Any]]:
        """One flat dictionary of plain values for every task and group; what is undefined is None."""
        return [flat_record(task, self.by) for task in self.tasks]

    def record(self) -> dict[str, Any]:
        """Everything in the tables as one nested dictionary, as ``report.json`` has it; what is undefined is None.

        >>> from unprior import synthesize
        >>> table = synthesize(seed=0)
        >>> evaluate(table, table.original).record()["tasks"][0]["utility"]
        0.0
        """
        return nested_record(self)

    def to_pandas(self) -> pd.DataFrame:
        """The records as a data frame."""
        return to_pandas(self.records())

    def plot(self, ax: Axes | None = None, style: FigureStyle | None = None) -> Axes:
        """Draw the changes with their intervals on given axes or on new ones; returns the axes."""
        from unprior.evaluation.intervals import IntervalsDisplay
        from unprior.plots.style import LIGHT

        return IntervalsDisplay.from_results(self, ax=ax, style=style or LIGHT).axes_

    def __repr__(self) -> str:
        """A line for every task and group."""
        return as_text(self)

    def _repr_html_(self) -> str:
        """Both tables, for notebooks."""
        from unprior.tables.html import as_html

        return as_html(self.table) + as_html(self.changes_table)


def evaluate(
    table: ScoreTable,
    answers: ArrayLike | Decisions,
    *,
    reference: ArrayLike | Decisions | None = None,
    by: str | None = None,
    method: str | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
    level: float = 0.95,
) -> Evaluation:
    """Compare decisions, or any answers, with the original answers.

    Parameters
    ----------
    table
        Scores with answers; both sides of every task must be present.
    answers
        Decisions, labels (None for no answer), or candidate positions (-1 for none).
    reference
        Takes the place of the original answers, such as those of the same decoder without its correction.
    by
        A column such as ``subcategory``: every task is then evaluated in every group of rows. Groups without both
        sides have no result and are named in ``left_out``.
    method
        What tables call the answers; decisions have a name of their own.
    resamples, seed, level
        Of the bootstrap intervals.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> test = table.where(split="test")
    >>> result = evaluate(test, SelectivePriorCalibrator().fit(table).predict(test))
    >>> [task.task for task in result.tasks], result.family
    (['mc', 'qa'], 4)
    >>> groups = evaluate(test, test.answer, by="subcategory", resamples=100)
    >>> len(groups.tasks), groups.tasks[0].group, groups.family
    (28, 'Animal Behavior', 56)
    """
    name = answers.method if isinstance(answers, Decisions) else "Method"
    answers = as_answers(table, answers)
    before = table.original_positions if reference is None else as_answers(table, reference)
    check_pairs(table_pairs(table), complete=False).refuse(table.source, skippable=True)
    parts, left_out = [], []
    for label, rows in _groups(table, by).items():
        part, given, base = table.take(rows), answers[rows], before[rows]
        if by is not None and part.is_paired.all() and part.is_cf.all() == part.is_cf.any():
            left_out.append(f"{label[2].upper()} {label[3]}")
            continue
        _check_both_sides(part, label[2])
        parts.append((label, part, given, base, _delta_bootstrap(part, given, base, resamples, seed, level)))
    if not parts:
        raise UnpriorError(f"no group of {by} has both images of its pairs, which ΔCF and ΔCS need")
    changes = [
        [compare(part, given, side=side, reference=base) for side in ("cf", "cs")] for _, part, given, base, _ in parts
    ]
    tests = [mcnemar(change.repairs, change.harms) for pair in changes for change in pair]
    adjusted = holm([test.p_value for test in tests]).adjusted
    results = []
    for index, ((model, benchmark, task, group), part, given, base, interval) in enumerate(parts):
        cf, cs = (
            SideResult(
                changes[index][side],
                interval.low[side],
                interval.high[side],
                tests[2 * index + side],
                adjusted[2 * index + side],
            )
            for side in (0, 1)
        )
        results.append(TaskResult(model, benchmark, task, measure(part, base), measure(part, given), cf, cs, group))
    return Evaluation(
        tuple(results),
        level,
        resamples,
        seed,
        method=method or name,
        reference="Original" if reference is None else "Reference",
        by=by,
        left_out=tuple(left_out),
    )


def _groups(table: ScoreTable, by: str | None) -> dict[tuple[Any, ...], IntArray]:
    """Rows by model, benchmark, task and, if asked for, the text of one more column."""
    columns = ("model", "benchmark", "task")
    if by is None:
        return {(*label, None): rows for label, rows in group_rows(table, *columns).items()}
    known = [field.name for field in table.arrow.schema if not pa.types.is_nested(field.type)]
    if by not in known:
        raise UnpriorError(f"cannot group by {by!r}{did_you_mean(by, known)}; choose one of {', '.join(known)}")
    grouped = group_rows(table, *columns, by)
    taken = {str(label[3]) for label in grouped if label[3] is not None}
    nothing = next(name for name in ("not given", "(not given)", "((not given))") if name not in taken)
    return {(*label[:3], nothing if label[3] is None else str(label[3])): rows for label, rows in grouped.items()}


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
