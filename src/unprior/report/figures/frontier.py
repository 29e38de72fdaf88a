"""Repair against retention as the permitted loss grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from unprior.plots.display import Display, limits, task_name
from unprior.plots.labels import NEAR, Place, place_labels
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies import Frontier
from unprior.studies.rq3.frontier import FrontierPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIN_LOSS_SHOWN = -12.0
_AREA = (310.0, 240.0)  # of the axes in points, near enough to keep labels apart

Curve = tuple[tuple[float, float, str], ...]
"""ΔCS and ΔCF in points with a label, in the order of drawing; equal points are one, with joined labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierDisplay(Display):
    """One task: SPC by ε, fixed strengths without a gate by λ, and the selected fixed strength with the gate.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_frontier
    >>> table = synthesize(seed=0)
    >>> results = study_frontier(SelectivePriorCalibrator(), table.where(split="dev"), table.where(split="test"))
    >>> FrontierDisplay.from_results(results, task="mc").fixed[0][2]
    '0.1'
    """

    spc: Curve
    own: Curve
    """SPC with the ε of the calibrator under study, drawn as a star."""
    fixed: Curve
    selected: Curve
    learned_fixed: Curve = ()
    """Learned rules by ε, where all controls were fitted."""
    learned_direct: Curve = ()

    @classmethod
    def from_results(cls, results: Frontier, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        points = results.of(task, "spc")
        spc = _curve(points, _epsilon)
        own = _curve([point for point in points if point.epsilon == results.epsilon], _epsilon)
        fixed = _curve(results.of(task, "fixed"), _strength)
        selected = _curve(results.of(task, "fixed_selected"), _strength)
        learned = {name: _curve(results.of(task, name), _epsilon) for name in ("learned_fixed", "learned_direct")}
        with style.applied():
            axes = ax or style.new_axes(4.5, 3.9)
            display = cls(axes_=axes, style=style, spc=spc, own=own, fixed=fixed, selected=selected, **learned)
            display._draw(task)
        return display

    def _draw(self, task: str) -> None:
        axes, style = self.axes_, self.style
        axes.axhline(0, color=style.quiet, linewidth=0.8)
        axes.axvline(0, color=style.quiet, linewidth=0.8)
        plots: tuple[tuple[Curve, str, dict[str, Any]], ...] = (
            (self.fixed, "fixed λ, no gate", {"color": style.quiet, "marker": ".", "linestyle": "--",
                                              "linewidth": 1.0}),
            (self.learned_direct, "learned rule, direct", {"color": style.cs, "marker": "v", "linestyle": ":"}),
            (self.learned_fixed, "learned rule, fixed λ", {"color": style.repaired, "marker": "^", "linestyle": ":"}),
            (self.selected, "selected λ, with gate", {"color": style.control, "marker": "D", "markersize": 6.5,
                                                      "linestyle": "none" if len(self.selected) == 1 else "-",
                                                      "markerfacecolor": style.paper, "linewidth": 1.0}),
            (self.spc, "SPC by ε", {"color": style.method, "marker": "o", "markersize": 5}),
            (self.own, "SPC as chosen", {"color": style.method, "marker": "*", "linestyle": "none", "markersize": 13,
                                         "markeredgecolor": style.paper}),
        )  # fmt: skip
        for level, (curve, name, look) in enumerate((plot for plot in plots if plot[0]), start=3):
            axes.plot([cs for cs, _, _ in curve], [cf for _, cf, _ in curve], label=name, zorder=level, **look)
        for cs, cf, label in self.fixed:
            axes.annotate(label, (cs, cf), (4, 2), textcoords="offset points", color=style.quiet, fontsize=8)
        axes.margins(0.09)
        axes.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)", title=task_name(task))
        offsets: list[Place] = [(0.0, 12.0)] * len(self.spc)
        if self.learned_fixed:  # what has a gate lies close together; fixed strengths are the background
            gated = (*self.spc, *self.selected, *self.learned_fixed, *self.learned_direct)
            axes.set_xlim(limits([cs for cs, _, _ in gated]))
            axes.set_ylim(limits([cf for _, cf, _ in gated]))
            offsets = self._places(gated)
        elif self.outside:
            best = max(cs for cs, _, _ in (*self.fixed, *self.spc, *self.selected))
            axes.set_xlim(self._worst_shown(), max(best, 0.0) + 1.0)
        ground = {"boxstyle": "round,pad=0.15", "facecolor": style.paper, "edgecolor": "none", "alpha": 0.85}
        line = {"arrowstyle": "-", "color": style.quiet, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
        for (cs, cf, label), offset in zip(self.spc, offsets, strict=True):
            far = math.hypot(*offset) > NEAR + 2.5 * (len(label) + 2)
            axes.annotate(f"ε {label}", (cs, cf), offset, textcoords="offset points", color=style.method, fontsize=8,
                          ha="center", va="center", bbox=ground, zorder=8,
                          arrowprops=line if far else None)  # fmt: skip
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, handlelength=1.8)

    def _places(self, gated: Curve) -> list[Place]:
        """Where SPC's labels cover neither each other nor points."""
        (left, right), (bottom, top) = self.axes_.get_xlim(), self.axes_.get_ylim()
        points = [
            ((cs - left) / (right - left) * _AREA[0], (cf - bottom) / (top - bottom) * _AREA[1]) for cs, cf, _ in gated
        ]
        texts = [f"ε {label}" for _, _, label in self.spc]
        return place_labels(points, texts + [""] * (len(gated) - len(texts)), *_AREA)[: len(texts)]

    @property
    def outside(self) -> tuple[str, ...]:
        """Labels of the fixed strengths that lose too much to be shown without squeezing everything else."""
        return tuple(label for cs, _, label in self.fixed if cs < self._worst_shown())

    def _worst_shown(self) -> float:
        worst = min((cs for cs, _, _ in (*self.spc, *self.selected)), default=0.0)
        return min(1.6 * worst, _MIN_LOSS_SHOWN)


def _epsilon(point: FrontierPoint) -> str:
    return f"{100 * (point.epsilon or 0.0):g}"


def _strength(point: FrontierPoint) -> str:
    return "abstains" if point.strength is None else f"{point.strength:.2g}"


def _curve(points: Sequence[FrontierPoint], label: Callable[[FrontierPoint], str]) -> Curve:
    labels: dict[tuple[float, float], list[str]] = {}
    for point in points:
        place = (100 * point.result.cs.delta, 100 * point.result.cf.delta)
        labels.setdefault(place, []).append(label(point))
    return tuple((cs, cf, ", ".join(names)) for (cs, cf), names in labels.items())
