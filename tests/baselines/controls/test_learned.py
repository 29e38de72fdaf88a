from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from unprior.baselines.controls.learned import GRADIENT_TOLERANCE, fit_logistic


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
