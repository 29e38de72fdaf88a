"""What all displays share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def readable_on(colour: tuple[float, ...]) -> str:
    """Black or white, whichever stands out against a colour (its relative luminance decides)."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def side_by_side(
    draws: Sequence[Callable[[Axes], object]],
    width: float,
    height: float,
    style: FigureStyle,
    *,
    same_scale: bool = False,
) -> Figure:
    """One figure with a panel for every drawing, each of the given size in inches.

    A legend and names of rows that all panels have in common are there once; ``same_scale`` gives all panels the same
    horizontal axis.
    """
    from matplotlib.figure import Figure

    with style.applied():
        figure = Figure(figsize=(width * len(draws), height), layout="constrained")
        for axes, draw in zip(figure.subplots(1, len(draws), squeeze=False)[0], draws, strict=True):
            draw(axes)
        _share_legend(figure)
    _share_names(figure)
    if same_scale:
        ends = [axes.get_xlim() for axes in figure.axes]
        for axes in figure.axes:
            axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    return figure


def _share_legend(figure: Figure) -> None:
    legends = [axes.get_legend() for axes in figure.axes]
    said = [[] if legend is None else [text.get_text() for text in legend.get_texts()] for legend in legends]
    if not said[0] or any(texts != said[0] for texts in said):
        return
    for legend in legends:
        assert legend is not None  # every panel has the same one
        legend.remove()
    columns = min(len(said[0]), 4) if len(said[0]) <= 4 else 1 + len(figure.axes)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def _share_names(figure: Figure) -> None:
    from matplotlib.ticker import ScalarFormatter

    if any(isinstance(axes.yaxis.get_major_formatter(), ScalarFormatter) for axes in figure.axes):
        return  # numbers are no names
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    if names[0] and all(each == names[0] for each in names):
        for axes in figure.axes[1:]:
            axes.set_yticklabels([])


def limits(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest value and zero, with some room."""
    low, high = min([*values, 0.0]), max([*values, 0.0])
    room = max(0.09 * (high - low), 0.8)
    return low - room, high + room
