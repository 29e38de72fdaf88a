"""The stable ranges of all proposals of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from unprior.plots.display import Display, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.scores.schema import BoolArray
from unprior.scores.table import FloatArray
from unprior.studies.rq3.stable_ranges import TaskRanges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_UP_TO = 1.6
"""The paper shows ranges up to this strength."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesDisplay(Display):
    """Each line is one example: the strengths for which its proposal stays the same, with the fitted λ as a dot.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_ranges
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> RangesDisplay.from_results(study_ranges(decisions).tasks[0]).low.shape
    (460,)
    """

    low: FloatArray
    high: FloatArray
    """Cut at ``SHOWN_UP_TO``."""
    strength: FloatArray

    @classmethod
    def from_results(cls, results: TaskRanges, *, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        with style.applied():
            axes = ax or style.new_axes(4.5, 4.6)
            low, high = np.minimum(results.low, SHOWN_UP_TO), np.minimum(results.high, SHOWN_UP_TO)
            display = cls(axes_=axes, style=style, low=low, high=high, strength=results.strength)
            display._draw(results)
        return display

    def _draw(self, results: TaskRanges) -> None:
        axes, style = self.axes_, self.style
        left = ~results.repaired & ~results.harmed
        groups = (
            (left, style.quiet, "neither"),
            (results.repaired, style.repaired, "repaired"),
            (results.harmed, style.harmed, "harmed"),
        )
        thickness = float(np.clip(260 / max(len(self.low), 1), 0.5, 4.0))
        for level, (members, colour, name) in enumerate(groups, start=2):
            if members.any():
                self._draw_group(members, colour, thickness if level == 2 else 1.8 * thickness, level)
                axes.plot([], [], color=colour, linewidth=2, label=f"{name} ({int(members.sum())})")
        axes.plot([], [], ".", color=style.ink, markersize=5, label="fitted λ")
        axes.axvline(results.max_strength, color=style.ink, linestyle="--", linewidth=1.0, zorder=6,
                     label=f"cap λ = {results.max_strength:g}")  # fmt: skip
        if results.fixed_strength is not None:
            axes.axvline(results.fixed_strength, color=style.control, linestyle=":", linewidth=1.6, zorder=6,
                         label=f"one λ* = {results.fixed_strength:.2f} for all")  # fmt: skip
        axes.set(xlim=(-0.03, SHOWN_UP_TO), ylim=(-1, len(self.low)), yticks=[], title=task_name(results.task))
        axes.set(xlabel="strength λ", ylabel=f"{len(self.low)} examples, sorted")
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, columnspacing=1.4)

    def _draw_group(self, members: BoolArray, colour: str, thickness: float, level: int) -> None:
        from matplotlib.collections import LineCollection

        heights = np.flatnonzero(members)
        ends = np.stack([self.low[members], self.high[members]], axis=1)
        segments = np.stack([ends, np.repeat(heights[:, None], 2, axis=1)], axis=2)
        quiet = level == 2
        lines = LineCollection(
            list(segments), colors=colour, linewidths=thickness, alpha=0.4 if quiet else 0.75, zorder=level
        )
        self.axes_.add_collection(lines)
        self.axes_.plot(self.strength[members], heights, ".", color=self.style.ink, markersize=3.0,
                        markeredgecolor="none", zorder=5)  # fmt: skip
