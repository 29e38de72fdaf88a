"""The control for adaptivity: one strength for all examples, everything else as in SPC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.posterior import laplace_covariance
from unprior.calibration.selection import Grid, Ties
from unprior.calibration.strength import StrengthFit, StrengthObjective, inverse_softplus
from unprior.errors import UnpriorError
from unprior.scores.table import FloatArray

# A given strength is the cap, and η lies above it by much more than the least deviation that η may have.
_ABOVE_CAP = 0.01


class FixedStrengthCalibrator(SelectivePriorCalibrator):
    """SPC with an intercept-only strength: the same λ for every example, the same gate and selection.

    The features have no part in the strength and its uncertainty, but the distance from the development data is
    that of SPC.

    Parameters
    ----------
    strength
        The λ to use; by default it is fitted. The other parameters are those of SPC.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> strengths = FixedStrengthCalibrator().fit(table).predict(table).strength
    >>> bool(np.ptp(strengths) < 1e-12)
    True
    >>> FixedStrengthCalibrator(strength=0.8).fit(table).predict(table).strength[0].item()
    0.8
    """

    def __init__(
        self,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        grid: Grid | None = None,
        ties: Ties = "first",
        strength: float | None = None,
    ) -> None:
        """Keep the parameters; they are checked in :meth:`fit`."""
        super().__init__(epsilon_cs=epsilon_cs, uncertainty=uncertainty, grid=grid, ties=ties)
        self.strength = strength

    def _searched_grid(self) -> Grid:
        grid = super()._searched_grid()
        if self.strength is None:
            return grid
        return replace(grid, rho=grid.rho[:1], max_strength=(self.strength,))

    def _fit_strengths(self, objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
        bias = objective.of_first_inputs(1)
        if self.strength is None:
            return [_with_idle_features(fit, objective.dimension) for fit in super()._fit_strengths(bias, rhos)]
        theta = inverse_softplus(np.array([[self.strength]]))
        here = bias.derivatives(theta, np.array(rhos))
        loss, slope = float(here.value[0]), float(here.gradient_norm[0])
        fit = StrengthFit(rhos[0], theta[0] + _ABOVE_CAP, loss, slope, here.hessian[0])
        return [_with_idle_features(fit, objective.dimension)]

    def _covariance(self, fit: StrengthFit) -> FloatArray:
        covariance = np.zeros_like(fit.hessian)
        if self.strength is None:  # what is given is certain
            covariance[:1, :1] = laplace_covariance(fit.hessian[:1, :1])
        return covariance

    def check_parameters(self) -> None:
        """Refuse a strength that is none, too."""
        super().check_parameters()
        if self.strength is not None and not 0.0 < self.strength < math.inf:
            raise UnpriorError(f"strength is {self.strength}, it must be positive (or None, to fit it)")


def _with_idle_features(fit: StrengthFit, dimension: int) -> StrengthFit:
    """A fit of the bias alone among all features, whose weights are zero."""
    theta = np.zeros(dimension)
    theta[0] = fit.theta[0]
    hessian = fit.rho * np.eye(dimension)
    hessian[0, 0] = fit.hessian[0, 0]
    return replace(fit, theta=theta, hessian=hessian)
