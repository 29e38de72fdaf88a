"""Changes of accuracy by claim order, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.benchmarks.forms import CLAIM_ORDERS
from unprior.plots.display import Display, side_by_side
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.rq5.claim_effects import Effect, effect_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_APART = 0.17


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One dot with its interval, in points; NaN where there are no pairs."""

    label: str
    order: str
    delta: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOrdersDisplay(Display):
    """Rows such as question forms or methods; in each a dot per claim order.

    >>> from unprior.studies import study_question_forms
    >>> from unprior.synthetic import synthesize_claims
    >>> rows = study_question_forms(synthesize_claims(), resamples=100).of("spc")
    >>> display = ClaimOrdersDisplay.from_results({row.label: row.effects for row in rows})
    >>> [(line.label, line.order) for line in display.lines[:2]]
    [('Contrastive', 'ordinary-first'), ('Contrastive', 'atypical-first')]
    """

    lines: tuple[ClaimLine, ...]

    @classmethod
    def from_results(
        cls,
        results: Mapping[str, Sequence[Effect]],
        *,
        side: str = "cf",
        title: str = "",
        ax: Axes | None = None,
        style: FigureStyle = LIGHT,
    ) -> Self:
        """Draw effects by row label on ``ax``, or on a new figure."""
        lines = tuple(
            ClaimLine(label, order, 100 * effect.change.delta, 100 * effect.low, 100 * effect.high)
            for label, effects in results.items()
            for order in CLAIM_ORDERS
            for effect in [effect_of(effects, order, side)]
        )
        with style.applied():
            axes = ax or style.new_axes(*_size(len(results)))
            display = cls(axes_=axes, style=style, lines=lines)
            display._draw(list(results), f"Δ{side.upper()} (points)", title)
        return display

    def _draw(self, labels: list[str], quantity: str, title: str) -> None:
        axes, style = self.axes_, self.style
        axes.axvline(0, color=style.quiet, linewidth=0.8)
        looks = {CLAIM_ORDERS[0]: (style.method, "o", -_APART), CLAIM_ORDERS[1]: (style.control, "D", _APART)}
        for line in self.lines:
            colour, marker, shift = looks[line.order]
            height = labels.index(line.label) + shift
            if math.isnan(line.delta):
                if line.order == CLAIM_ORDERS[0]:
                    axes.annotate("no pairs", (0, height + _APART), (6, 0), textcoords="offset points", va="center",
                                  color=style.quiet, fontsize=8)  # fmt: skip
                continue
            axes.plot([line.low, line.high], [height, height], color=colour, linewidth=2.2)
            axes.plot(line.delta, height, marker, color=colour, markersize=6.5, markeredgecolor=style.paper)
        for order, (colour, marker, _) in looks.items():
            name = order.replace("-first", " claim first")
            axes.plot([], [], marker, color=colour, markersize=6.5, linestyle="-", label=name)
        axes.set_yticks(range(len(labels)), labels)
        axes.set(ylim=(len(labels) - 0.5, -0.5), xlabel=quantity, title=title)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.08)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / _size(len(labels))[1]), ncols=2)


def _size(rows: int) -> tuple[float, float]:
    return 4.5, 1.25 + 0.42 * rows


def claim_figure(panels: Sequence[tuple[str, str, Mapping[str, Sequence[Effect]]]], style: FigureStyle) -> Figure:
    """Panels (title, side, effects by row) beside each other, on the same scale."""
    draws = [
        lambda axes, title=title, side=side, effects=effects: ClaimOrdersDisplay.from_results(
            effects, side=side, title=title, ax=axes, style=style
        )
        for title, side, effects in panels
    ]
    return side_by_side(draws, *_size(max(len(effects) for _, _, effects in panels)), style, same_scale=True)
