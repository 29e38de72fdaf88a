"""What figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unprior.plots.style import FigureStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def task_name(task: str) -> str:
    """The name of a task in full.

    >>> task_name("mc")
    'Multiple choice'
    """
    return {"mc": "Multiple choice", "qa": "Yes/no questions", "open": "Open questions"}.get(task, task)


def limits(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest value and zero, with some room."""
    low, high = min([*values, 0.0]), max([*values, 0.0])
    room = max(0.09 * (high - low), 0.8)
    return low - room, high + room


def draw_zero(axes: Axes, style: FigureStyle, *, across: bool = True) -> None:
    """Lines where nothing changes."""
    axes.axvline(0, color=style.quiet, linewidth=0.8)
    if across:
        axes.axhline(0, color=style.quiet, linewidth=0.8)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names of rows from the top down, without ticks and grid, and with some room beside the values."""
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.08)
