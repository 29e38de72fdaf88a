"""Repair with other prior scores as box plots over resamples of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from unprior.plots.display import Display, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.rq3.prior_control import CONTROLS
from unprior.studies.rq3.prior_controls import PriorControls
from unprior.tables.format import format_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorControlsDisplay(Display):
    """One task: ΔCF of every control, with the middle half and the middle 95 % of the resamples.

    >>> from unprior import synthesize
    >>> from unprior.studies import study_prior_controls
    >>> table = synthesize(seed=0)
    >>> result = study_prior_controls(table.where(split="dev"), table.where(split="test"), epsilons=(0.1,), seeds=(0,))
    >>> PriorControlsDisplay.from_results(result, task="mc").rows[-1]
    'SPC'
    """

    rows: tuple[str, ...]
    """Controls from top to bottom."""
    boxes: tuple[tuple[float, ...], ...]
    """2.5, 25, 50, 75 and 97.5 % quantiles of ΔCF in points."""
    means: tuple[float, ...]
    """ΔCF in points, mean over seeds."""

    @classmethod
    def from_results(
        cls, results: PriorControls, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT
    ) -> Self:
        """Draw one task, with the study's own ε, on ``ax`` or on a new figure."""
        controls = [results.of(name, task) for name in CONTROLS]
        boxes = tuple(tuple(100 * value for value in control.box) for control in controls)
        means = tuple(100 * float(np.mean(control.cf)) for control in controls)
        rows = tuple(CONTROLS.values())
        with style.applied():
            axes = ax or style.new_axes(5.2, 3.1)
            _draw(axes, style, rows, boxes)
            axes.set(xlabel=f"ΔCF: repair (points), ε = {format_limit(results.epsilons[0])}", title=task_name(task))
        return cls(axes_=axes, style=style, rows=rows, boxes=boxes, means=means)


def _draw(axes: Axes, style: FigureStyle, rows: tuple[str, ...], boxes: tuple[tuple[float, ...], ...]) -> None:
    axes.axvline(0, color=style.quiet, linewidth=0.8)
    for place, (low, lower, middle, upper, high) in enumerate(boxes):
        colour = style.method if place == len(rows) - 1 else style.control
        # matplotlib's own box plots load pyplot and its global state
        axes.hlines(place, low, high, color=colour, linewidth=1.2, zorder=2)
        axes.vlines([low, high], place - 0.14, place + 0.14, color=colour, linewidth=1.2)
        axes.barh(place, upper - lower, left=lower, height=0.55, color=style.paper, zorder=2)
        axes.barh(place, upper - lower, left=lower, height=0.55, color=colour, alpha=0.35, zorder=3)
        axes.vlines(middle, place - 0.275, place + 0.275, color=colour, linewidth=2.2, zorder=4)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
