from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from random_tables import random_rows
from unprior import ScoreTable
from unprior.calibration.features import Observation, observe
from unprior.calibration.posterior import (
    development_distance,
    distance_precision,
    laplace_covariance,
    posterior_predictive,
    posterior_support,
)


@pytest.fixture(scope="module")
def observations() -> list[Observation]:
    return [observe(block) for block in ScoreTable.from_rows(random_rows(5)).blocks()]


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max())
    return np.asarray(exponentials / exponentials.sum())


def test_quadrature_equals_dense_integration_without_the_kink(observations: list[Observation]) -> None:
    """With a cap out of reach the integrand is smooth and 64 nodes are exact to many digits."""
    for seen in observations:
        rows = seen.image.shape[1]
        generator = np.random.default_rng(0)
        mean, deviation = generator.normal(size=rows), generator.uniform(0.1, 1.0, rows)
        probabilities, strengths = posterior_predictive(seen, mean, deviation, max_strength=1e6)
        np.testing.assert_allclose(probabilities.sum(axis=0), 1.0, rtol=1e-12)
        for row in range(0, rows, 7):

            def weighted(
                eta: float, row: int = row, mean: np.ndarray = mean, deviation: np.ndarray = deviation
            ) -> float:
                return float(norm.pdf(eta, mean[row], deviation[row]))

            limits = (mean[row] - 10 * deviation[row], mean[row] + 10 * deviation[row])
            strength, _ = quad(lambda eta, w=weighted: np.logaddexp(0, eta) * w(eta), *limits, epsabs=1e-12)
            assert strengths[row] == pytest.approx(strength, abs=1e-9)
            first, _ = quad(
                lambda eta, w=weighted, s=seen, r=row: (
                    softmax(s.image[:, r] - np.logaddexp(0, eta) * s.prior[:, r])[0] * w(eta)
                ),
                *limits,
                epsabs=1e-12,
            )
            assert probabilities[0, row] == pytest.approx(first, abs=1e-7)


def test_quadrature_with_the_cap_is_close_to_sampling(observations: list[Observation]) -> None:
    """The cap makes a kink, so 64 nodes are only close; the cap must be applied at every node."""
    draws = np.random.default_rng(1).normal(size=200_000)
    for seen in observations:
        rows = seen.image.shape[1]
        mean, deviation = np.full(rows, 0.4), np.full(rows, 0.8)
        probabilities, strengths = posterior_predictive(seen, mean, deviation, max_strength=0.8)
        capped = np.minimum(np.logaddexp(0, 0.4 + 0.8 * draws), 0.8)
        np.testing.assert_allclose(strengths, capped.mean(), atol=0.01)
        for row in range(0, rows, 11):
            scores = seen.image[:, row, None] - capped * seen.prior[:, row, None]
            exponentials = np.exp(scores - scores.max(axis=0))
            expected = (exponentials / exponentials.sum(axis=0)).mean(axis=1)
            np.testing.assert_allclose(probabilities[:, row], expected, atol=0.01)


@pytest.mark.parametrize("cap", [0.3, 0.8, 1.5])
def test_support_equals_sampling(observations: list[Observation], cap: float) -> None:
    generator = np.random.default_rng(2)
    draws = generator.normal(size=100_000)
    for seen in observations:
        rows = seen.image.shape[1]
        mean, deviation = generator.normal(size=rows), generator.uniform(0.05, 1.5, rows)
        for candidate in range(seen.candidate_count):
            support = posterior_support(seen, np.full(rows, candidate), mean, deviation, cap)
            for row in range(0, rows, 5):
                strength = np.minimum(np.logaddexp(0, mean[row] + deviation[row] * draws), cap)
                scores = seen.image[:, row, None] - strength * seen.prior[:, row, None]
                share = (scores[candidate] >= scores.max(axis=0) - 1e-12).mean()
                assert support[row] == pytest.approx(share, abs=0.01)


def two_candidates(image: tuple[float, float], prior: tuple[float, float]) -> Observation:
    row = {
        "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["a", "b"], "original": "a", "answer": "b",
        "image_scores": list(image), "prior_scores": list(prior),
    }  # fmt: skip
    return observe(next(ScoreTable.from_rows([row]).blocks()))


@pytest.mark.parametrize(
    ("image", "prior", "candidate", "expected"),
    [
        ((1.0, 0.0), (0.0, 0.0), 0, 1.0),  # a flat prior constrains nothing …
        ((1.0, 0.0), (0.0, 0.0), 1, 0.0),  # … unless the image puts the candidate behind
        ((0.0, 0.0), (0.0, 0.0), 1, 1.0),  # a tie is still first
        ((2.0, 0.0), (1.0, 0.0), 1, 0.0),  # first only beyond the cap of 0.8
        ((0.8, 0.0), (1.0, 0.0), 1, 0.5),  # first exactly from the cap on: the mass gathered there
        ((-1.0, 0.0), (1.0, 0.0), 0, 0.0),  # first only for negative strengths
        ((0.8, 0.0), (1.0, 0.0), 0, 1.0),  # first exactly up to the cap, which takes all mass above it
        ((0.4, 0.0), (1.0, 0.0), 0, 0.0339),  # first up to 0.4 only
        ((1.0, 0.0), (1e-13, 0.0), 0, 1.0),  # so small a difference of priors is none …
        ((-1e-14, 0.0), (-1e-13, 0.0), 0, 0.0),  # … and cannot save a candidate that is behind
    ],
)
def test_support_at_its_edges(
    image: tuple[float, float], prior: tuple[float, float], candidate: int, expected: float
) -> None:
    seen = two_candidates(image, prior)
    mean = np.array([np.log(np.expm1(0.8))])  # half of the mass lies above the cap
    support = posterior_support(seen, np.array([candidate]), mean, np.array([0.5]), 0.8)
    assert support[0] == pytest.approx(expected, abs=1e-4)


def test_covariance_is_the_clipped_inverse() -> None:
    generator = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(generator.normal(size=(13, 13)))
    eigenvalues = np.concatenate([[1e-3, 0.1, 1e9], np.linspace(1, 50, 10)])
    covariance = laplace_covariance((rotation * eigenvalues) @ rotation.T)
    expected = (rotation * np.clip(1 / (eigenvalues + 1e-8), 1e-8, 4.0)) @ rotation.T
    np.testing.assert_allclose(covariance, expected, atol=1e-5)
    np.testing.assert_array_equal(covariance, covariance.T)


def test_distance_uses_the_regularised_covariance_of_the_features() -> None:
    inputs = np.hstack([np.ones((50, 1)), np.random.default_rng(0).normal(size=(50, 12))])
    precision = distance_precision(inputs)
    expected = np.linalg.inv(np.cov(inputs[:, 1:], rowvar=False) + 0.1 * np.eye(12))
    np.testing.assert_allclose(precision, expected, rtol=1e-9)
    by_hand = [np.sqrt(row[1:] @ expected @ row[1:]) for row in inputs]
    np.testing.assert_allclose(development_distance(inputs, precision), by_hand, rtol=1e-9)
