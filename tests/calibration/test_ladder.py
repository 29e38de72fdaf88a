"""Plans and bounds of promises: equal to brute force, and never dependent on scores."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from unprior.calibration.ladder import (
    Plan,
    chance_of_breaking,
    expected_plan,
    pairs_needed,
    plan_steps,
    reserve,
    smallest_epsilon,
    smallest_kept,
    total_chance,
)

LADDER = {
    35: (0.064, 0.107, 0.145),
    70: (0.032, 0.054, 0.074),
    140: (0.016, 0.027, 0.038),
    280: (0.008, 0.014, 0.019),
}


@pytest.mark.parametrize("pairs", LADDER)
def test_the_ladder_of_smallest_limits(pairs: int) -> None:
    found = [smallest_epsilon(pairs, harms=harms) for harms in range(3)]
    assert found == pytest.approx(LADDER[pairs], abs=0.0006)
    for harms, epsilon in enumerate(found):
        assert binom.cdf(harms, pairs, epsilon) == pytest.approx(0.1, rel=1e-9)


@given(
    pairs=st.integers(1, 300),
    tasks=st.integers(1, 5),
    epsilon=st.floats(0.005, 0.5),
    delta=st.sampled_from([0.05, 0.1]),
)
def test_a_plan_keeps_the_promise_with_the_fewest_pairs(pairs: int, tasks: int, epsilon: float, delta: float) -> None:
    plan = plan_steps(pairs, tasks, epsilon, delta)
    if plan is None:
        assert binom.cdf(0, pairs, epsilon) > delta
        return
    assert len(plan.steps) == tasks
    assert plan.pairs <= pairs
    assert list(plan.steps) == sorted(plan.steps, reverse=True)
    total = sum(binom.cdf(step, plan.pairs, epsilon) for step in plan.steps if step >= 0)
    assert total <= delta + 1e-9
    fewer = sum(binom.cdf(step, plan.pairs - 1, epsilon) for step in plan.steps if step >= 0)
    assert fewer > delta or plan.pairs == plan.steps[0] + 1


def test_the_published_steps_for_70_pairs() -> None:
    assert [plan_steps(70, 2, epsilon).steps for epsilon in (0.04, 0.06, 0.10)] == [(0, -1), (1, 0), (3, 2)]  # type: ignore[union-attr]
    assert plan_steps(35 - reserve(35), 2, 0.06) is None
    assert plan_steps(35, 2, 0.06) is None


def test_no_other_steps_promise_more() -> None:
    """Of all steps for two tasks that keep the promise, none allows more to both tasks with as few pairs."""
    plan = plan_steps(130, 2, 0.06)
    assert plan is not None
    for first, second in product(range(12), range(-1, 12)):
        if second <= first and total_chance((first, second), plan.pairs, 0.06) <= 0.1:
            assert first <= plan.steps[0] or second < plan.steps[1]


@given(pairs=st.integers(1, 500), epsilon=st.floats(0.002, 0.9))
def test_the_expected_plan_bounds_the_mean(pairs: int, epsilon: float) -> None:
    plan = expected_plan(pairs, 2, epsilon)
    if plan is None:
        assert epsilon * (pairs + 1) < 1 + 1e-9
        return
    assert plan.pairs <= pairs
    assert smallest_kept(plan, None) <= epsilon + 1e-9


@given(epsilon=st.floats(0.001, 0.5), harms=st.integers(0, 4))
def test_pairs_needed_are_the_fewest(epsilon: float, harms: int) -> None:
    needed = pairs_needed(epsilon, harms=harms)
    assert needed is not None
    assert binom.cdf(harms, needed, epsilon) <= 0.1 + 1e-9
    assert binom.cdf(harms, needed - 1, epsilon) > 0.1 - 1e-9


def test_what_nothing_can_promise() -> None:
    assert pairs_needed(0.0) is None
    assert plan_steps(1000, 2, 0.0) is None
    assert chance_of_breaking(3, 3, 0.1) == 1.0
    assert smallest_epsilon(2, harms=2) == 1.0


def test_the_smallest_limit_of_a_plan_is_sharp() -> None:
    plan = Plan((1, 0), 67)
    kept = smallest_kept(plan, 0.1)
    assert total_chance(plan.steps, plan.pairs, kept) == pytest.approx(0.1, abs=1e-9)
    assert kept < 0.06


def test_many_pairs_are_planned_quickly() -> None:
    plan = plan_steps(100_000, 2, 0.1)
    assert plan is not None
    assert plan.steps[0] > 9_000
