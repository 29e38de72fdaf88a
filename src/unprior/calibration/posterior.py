"""Uncertainty of the learned strength: Laplace approximation, predictive average, support, distance."""

from __future__ import annotations

import numpy as np

from unprior.calibration.features import Observation
from unprior.calibration.ranges import stable_ranges
from unprior.calibration.strength import inverse_softplus, softplus
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray

QUADRATURE_NODES = 64
_NODES, _WEIGHTS = np.polynomial.hermite.hermgauss(QUADRATURE_NODES)
_NODES, _WEIGHTS = _NODES * np.sqrt(2.0), _WEIGHTS / np.sqrt(np.pi)
_COLUMNS_AT_ONCE = 1024


def laplace_covariance(hessian: FloatArray) -> FloatArray:
    """Σ: symmetrised pseudo-inverse of H + 1e-8·I with eigenvalues clipped to [1e-8, 4].

    >>> laplace_covariance(np.diag([2.0, 0.1])).round(3).tolist()
    [[0.5, 0.0], [0.0, 4.0]]
    """
    inverse = np.linalg.pinv(hessian + 1e-8 * np.eye(len(hessian)))
    eigenvalues, vectors = np.linalg.eigh(0.5 * (inverse + inverse.T))
    covariance: FloatArray = (vectors * np.clip(eigenvalues, 1e-8, 4.0)) @ vectors.T
    return 0.5 * (covariance + covariance.T)


def distance_precision(inputs: FloatArray) -> FloatArray:
    """(C_D + 0.1·I)⁺ of the 12 standardised features without the bias, covariance with ddof 1."""
    features = inputs[:, 1:]
    covariance = np.atleast_2d(np.cov(features, rowvar=False, ddof=1))
    precision = np.linalg.pinv(covariance + 0.1 * np.eye(features.shape[1]))
    return np.asarray(0.5 * (precision + precision.T), dtype=np.float64)


def development_distance(inputs: FloatArray, precision: FloatArray) -> FloatArray:
    """d_dev: how unlike the development data the features of each row are."""
    features = inputs[:, 1:]
    return np.sqrt(np.maximum(_quadratic_form(features, precision), 0.0))


def strength_moments(inputs: FloatArray, theta: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of η = uᵀθ under the Laplace approximation."""
    return inputs @ theta, np.sqrt(np.maximum(_quadratic_form(inputs, covariance), 1e-12))


def _quadratic_form(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """rᵀ M r of every row r."""
    form: FloatArray = ((rows @ matrix) * rows).sum(axis=1)
    return form


def posterior_predictive(
    observation: Observation, mean: FloatArray, deviation: FloatArray, max_strength: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Corrected probabilities and strength, averaged over η by Gauss–Hermite quadrature, capped at every node.

    Returns probabilities of shape (K, rows) and the mean strength of every row.
    """
    probabilities = np.empty_like(observation.image)
    strengths = np.empty_like(mean)
    for start in range(0, len(mean), _COLUMNS_AT_ONCE):
        rows = slice(start, start + _COLUMNS_AT_ONCE)
        cap = max_strength[rows] if isinstance(max_strength, np.ndarray) else max_strength
        strength = np.minimum(softplus(mean[rows] + _NODES[:, None] * deviation[rows]), cap)
        strengths[rows] = _WEIGHTS @ strength
        corrected = observation.image[:, None, rows] - strength * observation.prior[:, None, rows]
        corrected -= corrected.max(axis=0)
        np.exp(corrected, out=corrected)
        corrected /= corrected.sum(axis=0)
        probabilities[:, rows] = _WEIGHTS @ corrected
    return probabilities, strengths


def posterior_support(
    observation: Observation,
    candidate: IntArray,
    mean: FloatArray,
    deviation: FloatArray,
    max_strength: float | FloatArray,
) -> FloatArray:
    """r_U: posterior probability that the capped strength lies where ``candidate`` stays first."""
    from scipy.special import ndtr  # scipy takes as long to import as all the rest

    lower, upper = stable_ranges(observation.image, observation.prior, candidate)
    empty = np.isnan(lower) | (lower > max_strength)
    lower, upper = np.where(empty, 0.0, lower), np.where(empty, 0.0, upper)
    # The cap gathers all mass above it, so a range that reaches the cap is open to the right.
    upper = np.where(upper >= max_strength, np.inf, upper)
    below, above = (ndtr((inverse_softplus(end) - mean) / deviation) for end in (lower, upper))
    return np.where(empty, 0.0, above - below)
