"""What a set of answers repairs and what it costs: the measure that the studies share, and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from unprior.calibration import Decisions
from unprior.evaluation import Change, compare, utility
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import as_answers
from unprior.plots.display import Display, task_name
from unprior.plots.panels import Panels
from unprior.plots.style import LIGHT, FigureStyle
from unprior.scores import ScoreTable
from unprior.tables.format import format_changes, format_list

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Change of accuracy on both sides of one task, against the original answers."""

    task: str
    cf: Change
    """On counterfactual images: repair."""
    cs: Change
    """On commonsense images: retention."""

    @property
    def utility(self) -> float:
        """U_0.5 = ΔCF + 0.5 ΔCS."""
        return utility(self.cf.delta, self.cs.delta)

    @property
    def changes(self) -> str:
        """ΔCF/ΔCS in points, as tables show them."""
        return format_changes(self.cf.delta, self.cs.delta)

    def record(self) -> dict[str, Any]:
        """Plain numbers; accuracies are shares, not points."""
        record: dict[str, Any] = {"task": self.task}
        for side, change in (("cf", self.cf), ("cs", self.cs)):
            record |= {
                f"delta_{side}": change.delta,
                f"{side}_repairs": change.repairs,
                f"{side}_harms": change.harms,
                f"{side}_changed": change.changed,
                f"{side}_total": change.total,
            }
        return record | {"utility": self.utility}


def trade_offs(table: ScoreTable, answers: ArrayLike | Decisions) -> tuple[TradeOff, ...]:
    """Compare answers with the original ones, task by task.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> [(result.task, result.utility) for result in trade_offs(table, table.original)]
    [('mc', 0.0), ('qa', 0.0)]
    """
    given = as_answers(table, answers)
    results = []
    for (task,), rows in group_rows(table, "task").items():
        part = table.take(rows)
        sides = [compare(part, given[rows], side=side) for side in ("cf", "cs")]
        results.append(TradeOff(str(task), *sides))
    return tuple(results)


def changes_by_task(results: Sequence[TradeOff], before: Sequence[TradeOff] | None = None) -> str:
    """ΔCF/ΔCS of every task in a sentence; beside other results, how much larger they are.

    >>> one = TradeOff("mc", Change(3, 1, 4, 10), Change(0, 1, 1, 10))
    >>> changes_by_task([one]), changes_by_task([one], [one])
    ('+20.0/-10.0 on MC', '+0.0/+0.0 on MC')
    """
    if before is None:
        return format_list([f"{each.changes} on {each.task.upper()}" for each in results])
    pairs = zip(results, before, strict=True)
    return format_list(
        [
            f"{format_changes(here.cf.delta - there.cf.delta, here.cs.delta - there.cs.delta)} on {here.task.upper()}"
            for here, there in pairs
        ]
    )


NamedTradeOffs = tuple[str, Sequence[TradeOff]]
"""The name of a row and the results of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffsDisplay(Display):
    """One task: for every row a dot for ΔCF and one for ΔCS, joined by a line.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> TradeOffsDisplay.from_results([("Nothing", trade_offs(table, table.original))], task="mc").rows
    (('Nothing', 0.0, 0.0),)
    """

    rows: tuple[tuple[str, float, float], ...]
    """Name, ΔCF and ΔCS in points; from top to bottom."""

    @classmethod
    def from_results(
        cls,
        results: Sequence[NamedTradeOffs],
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
        heights = [float(place) for place in range(len(rows))]
        with style.applied():
            axes = ax or style.new_axes(4.8, height_of(len(rows)))
            draw_changes(axes, style, heights, [row[1] for row in rows], [row[2] for row in rows])
            axes.set_yticks(heights, [row[0] for row in rows])
            axes.set_ylim(len(rows) - 0.4, -0.6)
            for label in axes.get_yticklabels():
                label.set_fontweight("bold" if label.get_text() in bold else "normal")
            axes.set_title(task_name(task))
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.5 / (height_of(len(rows)) - 1.0)), ncols=2)
        return cls(axes_=axes, style=style, rows=rows)


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


def trade_off_panels(results: Sequence[NamedTradeOffs], *, bold: Sequence[str] = ()) -> Panels | None:
    """One panel per task on the same scale; None without results."""
    tasks = sorted({result.task for _, of_tasks in results for result in of_tasks})
    draw = partial(TradeOffsDisplay.from_results, bold=bold)
    return Panels.per_task(draw, results, tasks, 4.8, height_of(len(results)), same_scale=True)
