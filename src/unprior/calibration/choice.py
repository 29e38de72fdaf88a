"""The rule that every selection follows: keep the promise on development data, then be as useful as possible."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unprior.scores.schema import IntArray

_SLACK = 1e-12
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Choice:
    """The best setting, and whether it is one to rely on."""

    index: int
    """In loop order; when nothing is feasible, the best of all settings."""
    feasible: int
    """Settings that keep the promise ΔCF ≥ 0 and ΔCS ≥ −ε on every task."""


def choose(
    net: IntArray, changed: IntArray, totals: IntArray, epsilon_cs: float, rank: IntArray | None = None
) -> Choice:
    """Pick the best feasible setting; without one, the best of all, which the caller may refuse.

    Best means the largest (mean utility, mean ΔCF, mean ΔCS, tasks with ΔCF > 0, −changed answers); remaining ties go
    to the first in loop order, or to the lowest rank. Near ties are settled with exact fractions.

    Parameters
    ----------
    net
        Repairs minus harms, shape (settings, groups); groups are CF and CS of every task in turn.
    changed
        Changed answers of every setting.
    totals
        Rows of every group; a group without rows neither gains nor loses.
    epsilon_cs
        Largest loss of commonsense accuracy to accept on any task.
    rank
        Place of every setting among those that tie in everything else; by default their loop order.

    >>> choose(np.array([[3, -2], [2, 0]]), np.array([5, 2]), np.array([10, 10]), epsilon_cs=0.1)
    Choice(index=1, feasible=1)
    """
    totals = np.maximum(totals, 1)
    cf, cs = net[:, ::2], net[:, 1::2]
    delta_cs = cs / totals[1::2]
    feasible = np.flatnonzero((cf >= 0).all(axis=1) & (delta_cs >= -epsilon_cs - _SLACK).all(axis=1))
    allowed = feasible if len(feasible) else np.arange(len(net))
    utility = (cf[allowed] / totals[::2] + 0.5 * delta_cs[allowed]).mean(axis=1)
    close = allowed[utility >= utility.max() - _CLOSE]
    if rank is not None:
        close = close[np.argsort(rank[close], kind="stable")]
    keys: dict[tuple[int, ...], int] = {}
    for index in close.tolist():  # of equal counts only the first can win
        keys.setdefault((*net[index].tolist(), int(changed[index])), index)
    winner = max(keys, key=lambda counts: exact_value(counts, totals))  # of equal values the first
    return Choice(keys[winner], len(feasible))


def exact_value(counts: tuple[int, ...], totals: IntArray) -> tuple[Fraction, Fraction, Fraction, int, int]:
    """The selection tuple of a setting without rounding (sums instead of means: same order).

    ``counts`` are repairs minus harms of every group, and then the changed answers.
    """
    shares = [Fraction(net, int(total)) for net, total in zip(counts[:-1], totals, strict=True)]
    cf, cs = sum(shares[::2], Fraction()), sum(shares[1::2], Fraction())
    return cf + cs / 2, cf, cs, sum(net > 0 for net in counts[:-1:2]), -counts[-1]
