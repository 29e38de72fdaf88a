"""Mean and spread of repeated measurements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class TaskSpread:
    """Spread of the trade-off of one task over repetitions."""

    task: str
    cf: Spread
    cs: Spread


def spreads(repetitions: Iterable[Sequence[TradeOff]]) -> tuple[TaskSpread, ...]:
    """One summary per task over repetitions that all have the same tasks."""
    found = []
    for results in zip(*repetitions, strict=True):
        cf, cs = [each.cf.delta for each in results], [each.cs.delta for each in results]
        found.append(TaskSpread(results[0].task, Spread.from_values(cf), Spread.from_values(cs)))
    return tuple(found)
