"""Panels of a figure: what is drawn on each axes, and how panels of one or several models stand together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from unprior.plots.style import LIGHT, FigureStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIGN, _LETTER, _LINE = 0.65, 0.061, 0.19  # what entries of a legend take up, in inches
Draw = Callable[["Axes", FigureStyle], object]
"""Draws one panel on given axes."""


@dataclass(frozen=True, slots=True)
class Panels:
    """The panels of one result from left to right, all of one size.

    >>> panels = Panels((lambda axes, style: axes.plot([0, 1]),), width=3, height=2)
    >>> len(panels.figure().axes)
    1
    """

    draws: tuple[Draw, ...]
    width: float
    """Of one panel, in inches."""
    height: float
    """Of one panel with one line of a common legend."""
    same_scale: bool = False
    """Whether all panels have the same horizontal axis."""

    @classmethod
    def per_task(
        cls,
        draw: Callable[..., object],
        result: object,
        tasks: Sequence[str],
        width: float,
        height: float,
        *,
        same_scale: bool = False,
    ) -> Panels | None:
        """A panel for every task, drawn by the ``from_results`` of a display; None without tasks."""

        def panel(task: str) -> Draw:
            return lambda axes, style: draw(result, task=task, ax=axes, style=style)

        return cls(tuple(map(panel, tasks)), width, height, same_scale) if tasks else None

    def figure(self, style: FigureStyle = LIGHT) -> Figure:
        """The panels beside each other."""
        return _figure([self.draws], self, style)

    def plot(self, axes: Axes | Sequence[Axes], style: FigureStyle = LIGHT) -> list[Axes]:
        """Draw on given axes, one for every panel; an array of matplotlib's ``subplots`` will do."""
        given: list[Axes] = np.ravel(np.asarray(axes, dtype=object)).tolist()
        if len(given) != len(self.draws):
            raise ValueError(f"the figure has {len(self.draws)} panels; give as many axes, not {len(given)}")
        for each, draw in zip(given, self.draws, strict=True):
            with style.applied():
                draw(each, style)
        return given


def by_model(models: Mapping[str, Panels], style: FigureStyle = LIGHT) -> Figure:
    """A column for every model, a row for every panel."""
    columns = [_titled(panels, name) for name, panels in models.items()]
    plain = list(models.values())
    count = min(len(each.draws) for each in plain)
    rows = [[each.draws[place] for each in (plain if place else columns)] for place in range(count)]
    return _figure(rows, replace(plain[0], height=max(each.height for each in plain)), style)


def one_after_another(models: Mapping[str, Panels]) -> Panels:
    """The panels of all models from left to right, each with the name of its model."""
    columns = [_titled(panels, name) for name, panels in models.items()]
    return replace(
        columns[0],
        draws=tuple(draw for each in columns for draw in each.draws),
        height=max(each.height for each in columns),
    )


def _titled(panels: Panels, name: str) -> Panels:
    """The same panels with a name above their titles."""

    def titled(axes: Axes, style: FigureStyle, draw: Draw) -> None:
        draw(axes, style)
        title = axes.get_title(loc="left")
        axes.set_title(fill(name, round(8 * panels.width)) + (f"\n{title}" if title else ""), loc="left")

    return replace(panels, draws=tuple(partial(titled, draw=draw) for draw in panels.draws))


def _figure(rows: Sequence[Sequence[Draw]], size: Panels, style: FigureStyle) -> Figure:
    """A grid of panels; a legend and names of rows that panels have in common are there once."""
    from matplotlib.figure import Figure

    with style.applied():
        figure = Figure(figsize=(size.width * len(rows[0]), size.height * len(rows)), layout="constrained")
        grid = figure.subplots(len(rows), len(rows[0]), squeeze=False)
        for axes, draw in zip(grid.flat, [draw for row in rows for draw in row], strict=True):
            draw(axes, style)
        _share_legend(figure)
    for row in grid:
        _share_names(list(row))
    if size.same_scale:
        ends = [axes.get_xlim() for axes in figure.axes]
        for axes in figure.axes:
            axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    return figure


def _share_legend(figure: Figure) -> None:
    """A legend that all panels have in common stands once below them, and the figure grows by its lines."""
    legends = [axes.get_legend() for axes in figure.axes]
    texts = [[] if legend is None else [text.get_text() for text in legend.get_texts()] for legend in legends]
    if not texts[0] or any(each != texts[0] for each in texts):
        return
    for legend in legends:
        assert legend is not None  # every panel has the same one
        legend.remove()
    width, height = figure.get_size_inches()
    entry = _SIGN + _LETTER * max(map(len, texts[0]))
    columns = max(1, min(len(texts[0]), int(width / entry)))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.2)
    figure.set_size_inches(width, height + _LINE * (math.ceil(len(texts[0]) / columns) - 1))


def _share_names(row: Sequence[Axes]) -> None:
    """Names of lines stand at the first panel of a row only, where all have the same."""
    from matplotlib.ticker import ScalarFormatter

    if any(isinstance(axes.yaxis.get_major_formatter(), ScalarFormatter) for axes in row):
        return  # numbers are no names
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in row]
    if names[0] and all(each == names[0] for each in names):
        for axes in row[1:]:
            axes.set_yticklabels([])
