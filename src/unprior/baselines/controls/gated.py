"""One strength for all examples, with SPC's gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from unprior.baselines.controls.control import ControlContext, ControlResult
from unprior.calibration import Constant, Fixed, SelectivePriorCalibrator


def gated_strength(strength: float | None = None) -> Callable[[ControlContext], ControlResult]:
    """A given strength, or one fitted on the development rows, and SPC's gate with thresholds chosen there."""

    def run(context: ControlContext) -> ControlResult:
        rule = Constant() if strength is None else Fixed(strength)
        fitted = SelectivePriorCalibrator(**context.parameters, strength=rule).fit(context.development, split=None)
        decisions = fitted.predict(context.test)
        if fitted.settings_ is None:
            return ControlResult(decisions.final_positions, {}, feasible=False, changes=(), abstains=True)
        thresholds = {name: value for name, value in asdict(fitted.settings_).items() if value is not None}
        if strength is not None:
            del thresholds["rho"], thresholds["max_strength"]  # nothing was fitted, and the strength is its own cap
        # An average over a posterior may miss a given strength in the last digit.
        settings = {"strength": float(decisions.strength[0]) if strength is None else strength} | thresholds
        return ControlResult(decisions.final_positions, settings, feasible=True, changes=fitted.selection_.changes)

    return run
