"""Agreement between estimates of the prior as a heat map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from unprior.plots.display import Display
from unprior.plots.style import LIGHT, FigureStyle, readable_on
from unprior.studies.rq3.prior_agreement import PriorAgreement

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorAgreementDisplay(Display):
    """Views by views: the share of examples with the same top answer.

    >>> row = {"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes", "answer": "no",
    ...        "image_scores": [-0.3, -1.4], "prior_scores": [-0.1, -2.4], "views": {"white": [-1.5, -0.2]}}
    >>> from unprior import ScoreTable
    >>> from unprior.studies import study_prior_agreement
    >>> result = study_prior_agreement(ScoreTable.from_rows([row]), views=("text", "white"))
    >>> PriorAgreementDisplay.from_results(result).shares
    ((1.0, 0.0), (0.0, 1.0))
    """

    views: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]

    @classmethod
    def from_results(cls, results: PriorAgreement, *, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw on ``ax``, or on a new figure."""
        views = results.views
        shares = tuple(tuple(results.between(row, column) for column in views) for row in views)
        with style.applied():
            axes = ax or style.new_axes(0.9 + 0.85 * len(views), 0.55 + 0.55 * len(views))
            _draw(axes, style, views, shares)
        return cls(axes_=axes, style=style, views=views, shares=shares)


def _draw(axes: Axes, style: FigureStyle, views: tuple[str, ...], shares: tuple[tuple[float, ...], ...]) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    ramp = LinearSegmentedColormap.from_list("agreement", style.ramp)
    for row, line in enumerate(shares):
        for column, share in enumerate(line):
            own = row == column
            face = style.grid if own else ramp(share)
            axes.add_patch(Rectangle((column + 0.02, row + 0.03), 0.96, 0.94, facecolor=face, edgecolor="none"))
            if not own:
                axes.text(column + 0.5, row + 0.5, f"{100 * share:.1f} %", color=readable_on(ramp(share)), ha="center",
                          va="center")  # fmt: skip
    places = [index + 0.5 for index in range(len(views))]
    axes.set(xlim=(0, len(views)), ylim=(len(views), 0))
    axes.set_xticks(places, views)
    axes.set_yticks(places, views)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
