"""Panels of a figure: what is drawn on each axes, and how panels of one or several models stand together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unprior.plots.style import LIGHT, FigureStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

    def plot(self, axes: Axes | Sequence[Axes], style: FigureStyle = LIGHT) -> None:
        """Draw on given axes, one for every panel."""
        given = [axes] if not isinstance(axes, Sequence) else list(axes)
        if len(given) != len(self.draws):
            raise ValueError(f"the figure has {len(self.draws)} panels; give as many axes, not {len(given)}")
        for each, draw in zip(given, self.draws, strict=True):
            with style.applied():
                draw(each, style)


def by_model(models: Mapping[str, Panels], style: FigureStyle = LIGHT) -> Figure:
    """A column for every model, a row for every panel."""
    columns = list(models.values())
    rows = [[each.draws[place] for each in columns] for place in range(min(len(each.draws) for each in columns))]
    figure = _figure(rows, columns[0], style)
    for axes, name in zip(figure.axes, models, strict=False):
        title = axes.get_title(loc="left")
        axes.set_title(f"{name}\n{title}" if title else name, color=style.ink)
    return figure


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
    legends = [axes.get_legend() for axes in figure.axes]
    texts = [[] if legend is None else [text.get_text() for text in legend.get_texts()] for legend in legends]
    if not texts[0] or any(each != texts[0] for each in texts):
        return
    for legend in legends:
        assert legend is not None  # every panel has the same one
        legend.remove()
    columns = min(len(texts[0]), 4) if len(texts[0]) <= 4 else 1 + len(figure.axes)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def _share_names(row: Sequence[Axes]) -> None:
    """Names of lines stand at the first panel of a row only, where all have the same."""
    from matplotlib.ticker import ScalarFormatter

    if any(isinstance(axes.yaxis.get_major_formatter(), ScalarFormatter) for axes in row):
        return  # numbers are no names
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in row]
    if names[0] and all(each == names[0] for each in names):
        for axes in row[1:]:
            axes.set_yticklabels([])
