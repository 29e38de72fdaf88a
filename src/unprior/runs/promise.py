"""What `unprior plan` tells: which promise so many development pairs can carry, before any of them is labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from unprior.benchmarks.mixtures import read_mixture
from unprior.calibration.certificate import mixture_weight
from unprior.calibration.ladder import (
    DELTA,
    MOST_PAIRS,
    Plan,
    check_delta,
    pairs_needed,
    plan_steps,
    smallest_epsilon,
    with_reserve,
)
from unprior.errors import UnpriorError, format_option, require_type
from unprior.tables.format import format_count
from unprior.tables.model import Table

_PAIRS = (35, 70, 140, 280, 560)
_HARMS = (0, 1, 2, 3)
_JUST_ABOVE = 1.15
_MOST_TASKS = 20


@dataclass(frozen=True, slots=True)
class PlannedPromise:
    """The ladder of promises.

    >>> planned = plan_promise(0.04, 70)
    >>> [round(step, 3) for step in planned.ladder[70]]
    [0.033, 0.055, 0.075, 0.093]
    """

    epsilon: float
    delta: float
    tasks: int
    weight: float
    """w: how much more frequent a subcategory may be in the target than among the development pairs."""
    pairs: tuple[int, ...]
    """Numbers of development pairs."""

    @property
    def ladder(self) -> dict[int, tuple[float, ...]]:
        """For every number of pairs, the smallest ε with 0, 1, 2 and 3 harms, rounded up to a thousandth."""
        return {
            pairs: tuple(
                min(1.0, math.ceil(1000 * smallest_epsilon(pairs, self.delta, harms, self.weight) - 1e-9) / 1000)
                for harms in _HARMS
            )
            for pairs in self.pairs
        }

    @property
    def needed(self) -> tuple[int | None, ...]:
        """Pairs that ε needs with 0, 1, 2 and 3 harms."""
        return tuple(pairs_needed(self.epsilon, self.delta, harms, self.weight) for harms in _HARMS)

    def plan_for(self, pairs: int) -> tuple[Plan | None, bool]:
        """What a fit on so many pairs would do, and whether it can set pairs aside for the strength."""
        rate = self.epsilon / self.weight
        return with_reserve(lambda most: plan_steps(most, self.tasks, rate, self.delta), pairs)

    def _just_above(self, pairs: int) -> float | None:
        """A slightly larger ε that allows more harms."""
        plan, _ = self.plan_for(pairs)
        first = math.floor(1000 * self.epsilon + 1e-9) + 1
        for thousandths in range(first, math.ceil(1000 * _JUST_ABOVE * self.epsilon)):
            other, _ = replace(self, epsilon=thousandths / 1000).plan_for(pairs)
            if plan and other and sum(other.steps) > sum(plan.steps):
                return thousandths / 1000
        return None

    @property
    def table(self) -> Table:
        """The ladder."""
        rows = [
            (f"{pairs:,}", *(f"{step:g}" for step in steps), _described(*self.plan_for(pairs)))
            for pairs, steps in self.ladder.items()
        ]
        needed = ["–" if count is None else f"{count:,}" for count in self.needed]
        rows.append((f"pairs for ε = {self.epsilon:g}", *needed, ""))
        columns = ("Pairs", *(format_count(harms, "harm") for harms in _HARMS), f"at ε = {self.epsilon:g}")
        return Table.plain(
            f"The smallest ε that can be promised with {100 * (1 - self.delta):.4g} % confidence",
            columns,
            rows,
            "By the number of harmed answers among the pairs that set the thresholds: more harms, more repair. "
            "The last column: what a fit would allow to each task in turn, and how many pairs it would use.",
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What it means for ε, in sentences."""
        sentences = []
        for pairs in self.pairs:
            plan, _ = self.plan_for(pairs)
            least = self.ladder[pairs][0]
            if plan is None:
                sentences.append(
                    f"{pairs:,} pairs cannot promise ε = {self.epsilon:g}: a calibrator fitted on them would change "
                    f"nothing. The smallest ε that they can promise is {least:g}."
                )
        first = self.needed[0]
        if first is not None:
            sentences.append(f"ε = {self.epsilon:g} needs at least {first:,} pairs.")
        if len(self.pairs) == 1 and (better := self._just_above(self.pairs[0])):
            sentences.append(
                f"ε = {better:g} is just above a step: it allows more harmed answers than ε = {self.epsilon:g}, and so "
                f"more repair."
            )
        if self.weight > 1:
            sentences.append(
                f"A subcategory is {self.weight:.3f} times as frequent in the target as among development pairs of "
                f"which every subcategory has equally many, so ε counts as {self.epsilon / self.weight:.4f}."
            )
        return tuple(sentences)

    def record(self) -> dict[str, Any]:
        """Plain values."""
        plans = {pairs: self.plan_for(pairs) for pairs in self.pairs}
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "tasks": self.tasks,
            "weight": self.weight,
            "pairs_needed": list(self.needed),
            "pairs": [
                {
                    "pairs": pairs,
                    "smallest_epsilon": [smallest_epsilon(pairs, self.delta, harms, self.weight) for harms in _HARMS],
                    "steps": list(plan.steps) if plan else None,
                    "calibration": plan.pairs if plan else None,
                    "strength": None if plan is None else "split" if split else "fixed",
                }
                for pairs, (plan, split) in plans.items()
            ],
        }


def plan_promise(
    epsilon: float, pairs: int | None = None, *, delta: float = DELTA, tasks: int = 2, target_mixture: str | None = None
) -> PlannedPromise:
    """Plan a promise.

    Parameters
    ----------
    epsilon, delta
        The largest rate of harm on new pairs, and how often the promise may break.
    pairs
        Development pairs; by default several numbers.
    tasks
        Tasks that are promised together.
    target_mixture
        ``cdh-bench`` or a JSON file of shares, when the development pairs have equally many of every subcategory.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon <= 1.0:
        raise UnpriorError(f"{format_option('epsilon', epsilon)}: a rate of harm is above 0 and at most 1 (0.04)")
    if pairs is not None and not _is_count(pairs, MOST_PAIRS):
        raise UnpriorError(f"{format_option('pairs', pairs)}: give a whole number from 1 to {MOST_PAIRS:,}")
    if not _is_count(tasks, _MOST_TASKS):
        raise UnpriorError(f"{format_option('tasks', tasks)}: give a whole number from 1 to {_MOST_TASKS}")
    require_type("target_mixture", target_mixture, str | None, "cdh-bench, or the path of a JSON file")
    check_delta(delta)
    weight = 1.0
    if target_mixture is not None:
        target = read_mixture(target_mixture)
        weight = mixture_weight(target, {name: 1.0 for name, share in target.items() if share > 0})
    return PlannedPromise(epsilon, delta, tasks, weight, _PAIRS if pairs is None else (pairs,))


def _is_count(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _described(plan: Plan | None, split: bool) -> str:
    if plan is None:
        return "abstains"
    steps = ", ".join(str(step) if step >= 0 else "stop" for step in plan.steps)
    return f"{steps} of {plan.pairs:,}{'' if split else ', λ = 1'}"
