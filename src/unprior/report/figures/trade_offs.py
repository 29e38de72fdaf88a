"""ΔCF and ΔCS of several rows of a table, one under the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.plots.display import Display, side_by_side, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.common.trade_off import TradeOff

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = tuple[str, Sequence[TradeOff]]
"""A name for people and the results of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffsDisplay(Display):
    """One task: for every row a dot for ΔCF and one for ΔCS, joined by a line.

    >>> from unprior import synthesize
    >>> from unprior.studies import trade_offs
    >>> table = synthesize(seed=0)
    >>> TradeOffsDisplay.from_results([("Nothing", trade_offs(table, table.original))], task="mc").rows
    (('Nothing', 0.0, 0.0),)
    """

    rows: tuple[tuple[str, float, float], ...]
    """Name, ΔCF and ΔCS in points; from top to bottom."""

    @classmethod
    def from_results(
        cls,
        results: Sequence[Row],
        *,
        task: str,
        bold: Sequence[str] = (),
        ax: Axes | None = None,
        style: FigureStyle = LIGHT,
    ) -> Self:
        """Draw one task on ``ax``, or on a new figure; ``bold`` names the rows to look at."""
        rows = tuple(
            (name, 100 * result.cf.delta, 100 * result.cs.delta)
            for name, of_tasks in results
            for result in of_tasks
            if result.task == task
        )
        with style.applied():
            axes = ax or style.new_axes(4.8, height_of(len(rows)))
            display = cls(axes_=axes, style=style, rows=rows)
            display._draw(task, bold)
        return display

    def _draw(self, task: str, bold: Sequence[str]) -> None:
        axes = self.axes_
        heights = [float(place) for place in range(len(self.rows))]
        draw_changes(axes, self.style, heights, [row[1] for row in self.rows], [row[2] for row in self.rows])
        axes.set_yticks(heights, [row[0] for row in self.rows])
        axes.set_ylim(len(self.rows) - 0.4, -0.6)
        for label in axes.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() in bold else "normal")
        axes.set_title(task_name(task))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.5 / (height_of(len(self.rows)) - 1.0)), ncols=2)


def draw_changes(
    axes: Axes, style: FigureStyle, heights: Sequence[float], cf: Sequence[float], cs: Sequence[float]
) -> None:
    """ΔCF and ΔCS on lines of the given heights; equal ones are both to be seen."""
    axes.axvline(0, color=style.quiet, linewidth=0.8)
    axes.hlines(heights, cs, cf, color=style.quiet, linewidth=1.0, alpha=0.6, zorder=2)
    looks = (("ΔCS: retention", cs, style.cs, "s", 7.5), ("ΔCF: repair", cf, style.cf, "o", 5.5))
    for name, values, colour, marker, size in looks:
        axes.plot(values, heights, marker, color=colour, markersize=size, label=name, markeredgecolor=style.paper,
                  markeredgewidth=0.6, zorder=3)  # fmt: skip
    axes.set_xlabel("change of accuracy (points)")
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=7, integer=True)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def height_of(rows: int) -> float:
    """Inches that so many rows take."""
    return 1.3 + 0.27 * rows


def draw_trade_offs(results: Sequence[Row], style: FigureStyle | None, *, bold: Sequence[str] = ()) -> Figure | None:
    """One panel per task on the same scale; None without results."""
    chosen = style or LIGHT
    tasks = sorted({result.task for _, of_tasks in results for result in of_tasks})
    if not tasks:
        return None
    draws: list[Callable[[Axes], object]] = [
        lambda axes, task=task: TradeOffsDisplay.from_results(  # type: ignore[misc]
            results, task=task, bold=bold, ax=axes, style=chosen
        )
        for task in tasks
    ]
    return side_by_side(draws, 4.8, height_of(len(results)), chosen, same_scale=True)
