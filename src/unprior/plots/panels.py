"""Panels of a figure: what is drawn on each axes, and how panels of one or several models stand together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from unprior.errors import UnpriorError
from unprior.plots.labels import shorten
from unprior.plots.style import LIGHT, FigureStyle, as_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_SIGN, _LETTER, _LINE = 0.65, 0.061, 0.19  # what entries of a legend take up, in inches
_COLUMNS = 2  # of models
_OWN_LINES = 3  # of a legend that a panel has room for
_EQUALS = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
_BETWEEN = 0.1  # inches above and below panels under each other
_MAX_NAME, _MAX_LABEL = 20, 38  # letters in a line of names of rows and of a label below the axes, in a narrow figure
NARROW = 3.8
"""Inches that a telephone shows with letters of readable size."""
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

    def figure(self, style: FigureStyle = LIGHT, *, narrow: bool = False) -> Figure:
        """The panels beside each other; or under each other, for a narrow screen."""
        if not narrow:
            return _figure([self.draws], self, style)
        size = replace(self, width=min(self.width, NARROW))
        return _figure([[draw] for draw in self.draws], size, style, narrow=True)

    def plot(self, ax: Axes | Sequence[Axes], style: FigureStyle = LIGHT) -> list[Axes]:
        """Draw on given axes, one for every panel; an array of matplotlib's ``subplots`` will do."""
        given = [as_axes("ax", each) for each in np.ravel(np.asarray(ax, dtype=object)).tolist()]
        if len(given) != len(self.draws):
            raise UnpriorError(f"ax: the figure has {len(self.draws)} panels; give as many axes, not {len(given)}")
        for each, draw in zip(given, self.draws, strict=True):
            with style.applied():
                draw(each, style)
        return given


def by_model(models: Mapping[str, Panels], style: FigureStyle = LIGHT) -> Figure:
    """A column for every model, a row for every panel; more models than a page has room for stand below."""
    plain = list(models.values())
    pairs = [(panels, _titled(panels, name)) for name, panels in models.items()]
    count = min(len(each.draws) for each in plain)
    rows = [
        [(own if place else titled).draws[place] for own, titled in pairs[first : first + _COLUMNS]]
        for first in range(0, len(pairs), _COLUMNS)
        for place in range(count)
    ]
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
        line, title = round(8 * panels.width), axes.get_title(loc="left")
        lengths = range(2 * line, 0, -1)  # of the name: the longest that takes two lines
        shown = next(text for length in lengths if (text := fill(shorten(name, length), line)).count("\n") < 2)
        axes.set_title(f"{shown}\n{title}" if title else shown, loc="left")

    return replace(panels, draws=tuple(partial(titled, draw=draw) for draw in panels.draws))


def _figure(rows: Sequence[Sequence[Draw]], size: Panels, style: FigureStyle, *, narrow: bool = False) -> Figure:
    """A grid of panels; a legend and names of rows that panels have in common are there once."""
    from matplotlib.figure import Figure

    width, height = size.width * len(rows[0]), size.height * len(rows)
    with style.applied():
        figure = Figure(figsize=(width, height), layout="constrained")
        places = figure.subplots(len(rows), len(rows[0]), squeeze=False).tolist()
        grid: list[list[Axes]] = [place[: len(row)] for place, row in zip(places, rows, strict=True)]
        for unused in (axes for place, row in zip(places, rows, strict=True) for axes in place[len(row) :]):
            unused.remove()
        for axes, draw in zip(figure.axes, (draw for row in rows for draw in row), strict=True):
            draw(axes, style)
        if len(rows) > 1:  # a title keeps away from what stands below the panel above it
            figure.set_layout_engine("constrained", h_pad=_BETWEEN)
        if narrow:
            height += sum(_wrap_words(axes, size) for axes in figure.axes)
        lines = sum(max(axes.get_title(loc="left").count("\n") for axes in row) for row in grid)
        lines += _share_legend(figure, width) or _fit_legends(grid, size.width)
    figure.set_figheight(height + _LINE * lines)
    for row in grid:
        _share_names(row)
    if size.same_scale:
        ends = [axes.get_xlim() for axes in figure.axes]
        for axes in figure.axes:
            axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    return figure


def _share_legend(figure: Figure, width: float) -> int:
    """A legend that all panels have in common stands once below them; returns how many lines more than one it takes."""
    texts = [_entries(axes) for axes in figure.axes]
    if not texts[0] or any(each != texts[0] for each in texts):
        return 0
    handles, labels = figure.axes[0].get_legend_handles_labels()
    for axes in figure.axes:
        axes.get_legend().remove()  # type: ignore[union-attr]  # every panel has the same one
    columns = _columns(texts[0], width)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.2)
    return math.ceil(len(texts[0]) / columns) - 1


def _fit_legends(grid: Sequence[Sequence[Axes]], width: float) -> int:
    """Legends that differ stay below their panels, the same one of panels under each other below the last of them.

    Returns how many lines the figure needs beyond those that panels have room for.
    """
    for upper, lower in pairwise(grid):
        for axes, below in zip(upper, lower, strict=False):
            if _entries(axes) and _entries(axes) == _entries(below):
                axes.get_legend().remove()  # type: ignore[union-attr]  # it has entries
    added = 0
    for row in grid:
        lines = [0]
        for axes in row:
            if (legend := axes.get_legend()) is not None:
                columns = _columns(_entries(axes), width)
                axes.legend(loc="upper center", bbox_to_anchor=_anchor(axes, legend), ncols=columns)
                lines.append(math.ceil(len(_entries(axes)) / columns))
        added += max(0, max(lines) - _OWN_LINES)
    return added


def _entries(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def _anchor(axes: Axes, legend: Legend) -> tuple[float, float]:
    """Where the top of a legend is attached, as shares of the axes."""
    box = legend.get_bbox_to_anchor().transformed(axes.transAxes.inverted())
    return box.x0, box.y0


def _columns(texts: Sequence[str], width: float) -> int:
    """Columns of a legend that find room in so many inches."""
    return max(1, min(len(texts), int(width / (_SIGN + _LETTER * max(map(len, texts))))))


def _names(axes: Axes) -> list[str]:
    """Names of rows; an axis of numbers has none."""
    from matplotlib.ticker import ScalarFormatter

    if isinstance(axes.yaxis.get_major_formatter(), ScalarFormatter):
        return []
    return [label.get_text() for label in axes.get_yticklabels()]


def _wrap(text: str, width: int) -> str:
    """Text in several lines; what belongs together, such as “ε = 0.04”, stays on one."""
    parts = [fill(line.replace(" = ", _EQUALS).replace("/", "/ "), width)
             for line in text.split("\n")]  # fmt: skip
    return "\n".join(parts).replace("/ ", "/").replace(_EQUALS, " = ")


def _wrap_words(axes: Axes, size: Panels) -> float:
    """Break title, names of rows and the label below into lines; returns the inches that names and label need more."""
    axes.set_title(_wrap(axes.get_title(loc="left"), round(8 * size.width)), loc="left")
    before = axes.get_xlabel()
    axes.set_xlabel(_wrap(before, _MAX_LABEL))
    added = _LINE * (axes.get_xlabel().count("\n") - before.count("\n"))
    if (legend := axes.get_legend()) is not None:  # it makes room for the label
        across, up = _anchor(axes, legend)
        legend.set_bbox_to_anchor((across, up - added / size.height), axes.transAxes)
    if names := [_wrap(name, _MAX_NAME) for name in _names(axes)]:
        axes.set_yticklabels(names)
        added += 0.6 * _LINE * max(name.count("\n") for name in names) * len(names)
    return added


def _share_names(row: Sequence[Axes]) -> None:
    """Names of lines stand at the first panel of a row only, where all have the same."""
    names = [_names(axes) for axes in row]
    if names[0] and all(each == names[0] for each in names):
        for axes in row[1:]:
            axes.set_yticklabels([])
