"""RQ3: do different estimates of the prior name the same answer?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import Share, prior_winners
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle, readable_on
from unprior.scores import ScoreTable
from unprior.scores.priors import VIEWS, with_prior
from unprior.scores.schema import IntArray
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_extremes, format_percent
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class PriorAgreementCell:
    """How often two estimates put the same candidate first."""

    first: str
    second: str
    task: str | None
    """None for all examples."""
    same: Share


@dataclass(frozen=True, slots=True)
class PriorAgreement(StudyResult):
    """Agreement of the top answers of all pairs of views.

    >>> row = {"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes", "answer": "no",
    ...        "image_scores": [-0.3, -1.4], "prior_scores": [-0.1, -2.4], "views": {"white": [-1.5, -0.2]}}
    >>> study_prior_agreement(ScoreTable.from_rows([row]), views=("text", "white")).between("text", "white")
    0.0
    """

    views: tuple[str, ...]
    pairs: tuple[PriorAgreementCell, ...]
    """Every pair of views, over all examples and then by task."""

    def between(self, first: str, second: str) -> float:
        """Agreement of two views over all examples; 1 with itself."""
        if first == second:
            return 1.0
        return next(
            each.same.value for each in self.pairs if {each.first, each.second} == {first, second} and each.task is None
        )

    def records(self) -> list[dict[str, Any]]:
        """One record per pair of views, over all examples and by task."""
        return [
            {"first": each.first, "second": each.second, "task": each.task}
            | {"agreement": each.same.value, "same": each.same.count, "total": each.same.total}
            for each in self.pairs
        ]

    @property
    def table(self) -> Table:
        """The matrix."""
        rows = [
            (view, *("–" if view == other else format_percent(self.between(view, other)) for other in self.views))
            for view in self.views
        ]
        return Table.plain(
            "Agreement of the prior's top answer (%)", ("Input", *self.views), rows,
            f"Share of all {self.pairs[0].same.total} examples for which both inputs put the same candidate first.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who agrees most and least, and which input is closest to text only."""
        overall = {f"{each.first}–{each.second}": each.same.value for each in self.pairs if each.task is None}
        sentences = [
            f"The share of examples for which two inputs put the same candidate first {format_extremes(overall)}."
        ]
        if "text" in self.views and len(self.views) > 2:
            others = {view: self.between("text", view) for view in self.views if view != "text"}
            sentences.append(f"Agreement with the text-only prior {format_extremes(others)}.")
        return tuple(sentences)

    def panels(self) -> Panels:
        """The matrix as a heat map."""
        return Panels((self._draw,), 0.9 + 0.85 * len(self.views), 0.55 + 0.55 * len(self.views))

    def _draw(self, axes: Axes, style: FigureStyle) -> None:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.patches import Rectangle

        ramp = LinearSegmentedColormap.from_list("agreement", style.ramp)
        for (row, first), (column, second) in product(enumerate(self.views), repeat=2):
            share, own = self.between(first, second), row == column
            face = style.grid if own else ramp(share)
            axes.add_patch(Rectangle((column + 0.02, row + 0.03), 0.96, 0.94, facecolor=face, edgecolor="none"))
            if not own:
                axes.text(column + 0.5, row + 0.5, f"{100 * share:.1f} %", color=readable_on(ramp(share)), ha="center",
                          va="center")  # fmt: skip
        places = [index + 0.5 for index in range(len(self.views))]
        axes.set(xlim=(0, len(self.views)), ylim=(len(self.views), 0))
        axes.set_xticks(places, self.views)
        axes.set_yticks(places, self.views)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)


def study_prior_agreement(table: ScoreTable, *, views: tuple[str, ...] = VIEWS) -> PriorAgreement:
    """Compare the candidates that every view puts first; ties go to the first candidate."""
    winners = {view: prior_winners(with_prior(table, view)) for view in views}
    pairs = []
    groups: dict[str | None, IntArray] = {None: np.arange(len(table))}
    groups |= {str(task): rows for (task,), rows in group_rows(table, "task").items()}
    for label, rows in groups.items():
        for first, second in combinations(views, 2):
            same = winners[first][rows] == winners[second][rows]
            pairs.append(PriorAgreementCell(first, second, label, Share(int(same.sum()), len(same))))
    return PriorAgreement(tuple(views), tuple(pairs))


STUDY = Study(
    name="prior-agreement",
    title="Agreement of prior estimates",
    asks="Do blank images and no image at all name the same answer?",
    how="Over all examples of both splits: the share for which two inputs (text only, white, black and mean image) "
    "give the highest prior score to the same candidate. Nothing is fitted.",
    needs=("scores", "views"),
    run=lambda inputs: study_prior_agreement(inputs.table),
)
