"""Repair against retention, one point per data split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.plots.display import Display, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.common.spread import TaskSpread
from unprior.studies.rq4.repeated_splits import RepeatedSplits

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitsDisplay(Display):
    """One task: every split as a dot, their mean with one standard deviation as a cross.

    >>> from unprior import synthesize
    >>> from unprior.studies import study_repeated_splits
    >>> results = study_repeated_splits(synthesize(seed=0), seeds=(0, 1))
    >>> len(SplitsDisplay.from_results(results, task="mc").points)
    2
    """

    points: tuple[tuple[float, float], ...]
    """ΔCS and ΔCF in points, by seed."""
    mean: tuple[float, float]

    @classmethod
    def from_results(
        cls, results: RepeatedSplits, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT
    ) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        points = tuple((100 * result.cs.delta, 100 * result.cf.delta) for result in results.of(task))
        summary = next(each for each in results.summary if each.task == task)
        mean = (100 * summary.cs.mean, 100 * summary.cf.mean)
        with style.applied():
            axes = ax or style.new_axes(4.0, 3.4)
            display = cls(axes_=axes, style=style, points=points, mean=mean)
            display._draw(task, summary)
        return display

    def _draw(self, task: str, summary: TaskSpread) -> None:
        axes, style = self.axes_, self.style
        axes.axhline(0, color=style.quiet, linewidth=0.8)
        axes.axvline(0, color=style.quiet, linewidth=0.8)
        across, up = zip(*self.points, strict=True)
        axes.plot(across, up, "o", color=style.method, markersize=6, alpha=0.75, markeredgecolor=style.paper,
                  label="one split", zorder=3)  # fmt: skip
        deviations = [0.0 if each.deviation != each.deviation else 100 * each.deviation
                      for each in (summary.cs, summary.cf)]  # fmt: skip
        axes.errorbar(*self.mean, xerr=deviations[0], yerr=deviations[1], color=style.control, linewidth=1.6,
                      capsize=3, label="mean ± std", zorder=4)  # fmt: skip
        axes.margins(0.12)
        axes.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)", title=task_name(task))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
