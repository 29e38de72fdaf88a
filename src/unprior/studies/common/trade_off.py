"""What a set of answers repairs and what it costs: the measure that the studies share, and its figure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from unprior.calibration import Decisions
from unprior.evaluation import Change, compare, utility
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import as_answers
from unprior.plots.display import task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
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
            counts = {f"{side}_{name}": count for name, count in asdict(change).items()}
            record |= {f"delta_{side}": change.delta} | counts
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
    parts = [f"{each.changes} on {each.task.upper()}" for each in results]
    if before is not None:
        deltas = [(here.cf.delta - there.cf.delta, here.cs.delta - there.cs.delta, here.task.upper())
                  for here, there in zip(results, before, strict=True)]  # fmt: skip
        parts = [f"{format_changes(cf, cs)} on {task}" for cf, cs, task in deltas]
    return format_list(parts)


def mean_utility(results: Sequence[TradeOff]) -> float:
    """U_0.5, the mean over the tasks."""
    return statistics.fmean(result.utility for result in results)


def draw_changes(
    axes: Axes, style: FigureStyle, task: str, rows: Sequence[tuple[str, TradeOff]], heights: Sequence[float]
) -> None:
    """One task: on every line a dot for ΔCF and one for ΔCS, joined; equal ones are both to be seen."""
    cf, cs = [100 * result.cf.delta for _, result in rows], [100 * result.cs.delta for _, result in rows]
    axes.axvline(0, color=style.quiet, linewidth=0.8)
    axes.hlines(heights, cs, cf, color=style.quiet, linewidth=1.0, alpha=0.6, zorder=2)
    looks = (("ΔCS: retention", cs, style.cs, "s", 7.5), ("ΔCF: repair", cf, style.cf, "o", 5.5))
    for name, values, colour, marker, size in looks:
        axes.plot(values, heights, marker, color=colour, markersize=size, label=name, markeredgecolor=style.paper,
                  markeredgewidth=0.6, zorder=3)  # fmt: skip
    axes.set_yticks(heights, [name for name, _ in rows])
    axes.set(ylim=(heights[-1] + 0.6, -0.6), xlabel="change of accuracy (points)", title=task_name(task))
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=7, integer=True)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def trade_off_panels(
    results: Sequence[tuple[str, Sequence[TradeOff]]], *, bold: Sequence[str] = (), method: str = ""
) -> Panels | None:
    """Named rows with the results of their tasks, one panel per task on the same scale; None without results.

    ``bold`` names the rows to look at, ``method`` what all rows have in common.
    """

    def height(rows: int) -> float:
        return (1.45 if method else 1.3) + 0.27 * rows

    def draw(results: Sequence[tuple[str, Sequence[TradeOff]]], *, task: str, ax: Axes, style: FigureStyle) -> None:
        rows = [(name, result) for name, of_tasks in results for result in of_tasks if result.task == task]
        draw_changes(ax, style, task, rows, range(len(rows)))
        if method:
            ax.set_xlabel(f"change of accuracy (points)\n{method}")
        for label in ax.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() in bold else "normal")
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -(0.65 if method else 0.5) / (height(len(rows)) - 1.0)), ncols=2
        )

    tasks = sorted({result.task for _, of_tasks in results for result in of_tasks})
    return Panels.per_task(draw, results, tasks, 4.8, height(len(results)), same_scale=True)
