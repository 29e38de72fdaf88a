"""Where the correction strength comes from: learned from features, one fitted for all examples, or given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unprior.calibration.posterior import laplace_covariance
from unprior.calibration.selection import Grid
from unprior.calibration.strength import StrengthFit, StrengthObjective, fit_strengths, inverse_softplus
from unprior.errors import UnpriorError, format_option
from unprior.scores.table import FloatArray

# A given strength is the cap, and η lies above it by much more than the least deviation that η may have.
ABOVE_CAP = 0.01
_MOST_STRENGTH = 1000.0


@dataclass(frozen=True, slots=True)
class Learned:
    """The paper's strength: λ = softplus(uᵀθ), learned from the features of each example.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> strengths = SelectivePriorCalibrator(strength=Learned()).fit(table).predict(table).strength
    >>> bool(np.ptp(strengths) > 0.1)
    True
    """

    def check(self) -> None:
        """There is nothing to check."""

    def narrow(self, grid: Grid) -> Grid:
        """All settings."""
        return grid

    def fit(self, objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
        """The lowest minimum for every ρ."""
        return fit_strengths(objective, rhos)

    def covariance(self, fit: StrengthFit) -> FloatArray:
        """Laplace approximation at the minimum."""
        return laplace_covariance(fit.hessian)


@dataclass(frozen=True, slots=True)
class Constant:
    """One strength for all examples, fitted on the development data; the control for adaptivity.

    Features have no part in the strength and its uncertainty, but the distance from the development data is that of
    SPC.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> strengths = SelectivePriorCalibrator(strength=Constant()).fit(table).predict(table).strength
    >>> bool(np.ptp(strengths) < 1e-12)
    True
    """

    def check(self) -> None:
        """There is nothing to check."""

    def narrow(self, grid: Grid) -> Grid:
        """All settings."""
        return grid

    def fit(self, objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
        """The best bias for every ρ; all other weights are zero."""
        fits = fit_strengths(objective.of_first_inputs(1), rhos)
        return [_with_idle_features(fit, objective.dimension) for fit in fits]

    def covariance(self, fit: StrengthFit) -> FloatArray:
        """Variance of the bias alone."""
        covariance = np.zeros_like(fit.hessian)
        covariance[:1, :1] = laplace_covariance(fit.hessian[:1, :1])
        return covariance


@dataclass(frozen=True, slots=True)
class Fixed:
    """A given strength for all examples; only the thresholds of the gate are chosen.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> SelectivePriorCalibrator(strength=Fixed(0.8)).fit(table).predict(table).strength[0].item()
    0.8
    """

    value: float
    """The λ to use."""

    def check(self) -> None:
        """Refuse a strength that is not a positive number."""
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not number or not 0.0 < self.value <= _MOST_STRENGTH:
            raise UnpriorError(
                f"strength is {str(self)[:40]}, its value must be positive and at most {_MOST_STRENGTH:g} (or use "
                f"Constant() to fit it)"
            )

    def narrow(self, grid: Grid) -> Grid:
        """The strength is its own cap, and there is nothing to regularise."""
        return replace(grid, rho=grid.rho[:1], max_strength=(self.value,))

    def fit(self, objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
        """A bias that always reaches the cap, with the loss of the given strength."""
        theta = inverse_softplus(np.array([[self.value]]))
        here = objective.of_first_inputs(1).derivatives(theta, np.array(rhos))
        loss, slope = float(here.value[0]), float(here.gradient_norm[0])
        fit = StrengthFit(rhos[0], theta[0] + ABOVE_CAP, loss, slope, here.hessian[0])
        return [_with_idle_features(fit, objective.dimension)]

    def covariance(self, fit: StrengthFit) -> FloatArray:
        """Zero: what is given is certain."""
        return np.zeros_like(fit.hessian)


@dataclass(frozen=True, slots=True)
class Split:
    """One strength for all examples, fitted on pairs that are set aside; for calibrators with a certificate.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> fitted = SelectivePriorCalibrator(retention="certified", strength=Split()).fit(synthesize(seed=0))
    >>> len(fitted.certificate_.strength_pairs)
    13
    """

    def check(self) -> None:
        """There is nothing to check."""

    def narrow(self, grid: Grid) -> Grid:
        """All settings; a certificate searches none."""
        return grid


SearchedRule = Learned | Constant | Fixed
"""How the strength is found under the paper's rule, which searches a grid of settings."""
StrengthRule = SearchedRule | Split
"""How the strength is found."""


def parse_strength(text: str | None) -> StrengthRule | None:
    """The strength of a calibrator with a certificate from a word: split, fixed (λ = 1), or a number.

    >>> parse_strength("split"), parse_strength("fixed"), parse_strength("0.8"), parse_strength(None)
    (Split(), Fixed(value=1.0), Fixed(value=0.8), None)
    """
    if text is None:
        return None
    if text in ("split", "fixed"):
        return Split() if text == "split" else Fixed(1.0)
    try:
        value = float(text)
    except ValueError:
        raise UnpriorError(
            f"{format_option('strength', text)}: give split (fitted on pairs set aside), fixed (λ = 1), or a number"
        ) from None
    return Fixed(value)


def _with_idle_features(fit: StrengthFit, dimension: int) -> StrengthFit:
    """A fit of the bias alone among all features, whose weights are zero."""
    theta = np.zeros(dimension)
    theta[0] = fit.theta[0]
    hessian = fit.rho * np.eye(dimension)
    hessian[0, 0] = fit.hessian[0, 0]
    return replace(fit, theta=theta, hessian=hessian)
