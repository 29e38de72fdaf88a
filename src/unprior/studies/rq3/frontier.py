"""How much repair a permitted loss of commonsense accuracy buys, and what one strength for all would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.baselines.controls import STRENGTHS, fixed_strength_answers, run_controls
from unprior.calibration import Constant, SelectivePriorCalibrator
from unprior.scores import ScoreTable
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_limit, format_list
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle

EPSILONS = (0.0, 0.02, 0.04, 0.06, 0.10)
"""The paper's permitted losses of commonsense accuracy."""
_LEARNED = {"learned-rule-fixed": "learned_fixed", "learned-rule-direct": "learned_direct"}


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """What one choice gives on the test rows of one task."""

    method: str
    """``spc``; ``fixed`` (one strength, always adopted); ``fixed_selected`` (one fitted strength with SPC's gate).

    With all controls also ``spc_other`` (SPC's other version), ``learned_fixed`` and ``learned_direct`` (a learned rule
    on proposals of a fixed strength and of direct subtraction).
    """
    epsilon: float | None
    """Permitted loss under which the settings were selected; None where nothing was selected."""
    strength: float | None
    """The fixed strength; None for SPC, and for a control that abstains."""
    abstains: bool
    """No setting was feasible, so every answer stays."""
    result: TradeOff


@dataclass(frozen=True, slots=True)
class Frontier(StudyResult):
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
    uncertainty: bool = False
    """Whether the calibrator under study is uncertainty-aware."""

    @property
    def labels(self) -> dict[str, str]:
        """Names for people of all methods, in the order of the table."""
        versions = {True: "SPC, uncertainty-aware", False: "SPC, standard"}
        return {
            "spc": versions[self.uncertainty],
            "spc_other": versions[not self.uncertainty],
            "fixed_selected": f"Selected fixed strength; rule of {versions[self.uncertainty]}",
            "learned_fixed": "Fixed strength; learned revision rule",
            "learned_direct": "Direct subtraction; learned revision rule",
            "fixed": "Fixed strength; always adopt proposal",
        }

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

    @property
    def table(self) -> Table:
        """Changes of every method by ε, and of fixed strengths by λ."""
        sections = []
        for method, label in self.labels.items():
            by_task = [self.of(task, method) for task in self.tasks]
            rows = tuple(
                Row(
                    (
                        _choice(points[0]),
                        *(format_changes(point.result.cf.delta, point.result.cs.delta) for point in points),
                    ),
                    bold=(method, points[0].epsilon) == ("spc", self.epsilon),
                )
                for points in zip(*by_task, strict=True)
            )
            sections += [Section(label, rows)] if rows else []
        return Table(
            "Repair and retention by permitted loss",
            ("Choice", *(f"{task.upper()} ΔCF/ΔCS" for task in self.tasks)),
            tuple(sections),
            "Points of accuracy on the test pairs; everything is fitted and selected on the development pairs, anew "
            "for every ε.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a larger ε buys, and whether the limit holds on the test pairs."""
        said = []
        for task in self.tasks:
            curve = self.of(task, "spc")
            first, last = curve[0], curve[-1]
            places = len({(point.result.cf, point.result.cs) for point in curve})
            said.append(
                f"On {task.upper()} SPC goes from {_changes(first)} points at ε = "
                f"{format_limit(first.epsilon or 0.0)} to "
                f"{_changes(last)} at ε = {format_limit(last.epsilon or 0.0)}; {len(curve)} limits give "
                f"{f'{places} different results' if places > 1 else 'the same result'}."
            )
        own = [point for task in self.tasks for point in self.of(task, "spc")]
        beyond = sum(-point.result.cs.delta > (point.epsilon or 0.0) + 1e-12 for point in own)
        said.append(f"The loss on the test pairs exceeds its limit in {beyond} of {len(own)} cases.")
        at_own = {name: [point for task in self.tasks for point in self.of(task, name) if point.epsilon == self.epsilon]
                  for name in ("spc", "fixed_selected")}  # fmt: skip
        pairs = zip(at_own["spc"], at_own["fixed_selected"], strict=True)
        words = format_list([f"{_changes(one)} ({_changes(other)} with one selected strength) on "
        f"{one.result.task.upper()}"
                        for one, other in pairs])  # fmt: skip
        said.append(f"At ε = {format_limit(self.epsilon)} SPC gives {words}.")
        return tuple(said)

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """One panel per task."""
        from unprior.plots.style import LIGHT
        from unprior.report.figures import FrontierDisplay, side_by_side

        chosen = style or LIGHT
        draws = [
            lambda axes, task=task: FrontierDisplay.from_results(self, task=task, ax=axes, style=chosen)
            for task in self.tasks
        ]
        return side_by_side(draws, 5.2, 5.0, chosen)


def _choice(point: FrontierPoint) -> str:
    chosen = f"λ = {point.strength:g}" if point.epsilon is None else f"ε = {format_limit(point.epsilon)}"
    return f"{chosen} (abstains)" if point.abstains else chosen


def _changes(point: FrontierPoint) -> str:
    return format_changes(point.result.cf.delta, point.result.cs.delta)


def study_frontier(
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable,
    test: ScoreTable,
    *,
    epsilons: Sequence[float] = EPSILONS,
    strengths: Sequence[float] = STRENGTHS,
    controls: bool = False,
) -> Frontier:
    """Fit again for every ε, and that of ``calibrator``, on all rows of ``development``; compare on ``test``.

    ``calibrator`` also gives version, grid, and the ε of the selected fixed strength; it is left as it is. With
    ``controls``, the other version, the selected fixed strength and the learned rules are fitted for every ε too.
    """
    points: list[FrontierPoint] = []
    limits = sorted({*epsilons, calibrator.epsilon_cs})
    fitted = calibrator.clone().fit(development, split=None)
    for epsilon in limits:
        points += _points("spc", test, fitted.reselect(epsilon), None)
    for strength in strengths:
        answers = fixed_strength_answers(test, strength)
        points += [FrontierPoint("fixed", None, strength, False, each) for each in trade_offs(test, answers)]
    one = calibrator.clone(strength=Constant()).fit(development, split=None)
    for epsilon in limits if controls else [calibrator.epsilon_cs]:
        control = one.reselect(epsilon)
        points += _points("fixed_selected", test, control, selected_strength(control, test))
    other = calibrator.clone(uncertainty=not calibrator.uncertainty)
    if controls:
        other.fit(development, split=None)
    for epsilon in limits if controls else []:
        points += _points("spc_other", test, other.reselect(epsilon), None)
        for rule in run_controls(development, test, epsilon_cs=epsilon, names=list(_LEARNED)):
            results = trade_offs(test, rule.answers)
            points += [FrontierPoint(_LEARNED[rule.name], epsilon, None, rule.abstains, each) for each in results]
    return Frontier(tuple(points), calibrator.epsilon_cs, calibrator.uncertainty)


def selected_strength(control: SelectivePriorCalibrator, table: ScoreTable) -> float | None:
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


STUDY = Study(
    name="frontier",
    question="rq3",
    title="Repair and retention by permitted loss",
    asks="How much repair does a permitted loss of commonsense accuracy buy, with SPC and with other rules?",
    how="For every ε of 0, 0.02, 0.04, 0.06 and 0.10, uncertainty-aware SPC, standard SPC, one selected fixed strength "
    "with the uncertainty-aware gate, and learned rules on proposals of a fixed strength and of direct subtraction are "
    "fitted and selected again on the same development pairs; fixed strengths without a gate need no ε.",
    needs=("scores",),
    run=lambda inputs: study_frontier(inputs.fitted(uncertainty=True), inputs.development, inputs.test, controls=True),
)
