"""What all displays share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unprior.plots.style import FigureStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """A drawn figure, after the fashion of scikit-learn: the result it shows and where it was drawn."""

    axes_: Axes
    style: FigureStyle

    @property
    def figure_(self) -> Figure:
        """The figure that holds the axes."""
        figure = self.axes_.get_figure(root=True)
        assert figure is not None  # axes of a display always stand on a figure
        return figure


def task_name(task: str) -> str:
    """The name of a task in full.

    >>> task_name("mc")
    'Multiple choice'
    """
    return {"mc": "Multiple choice", "qa": "Yes/no questions"}.get(task, task)


def limits(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest value and zero, with some room."""
    low, high = min([*values, 0.0]), max([*values, 0.0])
    room = max(0.09 * (high - low), 0.8)
    return low - room, high + room
