"""The figure of study ``methods``: what each method repairs and what it loses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from unprior.plots.display import Display, limits, task_name
from unprior.plots.labels import NEAR, place_labels
from unprior.plots.style import LIGHT, FigureStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unprior.studies.rq2.methods import Methods

_MIN_SHOWN = -12.0
_AREA = (245.0, 185.0)  # of the axes in points, near enough to keep labels apart
_STAR, _OTHER = 13.0, 8.0  # what markers take up
_MARKERS = {"prompt": "^", "decoder": "s", "edit": "v", "control": "o", "spc": "*"}


@dataclass(frozen=True, slots=True)
class MethodPoint:
    """One method on one task, in points of accuracy."""

    number: int
    """In the order of tables, from 1."""
    label: str
    kind: str
    cs: float
    cf: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsDisplay(Display):
    """One task: retention to the right, repair upwards, one numbered point per method and SPC as a star.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies.rq2.methods import study_methods
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> results = study_methods(calibrator.predict(table.where(split="test")), calibrator, table.where(split="dev"))
    >>> MethodsDisplay.from_results(results, task="mc").points[-1].label
    'SPC (standard, ε = 0.04)'
    """

    SIZE: ClassVar = (4.5, 3.4)
    """Width and height of a panel in inches, without the legend."""
    points: tuple[MethodPoint, ...]

    @classmethod
    def from_results(cls, results: Methods, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        index = results.tasks.index(task)
        points = tuple(
            MethodPoint(number, row.label, row.kind, 100 * result.cs.change.delta, 100 * result.cf.change.delta)
            for number, row in enumerate(results.rows, start=1)
            for result in [row.tasks[index]]
        )
        with style.applied():
            width, height = cls.SIZE
            axes = ax or style.new_axes(width, height + 0.17 * len(points))
            display = cls(axes_=axes, style=style, points=points)
            display._draw(task)
        return display

    @property
    def outside(self) -> tuple[MethodPoint, ...]:
        """Methods that lose too much to be shown without squeezing all others."""
        own = next((point for point in self.points if point.kind == "spc"), self.points[-1])
        lost = min(1.6 * own.cs, _MIN_SHOWN), min(1.6 * own.cf, _MIN_SHOWN)
        return tuple(point for point in self.points if point.cs < lost[0] or point.cf < lost[1])

    def _draw(self, task: str) -> None:
        axes, style = self.axes_, self.style
        shown = [point for point in self.points if point not in self.outside]
        (left, right), (bottom, top) = (limits([getattr(point, side) for point in shown]) for side in ("cs", "cf"))
        axes.set(xlim=(left, right), ylim=(bottom, top), title=task_name(task))
        axes.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)")
        axes.grid(visible=False)
        axes.locator_params(nbins=6, integer=True)
        self._draw_equal_utility(left, right, bottom, top)
        axes.axhline(0, color=style.quiet, linewidth=0.8)
        axes.axvline(0, color=style.quiet, linewidth=0.8)
        for point in self.points:
            hidden = point not in shown
            axes.plot(
                [] if hidden else [point.cs], [] if hidden else [point.cf],
                label=f"{point.number}  {point.label}", **self._look(point.kind),
            )  # fmt: skip
        self._draw_numbers(shown, (left, right), (bottom, top))
        if self.outside:
            numbers = ", ".join(str(point.number) for point in self.outside)
            axes.set_title(f"not shown: {numbers}", loc="right", fontsize=7.8, fontweight="normal", color=style.quiet)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), handlelength=1.0, handletextpad=0.5, fontsize=8.2,
                    labelspacing=0.35)  # fmt: skip

    def _look(self, kind: str) -> dict[str, Any]:
        style = self.style
        looks: dict[str, dict[str, Any]] = {
            "spc": {"color": style.method, "markersize": _STAR, "markeredgecolor": style.paper, "zorder": 6},
            "control": {"color": style.quiet, "markersize": 5.5, "markerfacecolor": style.paper, "zorder": 4},
        }
        other = {"color": style.control, "markersize": 7, "markeredgecolor": style.paper, "zorder": 5}
        return looks.get(kind, other) | {"marker": _MARKERS[kind], "linestyle": "none"}

    def _draw_equal_utility(self, left: float, right: float, bottom: float, top: float) -> None:
        """Faint lines on which U = ΔCF + 0.5 ΔCS is the same."""
        lowest, highest = bottom + 0.5 * left, top + 0.5 * right
        step = next(step for step in (1, 2, 5, 10, 20, 50) if (highest - lowest) / step <= 7)
        for value in np.arange(math.ceil(lowest / step) * step, highest, step).tolist():
            self.axes_.axline((0, value), slope=-0.5, color=self.style.grid, linewidth=0.9, zorder=1)
            height = value - 0.5 * right
            if bottom < height < top:
                words = f"U {value:+.0f}".replace("-", "−") if value else "U 0"
                self.axes_.annotate(words, (right, height), (3, 0), textcoords="offset points", fontsize=7, va="center",
                                    color=self.style.quiet, annotation_clip=False)  # fmt: skip

    def _draw_numbers(
        self, shown: list[MethodPoint], across: tuple[float, float], upwards: tuple[float, float]
    ) -> None:
        """Number the points; methods at the very same place share one label, and a single star needs none."""
        stars = sum(point.kind == "spc" for point in self.points)
        numbers: dict[tuple[float, float], list[str]] = {}
        for point in shown:
            numbers.setdefault((point.cs, point.cf), []).extend(
                [] if point.kind == "spc" and stars == 1 else [str(point.number)]
            )
        texts = [", ".join(each) for each in numbers.values()]
        starred = {(point.cs, point.cf) for point in shown if point.kind == "spc"}
        sizes = [_STAR if at in starred else _OTHER for at in numbers]
        low, high = np.array([across, upwards]).T
        places = [tuple(((np.array(at) - low) / (high - low) * _AREA).tolist()) for at in numbers]
        for at, text, offset in zip(numbers, texts, place_labels(places, texts, *_AREA, sizes), strict=True):
            far = math.hypot(*offset) > NEAR + 2.5 * len(text)
            line = {"arrowstyle": "-", "color": self.style.quiet, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
            ground = {"boxstyle": "round,pad=0.1", "facecolor": self.style.paper, "edgecolor": "none", "alpha": 0.8}
            self.axes_.annotate(text, at, offset, textcoords="offset points", fontsize=7.8, ha="center", va="center",
                                zorder=3, bbox=ground if text else None,
                                arrowprops=line if far and text else None)  # fmt: skip
