"""Repair and retention as the development set grows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.plots.display import Display, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.common.spread import Spread
from unprior.studies.rq3.development_size import DevelopmentSize

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Line = tuple[tuple[int, float, float], ...]
"""Development pairs, mean and standard deviation in points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesDisplay(Display):
    """One task: means of ΔCF and ΔCS with one standard deviation up and down.

    >>> from unprior import synthesize
    >>> from unprior.studies import study_development_size
    >>> results = study_development_size(synthesize(seed=0), seeds=(0, 1), sizes=(1, 5))
    >>> [pairs for pairs, _, _ in SizesDisplay.from_results(results, task="mc").cf]
    [14, 70]
    """

    cf: Line
    cs: Line

    @classmethod
    def from_results(
        cls, results: DevelopmentSize, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT
    ) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        of_task = {
            size: next(each for each in spreads if each.task == task) for size, spreads in results.summary.items()
        }
        cf = tuple(_place(size, each.cf) for size, each in of_task.items())
        cs = tuple(_place(size, each.cs) for size, each in of_task.items())
        with style.applied():
            axes = ax or style.new_axes(4.0, 3.2)
            display = cls(axes_=axes, style=style, cf=cf, cs=cs)
            display._draw(task)
        return display

    def _draw(self, task: str) -> None:
        axes, style = self.axes_, self.style
        axes.axhline(0, color=style.quiet, linewidth=0.8)
        looks = (("ΔCF: repair", self.cf, style.cf, "o"), ("ΔCS: retention", self.cs, style.cs, "s"))
        for name, line, colour, marker in looks:
            sizes, means, deviations = zip(*line, strict=True)
            axes.errorbar(sizes, means, yerr=deviations, color=colour, marker=marker, markersize=5, capsize=3,
                          linewidth=1.6, label=name)  # fmt: skip
        axes.set_xticks([size for size, _, _ in self.cf])
        axes.set(xlabel="development pairs", ylabel="change of accuracy (points)", title=task_name(task))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def _place(size: int, spread: Spread) -> tuple[int, float, float]:
    return size, 100 * spread.mean, 0.0 if math.isnan(spread.deviation) else 100 * spread.deviation
