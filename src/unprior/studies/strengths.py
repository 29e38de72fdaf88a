"""Which strengths the calibrator gave: does it subtract more where the prior misleads?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.calibration import Decisions
from unprior.evaluation.comparison import group_rows
from unprior.scores.table import FloatArray


@dataclass(frozen=True, slots=True)
class StrengthGroup:
    """The strengths of one side of one task."""

    task: str
    side: str
    values: FloatArray
    """λ of every example, in the order of the table."""
    at_cap: int
    """How many reach the cap λ_max."""

    def record(self) -> dict[str, Any]:
        """Size, mean, quartiles, and the share at the cap."""
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75]).tolist()
        return {
            "task": self.task,
            "side": self.side,
            "n": len(self.values),
            "mean": float(self.values.mean()),
            "lower_quartile": low,
            "median": middle,
            "upper_quartile": high,
            "share_at_cap": self.at_cap / len(self.values),
        }


@dataclass(frozen=True, slots=True)
class Strengths:
    """The distribution of λ by task and side.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_strengths(SelectivePriorCalibrator().fit(table).predict(table))
    >>> [(group.task, group.side) for group in result.groups]
    [('mc', 'cf'), ('mc', 'cs'), ('qa', 'cf'), ('qa', 'cs')]
    """

    groups: tuple[StrengthGroup, ...]
    max_strength: float | None
    """The cap λ_max; None from a calibrator that abstains, which then has no groups."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks with strengths."""
        return tuple(dict.fromkeys(group.task for group in self.groups))

    def of(self, task: str) -> tuple[StrengthGroup, ...]:
        """Both sides of one task."""
        return tuple(group for group in self.groups if group.task == task)

    def records(self) -> list[dict[str, Any]]:
        """One record per task and side."""
        return [group.record() for group in self.groups]


def study_strengths(decisions: Decisions) -> Strengths:
    """Collect the strengths by task and side."""
    if decisions.settings is None:
        return Strengths((), None)
    cap = decisions.settings.max_strength
    groups = []
    for (task, side), rows in group_rows(decisions.table, "task", "side").items():
        values = decisions.strength[rows]
        groups.append(StrengthGroup(str(task), str(side), values, int((values >= cap).sum())))
    return Strengths(tuple(groups), cap)
