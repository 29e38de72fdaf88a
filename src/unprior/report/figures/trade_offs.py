"""ΔCF and ΔCS of several rows of a table, one under the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.report.figures._display import Display, side_by_side, task_name
from unprior.report.style import LIGHT, FigureStyle
from unprior.studies.trade_off import TradeOff

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
        strong: Sequence[str] = (),
        names: bool = True,
        ax: Axes | None = None,
        style: FigureStyle = LIGHT,
    ) -> Self:
        """Draw one task on ``ax``, or on a new figure; ``strong`` names the rows to look at."""
        rows = tuple(
            (name, 100 * result.cf.delta, 100 * result.cs.delta)
            for name, of_tasks in results
            for result in of_tasks
            if result.task == task
        )
        with style.applied():
            axes = ax or style.new_axes(4.8, height_of(len(rows)))
            display = cls(axes_=axes, style=style, rows=rows)
            display._draw(task, strong, names)
        return display

    def _draw(self, task: str, strong: Sequence[str], names: bool) -> None:
        axes, style = self.axes_, self.style
        heights = list(range(len(self.rows)))
        axes.axvline(0, color=style.quiet, linewidth=0.8)
        for height, (_, cf, cs) in enumerate(self.rows):
            axes.plot([cs, cf], [height, height], color=style.quiet, linewidth=1.0, alpha=0.6, zorder=2)
        looks = (("ΔCS: retention", 2, style.cs, "s", 7.5), ("ΔCF: repair", 1, style.cf, "o", 5.5))
        for name, place, colour, marker, size in looks:
            axes.plot([float(row[place]) for row in self.rows], heights, marker, color=colour, markersize=size,
                      label=name, markeredgecolor=style.paper, markeredgewidth=0.6, zorder=3)  # fmt: skip
        axes.set(yticks=heights, ylim=(len(self.rows) - 0.4, -0.6), xlabel="change of accuracy (points)")
        axes.set_yticklabels([row[0] for row in self.rows] if names else [])
        for label in axes.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() in strong else "normal")
        axes.set_title(task_name(task))
        axes.grid(visible=False, axis="y")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.5 / (height_of(len(self.rows)) - 1.0)), ncols=2)


def height_of(rows: int) -> float:
    """Inches that so many rows take."""
    return 1.3 + 0.27 * rows


def draw_trade_offs(results: Sequence[Row], style: FigureStyle | None, *, strong: Sequence[str] = ()) -> Figure | None:
    """One panel per task, names at the left of the first; None without results."""
    chosen = style or LIGHT
    tasks = sorted({result.task for _, of_tasks in results for result in of_tasks})
    if not tasks:
        return None
    # Rows that a task does not have would put its panel out of step with the names at the left.
    everywhere = all({result.task for result in of_tasks} == set(tasks) for _, of_tasks in results)

    def draw(task: str, names: bool) -> Callable[[Axes], object]:
        return lambda axes: TradeOffsDisplay.from_results(
            results, task=task, strong=strong, names=names, ax=axes, style=chosen
        )

    draws = [draw(task, index == 0 or not everywhere) for index, task in enumerate(tasks)]
    return side_by_side(draws, 4.8, height_of(len(results)), chosen)
