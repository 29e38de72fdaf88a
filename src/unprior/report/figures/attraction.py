"""The attraction matrix as a heat map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.plots.display import Display, readable_on
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies import Attraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WHOLE = "All"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttractionDisplay(Display):
    """Subcategories by tasks: the share of wrong counterfactual answers that the prior would give, with n.

    >>> from unprior import synthesize
    >>> from unprior.studies import study_attraction
    >>> display = AttractionDisplay.from_results(study_attraction(synthesize(seed=0).where(split="test")))
    >>> len(display.rows), display.columns
    (15, ('mc', 'qa'))
    """

    rows: tuple[str, ...]
    """Subcategories, then the whole task."""
    columns: tuple[str, ...]
    rates: tuple[tuple[float, ...], ...]
    """By row and column; NaN without errors."""
    errors: tuple[tuple[int, ...], ...]
    """n, the number of wrong answers."""

    @classmethod
    def from_results(cls, results: Attraction, *, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw on ``ax``, or on a new figure."""
        names: list[str | None] = [*results.subcategories, None]
        cells = [[results.cell(name, task) for task in results.tasks] for name in names]
        rates = tuple(tuple(math.nan if cell is None else cell.attracted.value for cell in row) for row in cells)
        errors = tuple(tuple(0 if cell is None else cell.attracted.total for cell in row) for row in cells)
        rows = (*results.subcategories, _WHOLE)
        with style.applied():
            axes = ax or style.new_axes(4.5, 0.75 + 0.31 * len(rows))
            _draw(axes, style, rows, results.tasks, rates, errors)
        return cls(axes_=axes, style=style, rows=rows, columns=results.tasks, rates=rates, errors=errors)


def _draw(
    axes: Axes,
    style: FigureStyle,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    rates: tuple[tuple[float, ...], ...],
    errors: tuple[tuple[int, ...], ...],
) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    ramp = LinearSegmentedColormap.from_list("attraction", style.ramp)
    last = len(rows) - 1
    for row, column in ((row, column) for row in range(len(rows)) for column in range(len(columns))):
        rate, count = rates[row][column], errors[row][column]
        top = row + (0.25 if row == last and last > 0 else 0.0)  # the whole stands a little apart
        empty = math.isnan(rate)
        face = style.grid if empty else ramp(rate)
        axes.add_patch(Rectangle((column + 0.02, top + 0.04), 0.96, 0.92, facecolor=face, edgecolor="none"))
        words = style.quiet if empty else readable_on(ramp(rate))
        bold = "bold" if row == last else "normal"
        text = "no errors" if empty else f"{100 * rate:.0f} %"
        axes.text(column + 0.53, top + 0.5, text, color=words, ha="right" if not empty else "center", va="center",
                  fontweight=bold)  # fmt: skip
        if not empty:
            axes.text(column + 0.58, top + 0.5, f"n = {count}", color=words, ha="left", va="center", fontsize=7.5)
    heights = [row + 0.5 + (0.25 if row == last and last > 0 else 0.0) for row in range(len(rows))]
    axes.set(xlim=(0, len(columns)), ylim=(heights[-1] + 0.5, 0))
    axes.set_xticks([column + 0.5 for column in range(len(columns))], [name.upper() for name in columns])
    axes.set_yticks(heights, rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
