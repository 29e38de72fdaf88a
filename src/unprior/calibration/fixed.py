"""The control for adaptivity: one strength for all examples, everything else as in SPC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.selection import Grid
from unprior.calibration.strength import Standardisation, StrengthFit, StrengthObjective, inverse_softplus
from unprior.errors import UnpriorError
from unprior.scores.table import FloatArray

# Large enough that no feature can move the strength, small enough to stand in a calibrator file.
OUT_OF_REACH = 1e300
# A given strength is the cap, and η lies above it by much more than the least deviation that Σ may have.
_ABOVE_CAP = 0.01


class FixedStrengthCalibrator(SelectivePriorCalibrator):
    """SPC with an intercept-only strength: the same λ for every example, the same gate and selection.

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
        strength: float | None = None,
    ) -> None:
        """Keep the parameters; they are checked in :meth:`fit`."""
        super().__init__(epsilon_cs=epsilon_cs, uncertainty=uncertainty, grid=grid)
        self.strength = strength

    def _standardise(self, features: FloatArray) -> Standardisation:
        scale = np.full(features.shape[1], OUT_OF_REACH)
        scale[0] = 1.0
        return Standardisation(np.zeros(features.shape[1]), scale)

    def _searched_grid(self) -> Grid:
        grid = super()._searched_grid()
        if self.strength is None:
            return grid
        return replace(grid, rho=grid.rho[:1], max_strength=(self.strength,))

    def _fit_strengths(self, objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
        if self.strength is None:
            return super()._fit_strengths(objective, rhos)
        theta = np.zeros((1, objective.dimension))
        theta[0, 0] = inverse_softplus(np.array(self.strength))
        here = objective.derivatives(theta, np.array(rhos))
        theta[0, 0] += _ABOVE_CAP
        certain = OUT_OF_REACH * np.eye(objective.dimension)
        return [StrengthFit(rhos[0], theta[0], float(here.value[0]), float(here.gradient_norm[0]), certain)]

    def check_parameters(self) -> None:
        """Refuse a strength that is none, too."""
        super().check_parameters()
        if self.strength is not None and not 0.0 < self.strength < math.inf:
            raise UnpriorError(f"strength is {self.strength}, it must be positive (or None, to fit it)")
