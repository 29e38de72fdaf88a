"""The learned correction strength: its objective, exact derivatives, and the fit.

With λ = softplus(η), η = uᵀθ, and q the softmax of the corrected scores, the loss of one example is
ℓ = log Σ exp(s_I − λ s_P) − (s_I − λ s_P)_y, so dℓ/dλ = s_P(y) − E_q[s_P] and d²ℓ/dλ² = Var_q[s_P].
The chain rule through softplus (first derivative σ(η), second σ(η)(1−σ(η))) gives gradient and Hessian.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unprior.calibration.features import ALL_FEATURES, FEATURE_NAMES, Observation
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray

GRADIENT_TOLERANCE = 1e-9
_EXPLORING_TOLERANCE = 1e-3
_MAX_ITERATIONS = 200
_MAX_HALVINGS = 40
_ROUNDING = 1e-13
# Large enough that no hidden feature can move strength or distance, small enough to stand in a calibrator file.
_OUT_OF_REACH = 1e300
_CELLS_AT_ONCE = 1 << 18
_EXPLORED_ROWS = 2048
_FIRST_STARTS, _FIRST_SCALE = 8, (0.3, 1.0)
_MORE_STARTS, _MORE_SCALES = 60, (1.0, 3.0)
_LOG_RANGE, _POINTS, _ZOOMS = 3.0, 61, 4
LARGEST_FOUND = math.exp(_LOG_RANGE * (_POINTS - 1) / (_POINTS - 3))
"""What :func:`most_probable` finds when every zoom ends at its upper end; at the lower ends it is the inverse."""


def softplus(eta: FloatArray) -> FloatArray:
    """Smooth map from the real line to positive strengths.

    >>> softplus(np.array([0.0])).round(4).tolist()
    [0.6931]
    """
    return np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))


def _softplus_and_slope(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Softplus and its derivative from one exponential."""
    small = np.exp(-np.abs(eta))
    return np.maximum(eta, 0.0) + np.log1p(small), np.where(eta >= 0.0, 1.0, small) / (1.0 + small)


def inverse_softplus(strength: FloatArray) -> FloatArray:
    """The η whose softplus is ``strength``: −∞ at 0, ∞ at ∞.

    >>> inverse_softplus(softplus(np.array([-3.0, 0.0, 40.0]))).round(9).tolist()
    [-3.0, 0.0, 40.0]
    """
    with np.errstate(divide="ignore"):
        return strength + np.log(-np.expm1(-strength))


def most_probable(losses: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
    """The positive number with the lowest loss, given by its logarithm, and that loss; between e⁻³ and e³.

    >>> value, loss = most_probable(lambda logs: (logs - 1.0) ** 2)
    >>> round(value, 4), round(loss, 9)
    (2.7183, 0.0)
    """
    centre, reach = 0.0, _LOG_RANGE
    for _ in range(_ZOOMS):
        logs = np.linspace(centre - reach, centre + reach, _POINTS)
        found = losses(logs)
        centre, reach = float(logs[found.argmin()]), float(logs[1] - logs[0])
    return float(np.exp(centre)), float(found.min())


@dataclass(frozen=True, slots=True)
class Standardisation:
    """Mean and population deviation of the development features; the bias column is left alone."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def from_features(cls, features: FloatArray) -> Standardisation:
        """Learn mean and scale; a column that does not vary keeps scale 1.

        >>> Standardisation.from_features(np.array([[1.0, 2.0], [1.0, 4.0]])).scale.tolist()
        [1.0, 1.0]
        """
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale[scale < 1e-6] = 1.0
        mean[0], scale[0] = 0.0, 1.0
        return cls(mean, scale)

    def showing(self, names: Sequence[str]) -> Standardisation:
        """The same, but only the named features can move strength and distance.

        >>> Standardisation(np.ones(13), np.ones(13)).showing(["image_peak"]).scale[4:6].tolist()
        [1.0, 1e+300]
        """
        hidden = np.isin(FEATURE_NAMES, [name for name in ALL_FEATURES if name not in names])
        return Standardisation(np.where(hidden, 0.0, self.mean), np.where(hidden, _OUT_OF_REACH, self.scale))

    def apply(self, features: FloatArray) -> FloatArray:
        """Standardise raw features."""
        return (features - self.mean) / self.scale


@dataclass(frozen=True, slots=True)
class Derivatives:
    """Value, gradient and Hessian of the objective at several points (first axis)."""

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray

    @property
    def gradient_norm(self) -> FloatArray:
        """Euclidean length of each gradient."""
        return np.asarray(np.sqrt((self.gradient**2).sum(axis=1)))

    def take(self, points: IntArray | BoolArray) -> Derivatives:
        """Choose some of the points."""
        return Derivatives(self.value[points], self.gradient[points], self.hessian[points])

    def replace(self, points: IntArray, others: Derivatives) -> None:
        """Overwrite some of the points."""
        self.value[points], self.gradient[points], self.hessian[points] = (
            others.value, others.gradient, others.hessian,
        )  # fmt: skip


class StrengthObjective:
    """Summed cross-entropy of the corrected scores plus (ρ/2)‖θ‖², at many (θ, ρ) at once.

    Evaluating all regularisation strengths and starting points together costs little more than one,
    because 280 rows are far too few to keep NumPy busy.
    """

    def __init__(self, inputs: FloatArray, observations: Sequence[Observation], answers: Sequence[IntArray]) -> None:
        """Take standardised ``inputs`` (rows, 13), stacked in the order of ``observations``."""
        self._parts: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        start = 0
        for observation, answer in zip(observations, answers, strict=True):
            rows = np.arange(len(answer))
            # Relative to the right answer the loss is log Σ exp(image − λ prior), one term less to carry.
            image = observation.image - observation.image[answer, rows]
            prior = observation.prior - observation.prior[answer, rows]
            self._parts.append((inputs[start : start + len(answer)], image, prior))
            start += len(answer)
        self.rows = start
        self.dimension = inputs.shape[1]

    def sample(self, rows: int) -> StrengthObjective:
        """Keep about ``rows`` evenly spaced rows."""
        step = -(-self.rows // rows)
        thinned = StrengthObjective(np.empty((0, self.dimension)), (), ())
        thinned._parts = [(u[::step], image[:, ::step], prior[:, ::step]) for u, image, prior in self._parts]
        thinned.rows = sum(len(u) for u, *_ in thinned._parts)
        return thinned

    def of_first_inputs(self, count: int) -> StrengthObjective:
        """The same rows, with a strength that depends on the first inputs only."""
        narrowed = StrengthObjective(np.empty((0, count)), (), ())
        narrowed._parts = [(u[:, :count], image, prior) for u, image, prior in self._parts]
        narrowed.rows = self.rows
        return narrowed

    def _chunks(self, points: int) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Rows in portions that bound the memory, with an axis for the points."""
        for inputs, image, prior in self._parts:
            size = max(1, _CELLS_AT_ONCE // (points * max(len(image), inputs.shape[1])))
            for start in range(0, len(inputs), size):
                rows = slice(start, start + size)
                yield inputs[rows], image[:, rows, None], prior[:, rows, None]

    def value(self, theta: FloatArray, rho: FloatArray) -> FloatArray:
        """Objective at every row of ``theta`` with its ``rho``."""
        total: FloatArray = 0.5 * rho * (theta**2).sum(axis=1)
        for inputs, image, prior in self._chunks(len(theta)):
            corrected = image - softplus(inputs @ theta.T) * prior
            peak = corrected.max(axis=0)
            total += (peak + np.log(np.exp(corrected - peak).sum(axis=0))).sum(axis=0)
        return total

    def derivatives(self, theta: FloatArray, rho: FloatArray) -> Derivatives:
        """Objective with its gradient and Hessian at every row of ``theta``."""
        value = 0.5 * rho * (theta**2).sum(axis=1)
        gradient = rho[:, None] * theta
        hessian = rho[:, None, None] * np.eye(self.dimension)
        for inputs, image, prior in self._chunks(len(theta)):
            strength, slope = _softplus_and_slope(inputs @ theta.T)
            corrected = image - strength * prior
            peak = corrected.max(axis=0)
            weights = np.exp(corrected - peak)
            total = weights.sum(axis=0)
            value += (peak + np.log(total)).sum(axis=0)
            weights /= total
            mean = (weights * prior).sum(axis=0)
            variance = (weights * (prior - mean) ** 2).sum(axis=0)
            gradient -= (mean * slope).T @ inputs
            curvature = variance * slope**2 - mean * slope * (1.0 - slope)
            hessian += (inputs.T * curvature.T[:, None, :]) @ inputs
        return Derivatives(value, gradient, hessian)


@dataclass(frozen=True, slots=True)
class StrengthFit:
    """The minimum of the objective for one ρ."""

    rho: float
    theta: FloatArray
    loss: float
    gradient_norm: float
    hessian: FloatArray


def minimise(
    objective: StrengthObjective, starts: FloatArray, rho: FloatArray, tolerance: float = GRADIENT_TOLERANCE
) -> tuple[FloatArray, Derivatives]:
    """Newton's method with backtracking, from every start to a vanishing gradient.

    Thirteen parameters and an exact Hessian make this both faster and more precise than a general
    optimiser; negative curvature is followed downhill by taking eigenvalues by their size.
    """
    theta = starts.copy()
    here = objective.derivatives(theta, rho)
    active = np.arange(len(theta))
    for _ in range(_MAX_ITERATIONS):
        active = active[here.gradient_norm[active] > tolerance]
        if len(active) == 0:
            break
        value = here.value[active]
        step = _newton_steps(here.gradient[active], here.hessian[active])
        decrease = (here.gradient[active] * step).sum(axis=1)
        # Close to the minimum rounding hides the decrease; there a smaller gradient decides.
        rounding = _ROUNDING * (1.0 + np.abs(value))
        moved = theta[active] + step
        there = objective.derivatives(moved, rho[active])
        long = np.flatnonzero(there.value > value + 1e-4 * decrease + rounding)
        if len(long):
            moved[long] = _backtrack(objective, theta[active[long]], step[long], rho[active[long]],
                                     value[long], decrease[long])  # fmt: skip
            there.replace(long, objective.derivatives(moved[long], rho[active[long]]))
        better = (there.value < value - rounding) | (there.gradient_norm < here.gradient_norm[active])
        active = active[better]
        theta[active] = moved[better]
        here.replace(active, there.take(better))
    return theta, here


def _newton_steps(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """Minimisers of the local quadratic models, with |curvature| where a Hessian is not positive definite."""
    from scipy.linalg.lapack import dposv  # scipy takes as long to import as all the rest

    steps = np.empty_like(gradient)
    for index in range(len(gradient)):
        _, solution, failed = dposv(hessian[index], gradient[index])
        if failed:
            eigenvalues, vectors = np.linalg.eigh(hessian[index])
            size = np.abs(eigenvalues)
            solution = vectors @ ((vectors.T @ gradient[index]) / np.maximum(size, 1e-8 * size.max()))
        steps[index] = -solution
    return steps


def _backtrack(
    objective: StrengthObjective,
    theta: FloatArray,
    step: FloatArray,
    rho: FloatArray,
    value: FloatArray,
    decrease: FloatArray,
) -> FloatArray:
    """Halve each step until it lowers the objective enough."""
    length = np.full(len(theta), 0.5)
    for _ in range(_MAX_HALVINGS):
        rejected = objective.value(theta + length[:, None] * step, rho) > value + 1e-4 * length * decrease
        if not rejected.any():
            break
        length[rejected] *= 0.5
    return theta + length[:, None] * step


def fit_strengths(objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
    """Find the lowest minimum for every ρ.

    The objective is smooth but not convex, so θ = 0 is joined by seeded random starts and by the minima
    of the other ρ. A large table is explored on a sample of its rows first; what wins there is finished
    on all rows. Of equal minima the one reached from 0 is kept.
    """
    rho = np.asarray(rhos, dtype=np.float64)
    sampled = objective if objective.rows <= _EXPLORED_ROWS else objective.sample(_EXPLORED_ROWS)
    from_zero, lowest = _explore(sampled, rho * (sampled.rows / objective.rows))
    finalists = from_zero if lowest is from_zero else np.concatenate([from_zero, lowest])
    theta, found = minimise(objective, finalists, np.resize(rho, len(finalists)))
    fits = []
    for index, value in enumerate(rho.tolist()):
        zero, other = index, (index + len(rho)) % len(finalists)
        best = other if found.value[other] < found.value[zero] - _same_loss(found.value[zero]) else zero
        fits.append(
            StrengthFit(
                value,
                theta[best],
                float(found.value[best]),
                float(found.gradient_norm[best]),
                found.hessian[best],
            )
        )
    return fits


def _explore(objective: StrengthObjective, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For every ρ the minimum reached from 0 and the lowest one reached from anywhere.

    The smallest ρ bends the objective least towards one minimum. If even there a few random starts all
    end where 0 ends, more of them are not worth their time.
    """
    generator = np.random.default_rng(0)
    starts = np.vstack(
        [
            np.zeros((len(rho), objective.dimension)),
            _random_starts(generator, _FIRST_STARTS, _FIRST_SCALE, objective.dimension),
        ]
    )
    rhos = np.concatenate([rho, np.full(_FIRST_STARTS, rho.min())])
    theta, found = minimise(objective, starts, rhos, _EXPLORING_TOLERANCE)
    from_zero = theta[: len(rho)]
    probes = found.value[rhos == rho.min()]
    if probes.max() - probes.min() <= 100 * _same_loss(probes.min()):  # probes stop a little short of the minimum
        return from_zero, from_zero
    which = np.arange(len(rho))
    theta, value = _minimise_each(
        objective, np.vstack([theta, _random_starts(generator, _MORE_STARTS, _MORE_SCALES, objective.dimension)]), rho
    )
    # Once more from the others' best: a small ρ's minimum is a good start for its neighbours.
    theta, value = _minimise_each(objective, theta[which, value.argmin(axis=1)], rho)
    return from_zero, theta[which, value.argmin(axis=1)]


def _random_starts(
    generator: np.random.Generator, number: int, scales: tuple[float, ...], dimension: int
) -> FloatArray:
    scale: FloatArray = np.resize(scales, (number, 1))
    return generator.normal(size=(number, dimension)) * scale


def _minimise_each(objective: StrengthObjective, starts: FloatArray, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every ρ from every start: minima of shape (ρ, starts, inputs) and their losses."""
    points, rhos = np.tile(starts, (len(rho), 1)), np.repeat(rho, len(starts))
    theta, found = minimise(objective, points, rhos, _EXPLORING_TOLERANCE)
    return theta.reshape(len(rho), len(starts), -1), found.value.reshape(len(rho), len(starts))


def _same_loss(loss: FloatArray) -> FloatArray:
    """Two losses closer than this are one minimum reached along two ways."""
    return 1e-7 * (1.0 + np.abs(loss))
