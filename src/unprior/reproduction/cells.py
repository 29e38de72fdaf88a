"""Cells of our own, under the rows and columns of the paper's tables and in its units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from numpy.typing import ArrayLike

from unprior.calibration import Decisions
from unprior.errors import UnpriorError
from unprior.evaluation import Change, Evaluation, Metrics, evaluate
from unprior.scores import ScoreTable
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.inputs import StudyInputs


@dataclass(frozen=True, slots=True)
class OwnCell:
    """One number that we computed."""

    row: str
    column: str
    value: float
    """In the unit of the paper's cell; NaN where it is undefined."""
    example: float = 0.0
    """How much one example more or less would change it."""
    model: str = ""
    """Filled in by :func:`each_model`."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, row and column."""
        return self.model, self.row, self.column


@dataclass(frozen=True, slots=True)
class Refused:
    """Scores that a table cannot be computed from, such as rows without categories."""

    model: str
    reason: str


Result = TypeVar("Result")
Cells = Iterator[OwnCell]
OneModel = Callable[[StudyInputs], Cells]
Recomputer = Callable[[Mapping[str, StudyInputs]], Iterator[OwnCell | Refused]]


def each_model(*computes: OneModel) -> Recomputer:
    """Compute the cells of every model from its own scores."""

    def recompute(models: Mapping[str, StudyInputs]) -> Iterator[OwnCell | Refused]:
        for model, inputs in models.items():
            for compute in computes:
                try:
                    yield from (replace(cell, model=model) for cell in compute(inputs))
                except UnpriorError as error:  # one study that cannot be computed must not stop the others
                    yield Refused(model, str(error))

    return recompute


def once(study: Callable[[StudyInputs], Result]) -> Callable[[StudyInputs], Result]:
    """Compute a study that several tables share once for the same scores."""
    results: WeakKeyDictionary[StudyInputs, Result] = WeakKeyDictionary()

    def computed(inputs: StudyInputs) -> Result:
        if inputs not in results:
            results[inputs] = study(inputs)
        return results[inputs]

    return computed


def change_cells(row: str, change: Change, column: str) -> Cells:
    """Δ in points."""
    yield OwnCell(row, column, 100 * change.delta, 100 / change.total if change.total else 0.0)


def delta_cells(row: str, table: ScoreTable, answers: ArrayLike | Decisions) -> Cells:
    """``MC ΔCF``, ``MC ΔCS``, ``QA ΔCF`` and ``QA ΔCS`` of answers to a table, in points.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0).where(split="test")
    >>> [(cell.column, cell.value) for cell in delta_cells("nothing", table, table.original_positions)][:2]
    [('MC ΔCF', 0.0), ('MC ΔCS', 0.0)]
    """
    return trade_off_cells(row, trade_offs(table, answers))


def trade_off_cells(row: str, tasks: Iterable[TradeOff]) -> Cells:
    """``MC ΔCF``, ``MC ΔCS``, ``QA ΔCF`` and ``QA ΔCS`` that a study has, in points."""
    for result in tasks:
        yield from change_cells(row, result.cf, f"{result.task.upper()} ΔCF")
        yield from change_cells(row, result.cs, f"{result.task.upper()} ΔCS")


def count_cells(row: str, change: Change, prefix: str = "") -> Cells:
    """Repairs and harms."""
    yield OwnCell(row, f"{prefix}repairs", change.repairs, 1)
    yield OwnCell(row, f"{prefix}harms", change.harms, 1)


def metric_cells(row: str, metrics: Metrics) -> Cells:
    """The metrics of CDH-Bench, as shares."""
    yield OwnCell(row, "CF-Acc", metrics.cf.value, 1 / metrics.cf.total)
    yield OwnCell(row, "CS-Acc", metrics.cs.value, 1 / metrics.cs.total)
    yield OwnCell(row, "CFAD", metrics.cfad, 1 / metrics.cf.total)
    yield OwnCell(row, "RPD", metrics.rpd, 1 / metrics.cs.count if metrics.cs.count else 0.0)
    yield OwnCell(row, "CCR", metrics.ccr.value, 1 / metrics.ccr.total if metrics.ccr.total else 0.0)


def spc(row: str, epsilon: float, *, uncertainty: bool = False) -> OneModel:
    """The row of SPC itself in a table of Δ by task."""
    return lambda inputs: delta_cells(row, inputs.test, inputs.decisions(epsilon, uncertainty=uncertainty))


def evaluated(inputs: StudyInputs, epsilon: float = 0.04, *, uncertainty: bool = False) -> Evaluation:
    """SPC against the original answers, with intervals and tests."""
    decisions = inputs.decisions(epsilon, uncertainty=uncertainty)
    return evaluate(inputs.test, decisions, resamples=inputs.resamples, seed=inputs.seed)
