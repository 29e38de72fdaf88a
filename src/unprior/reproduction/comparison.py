"""Ours beside the paper's, cell by cell, with a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unprior.errors import UnpriorError
from unprior.reproduction.cells import OwnCell, Refused
from unprior.reproduction.compute import RECOMPUTERS
from unprior.reproduction.paper import MODELS, PublishedCell, PublishedTable, published_tables
from unprior.scores import ScoreTable
from unprior.studies.inputs import StudyInputs

_NEEDS = {
    "baselines": "answers of other methods",
    "views": "prior scores from other images",
    "orders": "scores with the options in other orders",
    "forms": "scores of other question forms",
    "external": "scores on other benchmarks",
    "token counts": "token counts of the candidates",
}
"""What a cell may need beyond per-example scores, in words."""


class Verdict(StrEnum):
    """How a cell of ours compares with the paper's."""

    EQUAL = "equal"
    """It rounds to the printed value."""
    CLOSE = "close"
    """It is within one unit of the last printed digit, or one example."""
    DIFFERS = "differs"
    OTHER_SEEDS = "other seeds"
    """It depends on draws whose seeds the paper does not give, so that only the size can be compared."""
    NOT_RECOMPUTED = "not recomputed"


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """One cell of the paper and ours."""

    published: PublishedCell
    ours: float | None
    """In the paper's unit; None where it was not recomputed."""
    verdict: Verdict
    reason: str | None = None
    """Why it was not recomputed."""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None else self.ours - self.published.value

    def record(self) -> dict[str, Any]:
        """Plain values; what is undefined is None."""
        cell = self.published
        return {
            "table": cell.table, "model": cell.model, "row": cell.row, "column": cell.column, "epsilon": cell.epsilon,
            "version": cell.version, "paper": cell.value, "digits": cell.digits, "ours": self.ours,
            "difference": self.difference, "verdict": str(self.verdict), "reason": self.reason, "slip": cell.slip,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReproductionResult:
    """All chosen tables compared.

    >>> from unprior import synthesize
    >>> result = reproduce({"Qwen3-VL-32B": synthesize(seed=0)}, labels=["tab:components"])
    >>> len(result.of("tab:components")), result.counts()[Verdict.NOT_RECOMPUTED]
    (32, 16)
    """

    tables: tuple[PublishedTable, ...]
    cells: tuple[ComparedCell, ...]

    def of(self, label: str) -> tuple[ComparedCell, ...]:
        """The cells of one table."""
        return tuple(cell for cell in self.cells if cell.published.table == label)

    def counts(self, label: str | None = None) -> dict[Verdict, int]:
        """How many cells have each verdict, in one table or in all."""
        found = Counter(cell.verdict for cell in (self.cells if label is None else self.of(label)))
        return {verdict: found[verdict] for verdict in Verdict}

    def records(self) -> list[dict[str, Any]]:
        """One record per cell."""
        return [cell.record() for cell in self.cells]


def judge(cell: PublishedCell, ours: OwnCell) -> Verdict:
    """Compare a number with a printed one, whose own rounding is half a unit of its last digit.

    >>> cell = next(cell for cell in published_tables()["tab:main"].cells if cell.column == "ΔCF")
    >>> [str(judge(cell, OwnCell("SPC", "ΔCF", 100 * gained / 230, 100 / 230))) for gained in (18, 19, 20)]
    ['equal', 'close', 'differs']
    """
    unit = 10.0**-cell.digits
    half = unit / 2 * (1 + 1e-6)
    off = abs(ours.value - cell.value)
    if off <= half:
        return Verdict.EQUAL
    if cell.seeded:
        return Verdict.OTHER_SEEDS
    return Verdict.CLOSE if off <= max(unit, ours.example) + half else Verdict.DIFFERS


def reproduce(
    scores: Mapping[str, ScoreTable],
    *,
    labels: Sequence[str] | None = None,
    tables: Mapping[str, PublishedTable] | None = None,
) -> ReproductionResult:
    """Recompute what can be computed from per-example scores, and put it beside the paper's values.

    Parameters
    ----------
    scores
        Development and test rows by the paper's name of the model.
    labels
        Tables to compare; by default all.
    tables
        The values to compare with; by default the paper's.
    """
    known = published_tables() if tables is None else tables
    unknown = [label for label in labels or () if label not in known]
    if unknown:
        raise UnpriorError(f"no table {', '.join(unknown)}; there are {', '.join(known)}")
    unnamed = [model for model in scores if model not in MODELS]
    if unnamed:
        raise UnpriorError(f"the paper has no model {', '.join(unnamed)}; it has {', '.join(MODELS)}")
    inputs = {model: StudyInputs(scores[model], ties="released") for model in MODELS if model in scores}
    chosen = [table for label, table in known.items() if labels is None or label in labels]
    cells = [cell for table in chosen for cell in _compared(table, inputs)]
    return ReproductionResult(tuple(chosen), tuple(cells))


def _compared(table: PublishedTable, inputs: Mapping[str, StudyInputs]) -> list[ComparedCell]:
    printed = {cell.model for cell in table.cells}
    models = {model: each for model, each in inputs.items() if model in printed or "both" in printed}
    given = list(RECOMPUTERS[table.label](models)) if table.label in RECOMPUTERS else []
    own = {cell.key: cell for cell in given if isinstance(cell, OwnCell)}
    refused = {each.model: each.reason for each in given if isinstance(each, Refused)}
    return [
        _recomputed(cell, own[cell.key])
        if cell.key in own
        else ComparedCell(cell, None, Verdict.NOT_RECOMPUTED, _reason(cell, inputs, refused))
        for cell in table.cells
    ]


def _recomputed(cell: PublishedCell, own: OwnCell) -> ComparedCell:
    if math.isnan(own.value):
        return ComparedCell(cell, None, Verdict.NOT_RECOMPUTED, "undefined on these scores")
    return ComparedCell(cell, float(own.value), judge(cell, own))


def _reason(cell: PublishedCell, inputs: Mapping[str, StudyInputs], refused: Mapping[str, str]) -> str:
    if cell.needs:
        return "needs " + " and ".join(_NEEDS[need] for need in cell.needs)
    wanted: Sequence[str] = [cell.model]
    if cell.column == "Holm p":  # adjusted over the tests of all models
        wanted = MODELS
    elif cell.model == "both":
        wanted = MODELS[:2]
    absent = [model for model in wanted if model not in inputs]
    if absent:
        return f"needs scores of {' and '.join(absent)}"
    return refused.get(cell.model, "cannot be computed from these scores")
