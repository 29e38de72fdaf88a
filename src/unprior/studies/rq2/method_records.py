"""Results of a method on one line, because records are flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unprior.evaluation import SideResult, TaskResult
from unprior.scores.files import finite_or_none

_SIDE: dict[str, Callable[[SideResult], float | int | None]] = {
    "delta_{}": lambda side: side.change.delta,
    "{}_low": lambda side: finite_or_none(side.low),
    "{}_high": lambda side: finite_or_none(side.high),
    "{}_repairs": lambda side: side.change.repairs,
    "{}_harms": lambda side: side.change.harms,
    "{}_changed": lambda side: side.change.changed,
    "{}_total": lambda side: side.change.total,
    "{}_p": lambda side: side.test.p_value,
    "{}_holm_p": lambda side: side.holm_p,
}


def flat_sides(prefix: str, result: TaskResult | None) -> dict[str, Any]:
    """Changes, intervals and tests of both sides as flat fields; all None without a result."""
    sides = {"cf": None, "cs": None} if result is None else {"cf": result.cf, "cs": result.cs}
    return {
        prefix + name.format(side): None if found is None else value(found)
        for side, found in sides.items()
        for name, value in _SIDE.items()
    }


def in_words(settings: Mapping[str, Any]) -> str | None:
    """Settings on one line, because a record is flat.

    >>> in_words({"scale": {"mc": 1.1, "qa": 2.0}, "min_margin": 0.05})
    'scale mc 1.1 qa 2, min margin 0.05'
    """

    def shown(value: Any) -> str:
        if isinstance(value, Mapping):
            return " ".join(f"{name} {shown(entry)}" for name, entry in value.items())
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in settings.items()) or None
