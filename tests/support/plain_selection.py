"""The selection rule of the paper as plain loops over rows, to check every control against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Finals = list[str | None]


def value(rows: Sequence[Row], finals: Sequence[str | None], epsilon: Fraction) -> tuple[bool, tuple[Any, ...]]:
    """Whether final answers are feasible, and the tuple that selection maximises."""
    cf, cs, changed, feasible = [], [], 0, True
    for task in sorted({row["task"] for row in rows}):
        deltas = []
        for side in ("cf", "cs"):
            net = total = 0
            for row, final in zip(rows, finals, strict=True):
                if (row["task"], row["side"]) == (task, side):
                    total += 1
                    net += (final == row["answer"]) - (row["original"] == row["answer"])
                    changed += final != row["original"]
            deltas.append(Fraction(net, total))
        cf.append(deltas[0])
        cs.append(deltas[1])
        feasible = feasible and deltas[0] >= 0 and deltas[1] >= -epsilon
    gains = sum(delta > 0 for delta in cf)
    return feasible, (sum(cf) + Fraction(1, 2) * sum(cs), sum(cf), sum(cs), gains, -changed)


def best(
    rows: Sequence[Row], settings: Sequence[Any], apply: Callable[[Any], Finals], epsilon: Fraction
) -> tuple[Any, bool]:
    """The first of the best feasible settings, or of all when none is feasible; and whether one is."""
    scored = [(setting, *value(rows, apply(setting), epsilon)) for setting in settings]
    allowed = [entry for entry in scored if entry[1]] or scored
    top = max(entry[2] for entry in allowed)
    chosen = next(entry for entry in allowed if entry[2] == top)
    return chosen[0], chosen[1]
