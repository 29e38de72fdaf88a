"""The control for the support conditions: SPC with one of them, or without the need for any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.gate import CONDITIONS, Condition, PreparedObservation, Proposals
from unprior.calibration.selection import Grid, Ties
from unprior.errors import UnpriorError


class ConditionsCalibrator(SelectivePriorCalibrator):
    """SPC that accepts other support conditions; all other checks and the selection are the same.

    Parameters
    ----------
    allowed
        Conditions that support a revision; None asks for no condition at all, and a proposal that meets none is then
        reported as a conflict. The other parameters are those of SPC.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = ConditionsCalibrator(allowed=(Condition.CONFLICT,)).fit(table).predict(table)
    >>> {decision.condition for decision in decisions if decision.revised} <= {Condition.CONFLICT}
    True
    """

    def __init__(
        self,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        grid: Grid | None = None,
        ties: Ties = "first",
        allowed: tuple[Condition, ...] | None = CONDITIONS,
    ) -> None:
        """Keep the parameters; they are checked in :meth:`fit`."""
        super().__init__(epsilon_cs=epsilon_cs, uncertainty=uncertainty, grid=grid, ties=ties)
        self.allowed = allowed

    def _propose(self, prepared: PreparedObservation, max_strength: float) -> Proposals:
        proposals = super()._propose(prepared, max_strength)
        met, allowed = proposals.condition, self.fitted_parameters_["allowed"]
        if allowed is None:
            # A condition must be named for the gate to open; conflict is the one without a meaning of its own here.
            return replace(proposals, condition=np.where(met < 0, CONDITIONS.index(Condition.CONFLICT), met))
        accepted = [CONDITIONS.index(condition) for condition in allowed]
        return replace(proposals, condition=np.where(np.isin(met, accepted), met, -1))

    def check_parameters(self) -> None:
        """Refuse conditions that are none, too."""
        super().check_parameters()
        for condition in self.allowed or ():
            if condition not in CONDITIONS:
                raise UnpriorError(f"allowed has {condition!r}, conditions are {' and '.join(CONDITIONS)}")
