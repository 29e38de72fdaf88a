"""How far may λ move before a proposal changes?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.calibration import Decisions
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.scores.schema import BoolArray
from unprior.scores.table import FloatArray


@dataclass(frozen=True, slots=True)
class TaskRanges:
    """The stable ranges of all proposals of one task, sorted by lower and then by upper end.

    The uncertainty-aware version may propose a candidate that no single strength puts first; such rows have no range
    and are counted in ``without``.
    """

    task: str
    low: FloatArray
    high: FloatArray
    """May be infinite."""
    strength: FloatArray
    """λ that made the proposal."""
    repaired: BoolArray
    harmed: BoolArray
    without: int
    max_strength: float
    """The selected cap λ_max."""
    fixed_strength: float | None
    """λ*, the one strength fitted for all examples, if known."""

    def record(self) -> dict[str, Any]:
        """The paper's summary of the ranges."""
        width = self.high - self.low
        bounded = np.isfinite(width)
        radius = np.minimum(self.strength - self.low, self.high - self.strength)
        return {
            "task": self.task,
            "n": len(self.low),
            "without_range": self.without,
            "median_bounded_width": _median(width[bounded]),
            "share_unbounded": _mean(~bounded),
            "max_strength": self.max_strength,
            "share_max_strength_inside": _mean(self._inside(self.max_strength)),
            "fixed_strength": self.fixed_strength,
            "share_fixed_strength_outside": (
                None if self.fixed_strength is None else _mean(~self._inside(self.fixed_strength))
            ),
            "median_radius_repaired": _median(radius[self.repaired]),
            "median_radius_harmed": _median(radius[self.harmed]),
        }

    def _inside(self, strength: float) -> BoolArray:
        return (self.low <= strength) & (strength <= self.high)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Stable ranges by task; empty for a calibrator that abstains.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_ranges(SelectivePriorCalibrator().fit(table).predict(table))
    >>> [(task.task, len(task.low)) for task in result.tasks]
    [('mc', 600), ('qa', 600)]
    """

    tasks: tuple[TaskRanges, ...]

    def records(self) -> list[dict[str, Any]]:
        """One summary per task."""
        return [task.record() for task in self.tasks]


def study_ranges(decisions: Decisions, *, fixed_strength: float | None = None) -> Ranges:
    """Collect the stable ranges of all proposals, task by task."""
    if decisions.settings is None:
        return Ranges(())
    table = decisions.table
    before, after = correct(table, table.original), correct(table, decisions.final)
    results = []
    for (task,), rows in group_rows(table, "task").items():
        found = rows[~np.isnan(decisions.range_low[rows])]
        order = found[np.lexsort((decisions.range_high[found], decisions.range_low[found]))]
        results.append(
            TaskRanges(
                task=str(task),
                low=decisions.range_low[order],
                high=decisions.range_high[order],
                strength=decisions.strength[order],
                repaired=(~before & after)[order],
                harmed=(before & ~after)[order],
                without=len(rows) - len(found),
                max_strength=decisions.settings.max_strength,
                fixed_strength=fixed_strength,
            )
        )
    return Ranges(tuple(results))


def _median(values: FloatArray) -> float | None:
    """None without values, and where the middle is infinite."""
    middle = float(np.median(values)) if len(values) else math.inf
    return middle if math.isfinite(middle) else None


def _mean(flags: BoolArray) -> float | None:
    return float(flags.mean()) if len(flags) else None
