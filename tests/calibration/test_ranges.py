from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import straightforward
from unprior import UnpriorError, recovery_bound, stable_ranges

scores = st.integers(2, 6).flatmap(
    lambda count: st.tuples(*(arrays(np.float64, count, elements=st.integers(-40, 40).map(lambda x: x / 8)),) * 2)
)


@given(scores, st.integers(0, 5))
def test_stable_range_equals_a_fine_grid(pair: tuple[np.ndarray, np.ndarray], which: int) -> None:
    image, prior = pair
    candidate = which % len(image)
    lower, upper = (float(end[0]) for end in stable_ranges(image[:, None], prior[:, None], np.array([candidate])))
    grid = np.linspace(0.0, 12.0, 2401)
    corrected = image[:, None] - grid * prior[:, None]
    first = corrected[candidate] >= corrected.max(axis=0) - 1e-9
    inside = (grid >= lower - 1e-9) & (grid <= upper + 1e-9)  # all False for an empty range (nan)
    np.testing.assert_array_equal(first, inside)
    np.testing.assert_allclose((lower, upper), straightforward.stable_range(image, prior, candidate))


def test_an_empty_range_is_nan() -> None:
    lower, upper = stable_ranges(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]), np.array([0]))
    assert np.isnan([lower[0], upper[0]]).all()


terms = st.integers(2, 5).flatmap(
    lambda count: st.tuples(*(arrays(np.float64, count, elements=st.floats(-5, 5, width=32)),) * 3)
)


@given(terms, st.integers(0, 4), st.floats(0.01, 4), st.floats(0, 3), st.floats(-1, 1))
def test_within_the_bound_the_visual_answer_is_the_unique_winner(
    parts: tuple[np.ndarray, np.ndarray, np.ndarray], which: int, gap: float, influence: float, offset: float
) -> None:
    visual, prior, residual = parts
    answer = which % len(visual)
    visual = visual.copy()
    visual[answer] = visual.max() + np.ptp(residual) + gap  # the image supports the answer beyond the residual
    bound = recovery_bound(visual, prior, residual, answer)
    assert bound.radius > 0
    strength = influence + offset * min(bound.radius, 10.0) * (1 - 1e-6)
    assert bound.guarantees(strength, influence)
    corrected = visual + influence * prior + residual - strength * prior
    assert corrected[answer] > np.delete(corrected, answer).max()


def test_the_bound_is_tight() -> None:
    """At the edge of the radius a rival catches up, so the bound cannot be wider."""
    bound = recovery_bound([2.0, 0.0], [-1.0, 1.0], [0.0, 0.5], 0)
    assert bound.radius == pytest.approx(0.75)
    assert not bound.guarantees(influence=1.0, strength=1.0 - 0.75)
    corrected = np.array([2.0, 0.0]) + (1.0 - 0.25) * np.array([-1.0, 1.0]) + np.array([0.0, 0.5])
    assert corrected[0] == pytest.approx(corrected[1])


@pytest.mark.parametrize(
    ("visual", "prior", "residual", "radius"),
    [
        ([1.0, 0.0], [3.0, 3.0], [0.0, 0.0], np.inf),  # a flat prior changes no order
        ([1.0, 0.0], [3.0, 3.0], [0.0, 1.0], 0.0),  # the residual eats the margin
        ([0.0, 1.0], [3.0, 0.0], [0.0, 0.0], 0.0),  # the image does not support the answer
    ],
)
def test_limits_of_the_bound(visual: list[float], prior: list[float], residual: list[float], radius: float) -> None:
    assert recovery_bound(visual, prior, residual, 0).radius == radius


@pytest.mark.parametrize(
    ("visual", "answer", "message"),
    [([1.0], 0, "same length"), ([1.0, 2.0, 3.0], 0, "same length"), ([1.0, 2.0], 2, "0 to 1")],
)
def test_bad_arguments_are_named(visual: list[float], answer: int, message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        recovery_bound(visual, [0.0, 0.0], [0.0, 0.0], answer)
