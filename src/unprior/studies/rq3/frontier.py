"""RQ3: how much repair a permitted loss of commonsense accuracy buys, with SPC and with other rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.baselines.controls import STRENGTHS, fixed_strength_answers, run_controls
from unprior.calibration import Constant, SelectivePriorCalibrator
from unprior.plots.display import draw_zero, limits, task_name
from unprior.plots.labels import NEAR, place_labels, room
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.common.variants import spc_name
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_limit, format_list
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILONS = (0.0, 0.02, 0.04, 0.06, 0.10)
"""The paper's permitted losses of commonsense accuracy."""
_LEARNED = {"learned-rule-fixed": "learned_fixed", "learned-rule-direct": "learned_direct"}
_STAR, _MARKER = 14.0, 8.0  # what markers take up
Curve = tuple[tuple[float, float, str], ...]
"""ΔCS and ΔCF in points with a label, in the order of drawing; equal points are one, with joined labels."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """What one choice gives on the test rows of one task."""

    method: str
    """``spc``, or ``spc_other`` for its other version; ``fixed_selected`` (one fitted strength with SPC's gate).

    ``learned_fixed`` and ``learned_direct`` (a learned rule on proposals of a fixed strength and of direct
    subtraction); ``fixed`` (one strength, always adopted).
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
    >>> development, test = table.where(split="dev"), table.where(split="test")
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_frontier(calibrator, development, test, epsilons=(0, 0.04))
    >>> [(point.epsilon, point.result.task) for point in result.of("mc", "spc")]
    [(0, 'mc'), (0.04, 'mc')]
    """

    points: tuple[FrontierPoint, ...]
    epsilon: float
    """The permitted loss that is marked."""
    uncertainty: bool = True
    """Whether ``spc`` is the uncertainty-aware version and ``spc_other`` the standard one, or the other way round."""

    @property
    def labels(self) -> dict[str, str]:
        """Names of all methods in tables, in their order there."""
        ours, other = sorted(("standard", "uncertainty-aware"), reverse=self.uncertainty)
        return {
            "spc": f"SPC ({ours})",
            "spc_other": f"SPC ({other})",
            "fixed_selected": f"Selected fixed strength; rule of SPC ({ours})",
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
            {name: getattr(point, name) for name in ("method", "epsilon", "strength", "abstains")}
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
                    (_choice(points[0]), *(point.result.changes for point in points)),
                    bold=method in ("spc", "spc_other") and points[0].epsilon == self.epsilon,
                )
                for points in zip(*by_task, strict=True)
            )
            sections += [Section(label, rows)] if rows else []
        bold = [spc_name(self.epsilon, uncertainty=version) for version in (self.uncertainty, not self.uncertainty)]
        return Table(
            "Repair and retention by permitted loss",
            ("Choice", *(f"{task.upper()} ΔCF/ΔCS" for task in self.tasks)),
            tuple(sections),
            f"Points of accuracy on the test pairs. Everything is fitted on the development pairs and selected on them "
            f"for every ε. Bold: {format_list(bold)}.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a larger ε buys, and whether the limit holds on the test pairs."""
        sentences, label = [], self.labels["spc"]
        for task in self.tasks:
            curve = self.of(task, "spc")
            first, last = (f"{each.result.changes} points at {_choice(each)}" for each in (curve[0], curve[-1]))
            places = len({(point.result.cf, point.result.cs) for point in curve})
            sentences.append(
                f"On {task.upper()} {label} goes from {first} to {last}; {len(curve)} limits give "
                f"{f'{places} different results' if places > 1 else 'the same result'}."
            )
        own = [point for task in self.tasks for point in self.of(task, "spc")]
        beyond = sum(-point.result.cs.delta > (point.epsilon or 0.0) + 1e-12 for point in own)
        sentences.append(f"The loss of {label} on the test pairs exceeds its limit in {beyond} of {len(own)} cases.")
        words = [
            f"{one.result.changes} ({other.result.changes} with one selected strength) on {task.upper()}"
            for task in self.tasks
            for one, other in zip(self._marked(task, "spc"), self._marked(task, "fixed_selected"), strict=True)
        ]
        sentences.append(f"{spc_name(self.epsilon, uncertainty=self.uncertainty)} gives {format_list(words)}.")
        return tuple(sentences)

    def _marked(self, task: str, method: str) -> tuple[FrontierPoint, ...]:
        return tuple(point for point in self.of(task, method) if point.epsilon == self.epsilon)

    def curves(self, task: str) -> dict[str, Curve]:
        """What the figure shows of every method; labels are ε, or λ of a fixed strength without a gate.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> calibrator = SelectivePriorCalibrator().fit(table)
        >>> result = study_frontier(calibrator, table.where(split="dev"), table.where(split="test"))
        >>> result.curves("mc")["fixed"][0][2]
        '0.1'
        """
        return {method: _curve(self.of(task, method)) for method in self.labels}

    def panels(self) -> Panels | None:
        """Both versions of SPC and the rules with a gate by ε, fixed strengths without a gate by λ; for every task."""
        return Panels.per_task(Frontier._draw, self, self.tasks, 5.2, 5.0)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        draw_zero(ax, style)
        curves = self.curves(task)
        looks: dict[str, dict[str, Any]] = {
            "fixed": {"label": "fixed λ, no gate", "color": style.quiet, "marker": ".", "linestyle": "--",
                      "linewidth": 1.0},
            "learned_direct": {"label": "learned rule, direct", "color": style.cs, "marker": "v", "linestyle": ":"},
            "learned_fixed": {"label": "learned rule, fixed λ", "color": style.repaired, "marker": "^",
                              "linestyle": ":"},
            "fixed_selected": {"label": "selected λ, with gate", "color": style.control, "marker": "D",
                               "markersize": 6.5, "markerfacecolor": style.paper, "linewidth": 1.0},
            "spc_other": {"label": self.labels["spc_other"], "color": style.method, "marker": "o", "markersize": 4.5,
                          "markerfacecolor": style.paper, "linestyle": "--", "linewidth": 1.0},
            "spc": {"label": self.labels["spc"], "color": style.method, "marker": "o", "markersize": 5},
        }  # fmt: skip
        for level, (method, look) in enumerate(looks.items(), start=3):
            if curves[method]:
                across, up, _ = zip(*curves[method], strict=True)
                ax.plot(across, up, zorder=level, **look)
        for method, face, edge in (("spc_other", style.paper, style.method), ("spc", style.method, style.paper)):
            for cs, cf, _ in _curve(self._marked(task, method)):
                label = spc_name(self.epsilon, uncertainty=self.uncertainty == (method == "spc"))
                ax.plot(cs, cf, "*", markersize=13, color=face, label=label, zorder=10, markeredgecolor=edge)
        # What has a gate lies close together; fixed strengths are the background.
        gated = tuple(point for method, curve in curves.items() if method != "fixed" for point in curve)
        ax.set(xlim=limits([cs for cs, _, _ in gated]), ylim=limits([cf for _, cf, _ in gated]))
        marked = [point for method in ("spc", "spc_other") for point in _curve(self._marked(task, method))]
        _label(ax, style, curves, gated, [point[:2] for point in marked])
        ax.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)", title=task_name(task))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, handlelength=1.8, fontsize=8)


def _choice(point: FrontierPoint) -> str:
    chosen = f"λ = {point.strength:g}" if point.epsilon is None else f"ε = {format_limit(point.epsilon)}"
    return f"{chosen} (abstains)" if point.abstains else chosen


def _curve(points: Sequence[FrontierPoint]) -> Curve:
    labels: dict[tuple[float, float], list[str]] = {}
    for point in points:
        place = (100 * point.result.cs.delta, 100 * point.result.cf.delta)
        short = format_limit(point.epsilon).lstrip("0") if point.epsilon else "0"
        labels.setdefault(place, []).append(f"{point.strength:.2g}" if point.epsilon is None else short)
    return tuple((cs, cf, ", ".join(names)) for (cs, cf), names in labels.items())


def _label(
    axes: Axes, style: FigureStyle, curves: dict[str, Curve], gated: Curve, stars: Sequence[tuple[float, float]]
) -> None:
    """Name the points of SPC and the fixed strengths where names cover neither each other nor points nor lines."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    width, height = room(axes)

    def place(cs: float, cf: float, _: str = "") -> tuple[float, float]:
        return (cs - left) / (right - left) * width, (cf - bottom) / (top - bottom) * height

    shown = [point for point in curves["fixed"] if left <= point[0] <= right and bottom <= point[1] <= top]
    named = [(cs, cf, f"ε {label}") for cs, cf, label in curves["spc"]] + shown
    others = [point for point in gated if point not in curves["spc"]]
    places = [place(*point) for point in (*named, *others)]
    texts = [label for _, _, label in named] + [""] * len(others)
    sizes = [_STAR if point[:2] in stars else _MARKER for point in (*named, *others)]
    lines = [[place(*point) for point in curve] for curve in curves.values()]
    lines += [[place(left, 0), place(right, 0)], [place(0, bottom), place(0, top)]]
    offsets = place_labels(places, texts, width, height, sizes, lines)
    ground = {"boxstyle": "round,pad=0.15", "facecolor": style.paper, "edgecolor": "none", "alpha": 0.85}
    line = {"arrowstyle": "-", "color": style.quiet, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
    for index, ((cs, cf, label), offset) in enumerate(zip(named, offsets, strict=False)):
        spc = index < len(curves["spc"])
        far = max(abs(offset[0]) - 2.5 * len(label), abs(offset[1])) > 1.5 * NEAR
        axes.annotate(label, (cs, cf), offset, textcoords="offset points", fontsize=8, ha="center", va="center",
                      color=style.method if spc else style.quiet, bbox=ground, zorder=11 if spc else 9,
                      arrowprops=line if far else None)  # fmt: skip


def study_frontier(
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable,
    test: ScoreTable,
    *,
    other: SelectivePriorCalibrator | None = None,
    epsilons: Sequence[float] = EPSILONS,
    strengths: Sequence[float] = STRENGTHS,
) -> Frontier:
    """Choose settings and controls for every ε on the development rows; compare on the test rows.

    Parameters
    ----------
    calibrator
        Fitted on ``development``; gives version, grid, and the ε that is marked and always among those compared.
    development, test
        Rows to fit and choose on, and rows to compare on.
    other
        The other version, fitted on ``development``; fitted here when it is not given.
    epsilons, strengths
        Permitted losses, and fixed strengths whose proposals are always adopted.
    """
    points: list[FrontierPoint] = []

    def add(method: str, fitted: SelectivePriorCalibrator, strength: float | None = None) -> None:
        for result in trade_offs(test, fitted.predict(test)):
            points.append(FrontierPoint(method, fitted.epsilon_cs, strength, fitted.settings_ is None, result))

    limits = sorted({*epsilons, calibrator.epsilon_cs})
    for epsilon in limits:
        add("spc", calibrator.reselect(epsilon))
    for strength in strengths:
        answers = fixed_strength_answers(test, strength)
        points += [FrontierPoint("fixed", None, strength, False, each) for each in trade_offs(test, answers)]
    one = calibrator.clone(strength=Constant()).fit(development, split=None)
    for epsilon in limits:
        control = one.reselect(epsilon)
        add("fixed_selected", control, selected_strength(control, test))
    if other is None:
        other = calibrator.clone(uncertainty=not calibrator.uncertainty).fit(development, split=None)
    for epsilon in limits:
        add("spc_other", other.reselect(epsilon))
        for rule in run_controls(development, test, epsilon_cs=epsilon, names=list(_LEARNED)):
            results = trade_offs(test, rule.answers)
            points += [FrontierPoint(_LEARNED[rule.name], epsilon, None, rule.abstains, each) for each in results]
    return Frontier(tuple(points), calibrator.epsilon_cs, calibrator.uncertainty)


def selected_strength(control: SelectivePriorCalibrator, table: ScoreTable) -> float | None:
    """The one strength λ* that a fitted control gives to every row; None when it abstains."""
    return None if control.settings_ is None else float(control.predict(table).strength[0])


STUDY = Study(
    name="frontier",
    title="Repair and retention by permitted loss",
    asks="How much repair does a permitted loss of commonsense accuracy buy, with SPC and with other rules?",
    how="For every ε of 0, 0.02, 0.04, 0.06 and 0.10, uncertainty-aware SPC, standard SPC, one selected fixed strength "
    "with the uncertainty-aware gate, and learned rules on proposals of a fixed strength and of direct subtraction are "
    "fitted and selected again on the same development pairs; fixed strengths without a gate need no ε. Labels in the "
    "figure: ε of uncertainty-aware SPC, and λ of the fixed strengths.",
    run=lambda inputs: study_frontier(
        inputs.fitted(uncertainty=True), inputs.development, inputs.test, other=inputs.fitted(uncertainty=False)
    ),
    figure="fig:supp-gate-pareto",
)
