from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unprior.baselines.controls.learned import GRADIENT_TOLERANCE, NEVER, _middle_thresholds, fit_logistic


@pytest.mark.parametrize("penalty", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", ["noisy", "separable", "never"])
def test_the_fit_is_the_minimum(penalty: float, kind: str) -> None:
    generator = np.random.default_rng(7)
    inputs = np.hstack([np.ones((60, 1)), generator.normal(size=(60, 12))])
    clear = inputs[:, 1] > 0.3
    target = {"noisy": generator.random(60) < 0.3, "separable": clear, "never": np.zeros(60, dtype=np.bool_)}[kind]

    def loss(weights: np.ndarray) -> float:
        eta = inputs @ weights
        return float(np.logaddexp(0.0, eta).sum() - eta @ target + penalty / 2 * weights @ weights)

    weights = fit_logistic(inputs, target, penalty)
    gradient = inputs.T @ (1 / (1 + np.exp(-inputs @ weights)) - target) + penalty * weights
    assert np.linalg.norm(gradient) <= GRADIENT_TOLERANCE
    theirs = minimize(loss, np.zeros(13), method="BFGS")
    assert loss(weights) <= theirs.fun + 1e-9
    np.testing.assert_allclose(weights, theirs.x, atol=2e-3)


def test_large_inputs_do_not_overflow() -> None:
    inputs = np.hstack([np.ones((4, 1)), np.array([[-1e4], [-1e3], [1e3], [1e4]])])
    weights = fit_logistic(inputs, np.array([False, False, True, True]), 0.01)
    assert np.isfinite(weights).all()
    assert weights[1] > 0


@pytest.mark.parametrize(
    ("chance", "reached", "thresholds"),
    [
        # Two revisable rows: below the first, between the two, above the second.
        ([0.2, 0.6], [0.2, 0.6, NEVER], [0.1, 0.4, 0.805]),
        # A row that cannot be revised splits the gap: 0.25, 0.3, 0.45 and 0.6 are offered there, and 0.4 is the middle.
        ([0.2, 0.3, 0.6], [0.2, 0.6, NEVER], [0.1, 0.45, 0.805]),
        # Nothing can be revised: 0, 0.25, 0.5, 0.755 and 1.01 all revise nothing.
        ([0.5], [NEVER], [0.5]),
        ([0.0, 1.0], [0.0, 1.0, NEVER], [0.0, 0.5, 1.005]),
    ],
)
def test_a_threshold_stands_in_the_middle_of_its_gap(
    chance: list[float], reached: list[float], thresholds: list[float]
) -> None:
    assert _middle_thresholds(np.array(chance), np.array(reached)) == pytest.approx(thresholds)
