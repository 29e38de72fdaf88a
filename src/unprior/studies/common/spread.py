"""Mean and spread of repeated measurements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.studies.common.trade_off import TradeOff


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one quantity.

    >>> Spread.from_values([0.05, 0.07, 0.06]).shown(2)
    '+6.00 ± 1.00'
    """

    mean: float
    deviation: float
    """Standard deviation of the sample (n − 1); NaN with a single value."""
    low: float
    high: float

    @classmethod
    def from_values(cls, values: Sequence[float]) -> Spread:
        """Summarise at least one value."""
        deviation = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), deviation, min(values), max(values))

    def shown(self, digits: int = 1) -> str:
        """Mean and deviation in points."""
        deviation = "" if math.isnan(self.deviation) else f" ± {100 * self.deviation:.{digits}f}"
        return f"{100 * self.mean + 0.0:+.{digits}f}{deviation}"

    def shown_range(self, digits: int = 1) -> str:
        """Smallest and largest value in points."""
        return f"[{100 * self.low + 0.0:+.{digits}f}, {100 * self.high + 0.0:+.{digits}f}]"

    def record(self, name: str) -> dict[str, Any]:
        """Plain numbers under names that start with ``name``."""
        deviation = None if math.isnan(self.deviation) else self.deviation
        return {
            f"{name}_mean": self.mean, f"{name}_std": deviation, f"{name}_low": self.low, f"{name}_high": self.high
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskSpread:
    """Spread of the trade-off of one task over repetitions."""

    task: str
    cf: Spread
    cs: Spread
    utility: Spread

    @classmethod
    def from_results(cls, results: Sequence[TradeOff]) -> TaskSpread:
        """Summarise the results of one task."""
        values = ([getattr(each, side).delta for each in results] for side in ("cf", "cs"))
        utilities = [each.utility for each in results]
        return cls(results[0].task, *map(Spread.from_values, (*values, utilities)))

    def record(self) -> dict[str, Any]:
        """Plain numbers as shares."""
        return (
            {"task": self.task}
            | self.cf.record("delta_cf")
            | self.cs.record("delta_cs")
            | self.utility.record("utility")
        )


def spreads(repetitions: Iterable[Sequence[TradeOff]]) -> tuple[TaskSpread, ...]:
    """One summary per task over repetitions that all have the same tasks."""
    return tuple(TaskSpread.from_results(of_one_task) for of_one_task in zip(*repetitions, strict=True))
