"""How much repair a permitted loss of commonsense accuracy buys, and what one strength for all would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unprior.baselines.controls import STRENGTHS, fixed_strength_answers
from unprior.calibration import SelectivePriorCalibrator
from unprior.calibration.fixed import FixedStrengthCalibrator
from unprior.scores import ScoreTable
from unprior.studies.trade_off import TradeOff, trade_offs

EPSILONS = (0.0, 0.02, 0.04, 0.06, 0.10)
"""The paper's permitted losses of commonsense accuracy."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """What one choice gives on the test rows of one task."""

    method: str
    """``spc``; ``fixed`` (one strength, always adopted); ``fixed_selected`` (one fitted strength with SPC's gate)."""
    epsilon: float | None
    """Permitted loss under which the settings were selected; None where nothing was selected."""
    strength: float | None
    """The fixed strength; None for SPC, and for a control that abstains."""
    abstains: bool
    """No setting was feasible, so every answer stays."""
    result: TradeOff


@dataclass(frozen=True, slots=True)
class Frontier:
    """Repair against retention, for every permitted loss and every fixed strength.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> test = table.where(split="test")
    >>> result = study_frontier(SelectivePriorCalibrator(), table.where(split="dev"), test, epsilons=(0, 0.04))
    >>> [(point.epsilon, point.result.task) for point in result.of("mc", "spc")]
    [(0, 'mc'), (0.04, 'mc')]
    """

    points: tuple[FrontierPoint, ...]
    epsilon: float
    """The permitted loss of the calibrator under study."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks with points."""
        return tuple(sorted({point.result.task for point in self.points}))

    def of(self, task: str, method: str) -> tuple[FrontierPoint, ...]:
        """The points of one method on one task, by rising ε or strength."""
        return tuple(point for point in self.points if (point.result.task, point.method) == (task, method))

    def records(self) -> list[dict[str, Any]]:
        """One record per point."""
        return [
            {
                "method": point.method,
                "epsilon": point.epsilon,
                "strength": point.strength,
                "abstains": point.abstains,
            }
            | point.result.record()
            for point in self.points
        ]


def study_frontier(
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable,
    test: ScoreTable,
    *,
    epsilons: Sequence[float] = EPSILONS,
    strengths: Sequence[float] = STRENGTHS,
) -> Frontier:
    """Fit again for every ε, and that of ``calibrator``, on all rows of ``development``; compare on ``test``.

    ``calibrator`` also gives version, grid, and the ε of the selected fixed strength; it is left as it is.
    """
    points: list[FrontierPoint] = []
    own = {name: getattr(calibrator, name) for name in ("epsilon_cs", "uncertainty", "grid")}
    for epsilon in sorted({*epsilons, calibrator.epsilon_cs}):
        fitted = SelectivePriorCalibrator(**own | {"epsilon_cs": epsilon}).fit(development, split=None)
        points += _points("spc", test, fitted, None)
    for strength in strengths:
        answers = fixed_strength_answers(test, strength)
        points += [FrontierPoint("fixed", None, strength, False, each) for each in trade_offs(test, answers)]
    control = FixedStrengthCalibrator(**own).fit(development, split=None)
    points += _points("fixed_selected", test, control, selected_strength(control, test))
    return Frontier(tuple(points), calibrator.epsilon_cs)


def selected_strength(control: FixedStrengthCalibrator, table: ScoreTable) -> float | None:
    """The one strength λ* that a fitted control gives to every row; None when it abstains."""
    if control.settings_ is None:
        return None
    return float(control.predict(table).strength[0])


def _points(
    method: str, test: ScoreTable, fitted: SelectivePriorCalibrator, strength: float | None
) -> list[FrontierPoint]:
    abstains = fitted.settings_ is None
    results = trade_offs(test, fitted.predict(test))
    return [FrontierPoint(method, fitted.epsilon_cs, strength, abstains, result) for result in results]
