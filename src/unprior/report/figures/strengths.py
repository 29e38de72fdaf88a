"""The distribution of the strengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from unprior.plots.display import Display, task_name
from unprior.plots.style import LIGHT, FigureStyle
from unprior.scores.table import FloatArray
from unprior.studies import Strengths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 24
_SIDES = {"cf": "counterfactual", "cs": "commonsense"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthsDisplay(Display):
    """One task: how often each strength was given, on counterfactual and on commonsense images.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_strengths
    >>> table = synthesize(seed=0)
    >>> results = study_strengths(SelectivePriorCalibrator().fit(table).predict(table))
    >>> display = StrengthsDisplay.from_results(results, task="mc")
    >>> int(display.counts["cf"].sum())
    300
    """

    edges: FloatArray
    """Ends of the bins."""
    counts: dict[str, FloatArray]
    """Examples per bin, by side."""

    @classmethod
    def from_results(cls, results: Strengths, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        groups = results.of(task)
        top = max([results.max_strength or 0.0, *(float(group.values.max()) for group in groups)])
        edges = np.linspace(0.0, top, _BINS + 1)
        counts = {group.side: np.histogram(group.values, edges)[0].astype(np.float64) for group in groups}
        with style.applied():
            axes = ax or style.new_axes(4.5, 3.1)
            for group in groups:
                colour = style.cf if group.side == "cf" else style.cs
                axes.stairs(counts[group.side], edges, color=colour, fill=True, alpha=0.22)
                middle = float(np.median(group.values))
                name = f"{_SIDES.get(group.side, group.side)} (median {middle:.2f})"
                axes.stairs(counts[group.side], edges, color=colour, linewidth=1.6, label=name)
                axes.axvline(middle, color=colour, linestyle=":", linewidth=1.4)
            axes.set(xlabel="strength λ", ylabel="examples", title=task_name(task), xlim=(0.0, 1.02 * top))
            axes.grid(visible=False, axis="x")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        return cls(axes_=axes, style=style, edges=edges, counts=counts)
