"""The changes of accuracy with their bootstrap intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior._text import one_line
from unprior.evaluation.comparison import Evaluation, TaskResult
from unprior.plots.display import draw_zero, name_rows
from unprior.plots.labels import shorten
from unprior.plots.style import LIGHT, FigureStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NAME = 36


@dataclass(frozen=True, slots=True)
class Interval:
    """One line of the figure, in points."""

    label: str
    side: str
    delta: float
    low: float
    high: float
    repairs: int
    harms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalsDisplay:
    """ΔCF and ΔCS of every task with bootstrap intervals, repairs and harms.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> [line.label for line in IntervalsDisplay.from_results(evaluate(decisions.table, decisions)).lines]
    ['MC ΔCF', 'MC ΔCS', 'QA ΔCF', 'QA ΔCS']
    """

    lines: tuple[Interval, ...]
    axes_: Axes
    """Where it was drawn."""
    style: FigureStyle

    @classmethod
    def from_results(cls, results: Evaluation, *, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw on ``ax``, or on a new figure."""
        lines = tuple(
            Interval(
                label=f"{_name(task, results)} Δ{side.upper()}",
                side=side,
                delta=100 * result.change.delta,
                low=100 * result.low,
                high=100 * result.high,
                repairs=result.change.repairs,
                harms=result.change.harms,
            )
            for task in results.tasks
            for side, result in (("cf", task.cf), ("cs", task.cs))
        )
        with style.applied():
            axes = style.axes_or_new(ax, *figure_size(results))
            display = cls(axes_=axes, style=style, lines=lines)
            display._draw()
        return display

    def _draw(self) -> None:
        axes, style = self.axes_, self.style
        draw_zero(axes, style, across=False)
        for height, line in enumerate(self.lines):
            colour = style.cf if line.side == "cf" else style.cs
            if not math.isnan(line.low):
                axes.plot([line.low, line.high], [height, height], color=colour, linewidth=2.6)
            axes.plot(line.delta, height, "o", color=colour, markersize=7, markeredgecolor=style.paper)
            beside = axes.get_yaxis_transform()  # a column to the right of the axes, level with the line
            delta = f"{line.delta:+.1f}".replace("-", "−")
            axes.text(1.03, height - 0.05, delta, transform=beside, va="bottom", fontweight="bold")
            counts = f"{line.repairs} repaired, {line.harms} harmed"
            axes.text(1.03, height + 0.05, counts, transform=beside, va="top", fontsize=8)
        name_rows(axes, [line.label for line in self.lines])
        axes.set_xlabel("change of accuracy (points)")
        axes.spines["left"].set_visible(False)


def figure_size(results: Evaluation) -> tuple[float, float]:
    """Width and height that the lines need, in inches."""
    return 4.5, 0.6 + 0.55 * results.family


def _name(task: TaskResult, results: Evaluation) -> str:
    """The task, with its model where there are several, and its group."""
    models = {each.model for each in results.tasks}
    model = shorten(one_line(task.model), _MAX_NAME) if len(models) > 1 and task.model else None
    parts = [model, task.task.upper(), task.group]
    return " · ".join(part for part in parts if part)
