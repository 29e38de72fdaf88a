"""Repair and retention of variants of the method, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.plots.display import Display, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.report.figures.trade_offs import draw_changes
from unprior.studies.common.variants import Variants

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantsDisplay(Display):
    """One task: ΔCF and ΔCS of every variant on a common scale.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_joint_fitting
    >>> table = synthesize(seed=0)
    >>> results = study_joint_fitting(table.where(split="dev"), table.where(split="test"))
    >>> VariantsDisplay.from_results(results, task="mc").rows
    ('MC and QA', 'MC only', 'QA only')
    """

    rows: tuple[str, ...]
    """Variants from top to bottom."""
    cf: tuple[float, ...]
    """ΔCF in points."""
    cs: tuple[float, ...]
    """ΔCS in points."""

    @staticmethod
    def height(results: Variants) -> float:
        """Inches that the lines need."""
        groups = len({each.group for each in results.variants})
        return 1.25 + 0.34 * len(results.variants) + 0.2 * groups

    @classmethod
    def from_results(cls, results: Variants, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        outcomes = [each.on(task) for each in results.variants]
        cf = tuple(100 * outcome.cf.delta for outcome in outcomes)
        cs = tuple(100 * outcome.cs.delta for outcome in outcomes)
        rows = tuple(each.label for each in results.variants)
        with style.applied():
            axes = ax or style.new_axes(5.2, cls.height(results))
            _draw(axes, style, results, task, cf, cs)
        return cls(axes_=axes, style=style, rows=rows, cf=cf, cs=cs)


def _draw(
    axes: Axes, style: FigureStyle, results: Variants, task: str, cf: tuple[float, ...], cs: tuple[float, ...]
) -> None:
    heights, labels, place, last = [], [], 0.0, results.variants[0].group
    for index, each in enumerate(results.variants):
        if each.group != last or (index == 0 and each.group is not None):
            place += 0.9
            ground = {"boxstyle": "square,pad=0.1", "facecolor": style.paper, "edgecolor": "none"}
            axes.annotate(str(each.group), (0.01, place - 0.85), xycoords=("axes fraction", "data"), fontsize=8,
                          color=style.quiet, va="center", bbox=ground)  # fmt: skip
        heights.append(place)
        labels.append(each.label)
        place, last = place + 1.0, each.group
    draw_changes(axes, style, heights, cf, cs)
    best = [index for index, each in enumerate(results.variants) if each.name in results.best(task, each.group)]
    axes.plot([cf[index] for index in best], [heights[index] for index in best], "o", markersize=11,
              markerfacecolor="none", markeredgecolor=style.cf, label="highest U")  # fmt: skip
    axes.set_yticks(heights, labels)
    axes.set_ylim(place - 0.4, -0.6)
    axes.set_title(task_name(task))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45 / (VariantsDisplay.height(results) - 1.0)), ncols=3)
