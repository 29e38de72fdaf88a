"""One strength for all examples, with SPC's gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from unprior.baselines.controls.control import ControlResult, Data
from unprior.calibration.fixed import FixedStrengthCalibrator


def gated_strength(strength: float | None = None) -> Callable[[Data], ControlResult]:
    """A given strength, or one fitted on the development rows, and SPC's gate with thresholds chosen there."""

    def run(data: Data) -> ControlResult:
        fitted = FixedStrengthCalibrator(**data.parameters, strength=strength).fit(data.development, split=None)
        decisions = fitted.predict(data.test)
        if fitted.settings_ is None:
            return ControlResult(decisions.final_positions, {}, feasible=False, changes=(), abstains=True)
        thresholds = {name: value for name, value in asdict(fitted.settings_).items() if value is not None}
        if strength is not None:
            del thresholds["rho"], thresholds["max_strength"]  # nothing was fitted, and the strength is its own cap
        # An average over a posterior may miss a given strength in the last digit.
        settings = {"strength": float(decisions.strength[0]) if strength is None else strength} | thresholds
        return ControlResult(decisions.final_positions, settings, feasible=True, changes=fitted.selection_.changes)

    return run
