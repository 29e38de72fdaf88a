"""The control for pairing: settings chosen on counterfactual images alone."""

from __future__ import annotations

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.development import development_rows
from unprior.calibration.selection import Grid, Ties
from unprior.scores import ScoreTable


class OneSidedCalibrator(SelectivePriorCalibrator):
    """SPC that never learns whether a commonsense answer was right when it chooses its settings.

    Without commonsense rows ΔCS has no part in the choice: a setting is feasible when ΔCF ≥ 0, and the best one has the
    largest mean ΔCF, then the most tasks with ΔCF > 0, then the fewest changed counterfactual answers.

    Parameters
    ----------
    fit_on_both
        Whether the strength is still fitted on both sides. The other parameters are those of SPC.

    >>> from unprior import synthesize
    >>> calibrator = OneSidedCalibrator(fit_on_both=False).fit(synthesize(seed=0))
    >>> calibrator.development_rows_, [change.cs_total for change in calibrator.selection_.changes]
    (140, [0, 0])
    """

    def __init__(
        self,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        grid: Grid | None = None,
        ties: Ties = "first",
        fit_on_both: bool = True,
    ) -> None:
        """Keep the parameters; they are checked in :meth:`fit`."""
        super().__init__(epsilon_cs=epsilon_cs, uncertainty=uncertainty, grid=grid, ties=ties)
        self.fit_on_both = fit_on_both

    def _rows_to_fit(self, table: ScoreTable, split: str | None) -> ScoreTable:
        development = development_rows(table, split)
        return development if self.fit_on_both else development.take(development.is_cf)

    def _rows_to_select_on(self, development: ScoreTable) -> ScoreTable:
        return development.take(development.is_cf)
