"""What so many pairs can promise: exact binomial bounds, and plans made from n, ε and δ before any score is seen.

A certificate allows k harmed answers among m pairs. It breaks its promise only if the true rate of harm exceeds ε
although no more than k were seen, and the chance of that is F(k, m), the binomial distribution function at ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from unprior.errors import UnpriorError, format_option
from unprior.scores.table import FloatArray

DELTA = 0.1
"""How often a promise may break, over draws of the development pairs."""
_ROUNDING = 1e-12
_MANY_TASKS = 3  # beyond it, all tasks after the first share one step
_TRIED = 12  # steps below the largest that is affordable; lower ones waste what is allowed
_DRAWS, _SEED = 2000, 0
_MANY_HARMS = 64  # beyond it, chance moves the root of the harm by less than a hundredth
MOST_PAIRS = 10_000_000
"""Nobody labels more."""
_LEAST_DELTA = 1e-9


@dataclass(frozen=True, slots=True)
class Plan:
    """How many pairs set the thresholds, and how many harmed answers they may show."""

    steps: tuple[int, ...]
    """Harms allowed to the first task that reaches its limit, to the second, and so on; −1 stops all that are left."""
    pairs: int
    """Pairs that set the thresholds."""


def chance_of_breaking(harms: int, pairs: int, epsilon: float) -> float:
    """F: the chance to see no more than so many harmed answers when the true rate is ε.

    >>> round(chance_of_breaking(0, 57, 0.04), 3), chance_of_breaking(-1, 57, 0.04)
    (0.098, 0.0)
    """
    from scipy.special import bdtr  # scipy takes as long to import as all the rest

    if harms < 0:
        return 0.0
    return 1.0 if harms >= pairs else float(bdtr(harms, pairs, epsilon))


def total_chance(steps: Sequence[int], pairs: int, epsilon: float) -> float:
    """The largest chance that any of several tasks breaks the promise."""
    return sum(chance_of_breaking(step, pairs, epsilon) for step in steps)


def smallest_epsilon(pairs: int, delta: float = DELTA, harms: int = 0, weight: float = 1.0) -> float:
    """The smallest ε that so many pairs can certify when they may show this many harmed answers.

    ``weight`` is the largest factor by which a kind of pair is more frequent in the target than in the development
    pairs; see :class:`~unprior.calibration.certificate.Certificate`.

    >>> [round(smallest_epsilon(70, harms=harms), 3) for harms in range(3)]
    [0.032, 0.054, 0.074]
    """
    from scipy.special import betaincinv

    if harms >= pairs:
        return 1.0
    return min(1.0, weight * float(betaincinv(harms + 1, pairs - harms, 1.0 - delta)))


def pairs_needed(epsilon: float, delta: float = DELTA, harms: int = 0, weight: float = 1.0) -> int | None:
    """The fewest pairs that certify ε when they may show this many harmed answers; None beyond ten millions.

    >>> pairs_needed(0.04), pairs_needed(0.04, harms=1)
    (57, 96)
    """
    rate = epsilon / weight
    if chance_of_breaking(harms, MOST_PAIRS, rate) > delta:
        return None
    low, high = harms, MOST_PAIRS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance_of_breaking(harms, middle, rate) <= delta + _ROUNDING else (middle, high)
    return high


def reserve(pairs: int) -> int:
    """Pairs that are kept for the strength before anything is planned."""
    return 3 if pairs < 100 else 10


def with_reserve(planned: Callable[[int], Plan | None], pairs: int) -> tuple[Plan | None, bool]:
    """A plan that spares pairs for the strength, or else one for all pairs; and whether it spares some.

    >>> with_reserve(lambda most: plan_steps(most, 2, 0.06), 70), with_reserve(lambda most: None, 70)
    ((Plan(steps=(1, 0), pairs=67), True), (None, False))
    """
    plan = planned(pairs - reserve(pairs))
    return (plan, True) if plan is not None else (planned(pairs), False)


@lru_cache(maxsize=256)
def plan_steps(pairs: int, tasks: int, epsilon: float, delta: float = DELTA) -> Plan | None:
    """The plan with the largest expected repair that keeps the promise with at most so many pairs; None without any.

    Repair grows about like the square root of the harm that is allowed, so the plan maximises the mean of that root.
    It knows nothing but its arguments.

    >>> plan_steps(67, 2, 0.04), plan_steps(67, 2, 0.06), plan_steps(40, 2, 0.04)
    (Plan(steps=(0, -1), pairs=57), Plan(steps=(1, 0), pairs=67), None)
    """
    best: tuple[float, Plan] | None = None
    for steps in _affordable(pairs, tasks, epsilon, delta):
        fewest = _fewest_pairs(steps, pairs, epsilon, delta)
        value = _expected_root(steps) / math.sqrt(fewest)
        if best is None or value > best[0]:
            best = value, Plan(steps, fewest)
    return None if best is None else best[1]


def _affordable(pairs: int, tasks: int, epsilon: float, delta: float) -> Iterator[tuple[int, ...]]:
    """Steps that never rise and together break the promise with a chance of at most δ."""

    def largest(limit: float) -> int:
        """The largest step with a chance of at most this."""
        low, high = -1, pairs
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if chance_of_breaking(middle, pairs, epsilon) <= limit else (low, middle)
        return low

    def extend(steps: tuple[int, ...], left: float) -> Iterator[tuple[int, ...]]:
        if len(steps) == tasks:
            yield steps
            return
        alike = tasks - len(steps) if steps and tasks > _MANY_TASKS else 1
        highest = min(largest((left + _ROUNDING) / alike), *steps[-1:], pairs)
        for step in range(highest, -2 if steps else -1, -1)[:_TRIED]:
            yield from extend(steps + alike * (step,), left - alike * chance_of_breaking(step, pairs, epsilon))

    return extend((), delta)


def _fewest_pairs(steps: tuple[int, ...], pairs: int, epsilon: float, delta: float) -> int:
    low, high = steps[0], pairs
    while high - low > 1:
        middle = (low + high) // 2
        kept = total_chance(steps, middle, epsilon) <= delta + _ROUNDING
        low, high = (low, middle) if kept else (middle, high)
    return high


@cache
def _arrivals(tasks: int, harms: int) -> FloatArray:
    """Where harmed answers stand when thresholds fall, by draw and task: equal tasks, one harm per unit."""
    gaps = np.random.default_rng(_SEED).exponential(size=(_DRAWS, harms, tasks))
    return np.cumsum(gaps, axis=1)


@cache
def _expected_root(steps: tuple[int, ...]) -> float:
    """Mean square root of the harm at which tasks stop."""
    if steps[0] > _MANY_HARMS:
        return float(np.sqrt(np.maximum(np.array(steps) + 1.0, 0.0)).mean())
    arrivals = _arrivals(len(steps), 16 * (1 + steps[0] // 16))
    draws = np.arange(_DRAWS)
    stops = np.zeros((_DRAWS, len(steps)))
    running = np.ones((_DRAWS, len(steps)), dtype=np.bool_)
    level = np.zeros(_DRAWS)
    for step in steps:
        if step < 0:
            break
        reached = np.where(running, np.maximum(arrivals[:, step], level[:, None]), np.inf)
        first = reached.argmin(axis=1)
        level = reached[draws, first]
        stops[draws, first], running[draws, first] = level, False
    return float(np.sqrt(np.where(running, level[:, None], stops)).mean())


def expected_plan(pairs: int, tasks: int, epsilon: float) -> Plan | None:
    """Harms allowed so that the mean rate of harm is at most ε in every task (conformal risk control).

    >>> expected_plan(70, 2, 0.04), expected_plan(20, 2, 0.04)
    (Plan(steps=(1, 1), pairs=49), None)
    """
    step = min(pairs, math.floor(epsilon * (pairs + 1) + _ROUNDING)) - 1
    return None if step < 0 else Plan((step,) * tasks, max(step + 1, math.ceil((step + 1) / epsilon - _ROUNDING) - 1))


def smallest_kept(plan: Plan, delta: float | None) -> float:
    """The smallest ε whose promise the same plan keeps; without δ that of the mean.

    >>> round(smallest_kept(Plan((0, -1), 57), 0.1), 4), smallest_kept(Plan((1, 1), 49), None)
    (0.0396, 0.04)
    """
    if delta is None:
        return (plan.steps[0] + 1) / (plan.pairs + 1)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if total_chance(plan.steps, plan.pairs, middle) <= delta else (middle, high)
    return high


def check_delta(delta: float) -> None:
    """Refuse a chance that is none, or one that promises nothing.

    >>> check_delta(0.9)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: delta=0.9 (command line: --delta 0.9): the chance that the promise breaks must be ...
    """
    number = isinstance(delta, int | float | np.integer | np.floating) and not isinstance(delta, bool)
    if not number or not _LEAST_DELTA <= delta <= 0.5:
        raise UnpriorError(
            f"{format_option('delta', delta)}: the chance that the promise breaks must be above 0 and at most 0.5 (0.1)"
        )
