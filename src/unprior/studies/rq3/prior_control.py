"""One control of the prior on one task: its runs, and how SPC compares with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.evaluation.metrics import utility
from unprior.tables.format import format_points

CONTROLS = {
    "none": "No prior subtraction (λ = 0)",
    "image": "Image scores as the prior",
    "mean": "Mean development prior",
    "other": "Prior of another question",
    "shuffled": "Prior shuffled across answers",
    "spc": "SPC",
}
"""In the order of the paper."""


@dataclass(frozen=True, slots=True)
class PriorControl:
    """One control on one task: its runs, and SPC's counterfactual answers against each of them."""

    name: str
    epsilon: float
    task: str
    cf: tuple[float, ...]
    """ΔCF of every run."""
    cs: tuple[float, ...]
    """ΔCS of every run."""
    changed: tuple[int, ...]
    """Answers that every run changes, on both sides."""
    p_values: tuple[float, ...]
    """Exact paired test of SPC's CF answers against those of each run; empty for SPC itself."""
    box: tuple[float, ...]
    """2.5, 25, 50, 75 and 97.5 % quantiles of the mean ΔCF over resamples of pairs."""
    abstaining: int
    """Runs in which no setting was feasible."""

    @property
    def utility(self) -> float:
        """U_0.5 of the mean changes."""
        return utility(float(np.mean(self.cf)), float(np.mean(self.cs)))

    def record(self) -> dict[str, Any]:
        """Plain numbers; what is undefined is None."""
        record: dict[str, Any] = {
            "control": self.name, "label": CONTROLS[self.name], "epsilon": self.epsilon, "task": self.task,
            "runs": len(self.cf), "abstaining": self.abstaining, "utility": self.utility,
            "mean_changed": float(np.mean(self.changed)), "largest_p": max(self.p_values, default=None),
        }  # fmt: skip
        for side, values in (("cf", self.cf), ("cs", self.cs)):
            record |= {f"delta_{side}": float(np.mean(values)), f"sd_{side}": _deviation(values)}
        ends = ("low", "lower_quartile", "median", "upper_quartile", "high")
        return record | {f"cf_{end}": value for end, value in zip(ends, self.box, strict=True)}


def _deviation(values: Sequence[float]) -> float | None:
    """Standard deviation over seeds (ddof 1); None for a single run."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def mean_and_deviation(values: Sequence[float]) -> str:
    """Mean ± standard deviation of changes, in points.

    >>> mean_and_deviation([0.01, 0.03]), mean_and_deviation([0.02])
    ('+2.0±1.4', '+2.0')
    """
    deviation = _deviation(values)
    mean = format_points(math.fsum(values) / len(values))
    return mean if deviation is None else f"{mean}±{100 * deviation:.1f}"
