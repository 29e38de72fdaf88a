"""RQ3: do different estimates of the prior name the same answer?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import Share, prior_winners
from unprior.scores import ScoreTable
from unprior.scores.priors import VIEWS, with_prior
from unprior.scores.schema import IntArray
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_extremes, format_percent
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two estimates put the same candidate first."""

    first: str
    second: str
    task: str | None
    """None for all examples."""
    same: Share

    def record(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "first": self.first, "second": self.second, "task": self.task, "agreement": self.same.value,
            "same": self.same.count, "total": self.same.total,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PriorAgreement(StudyResult):
    """Agreement of the top answers of all pairs of views.

    >>> row = {"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes", "answer": "no",
    ...        "image_scores": [-0.3, -1.4], "prior_scores": [-0.1, -2.4], "views": {"white": [-1.5, -0.2]}}
    >>> study_prior_agreement(ScoreTable.from_rows([row]), views=("text", "white")).between("text", "white")
    0.0
    """

    views: tuple[str, ...]
    pairs: tuple[Agreement, ...]
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
        return [each.record() for each in self.pairs]

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
        said = [f"The share of examples for which two inputs put the same candidate first {format_extremes(overall)}."]
        if "text" in self.views and len(self.views) > 2:
            others = {view: self.between("text", view) for view in self.views if view != "text"}
            said.append(f"Agreement with the text-only prior {format_extremes(others)}.")
        return tuple(said)

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """The matrix as a heat map."""
        from unprior.plots.style import LIGHT
        from unprior.report.figures import PriorAgreementDisplay

        return PriorAgreementDisplay.from_results(self, style=style or LIGHT).figure_


def study_prior_agreement(table: ScoreTable, *, views: tuple[str, ...] = VIEWS) -> PriorAgreement:
    """Compare the candidates that every view puts first; ties go to the first candidate."""
    winners = {view: prior_winners(with_prior(table, view)) for view in views}
    pairs = []
    groups: dict[str | None, IntArray] = {None: np.arange(len(table))}
    groups |= {str(task): rows for (task,), rows in group_rows(table, "task").items()}
    for label, rows in groups.items():
        for first, second in combinations(views, 2):
            same = winners[first][rows] == winners[second][rows]
            pairs.append(Agreement(first, second, label, Share(int(same.sum()), len(same))))
    return PriorAgreement(tuple(views), tuple(pairs))


STUDY = Study(
    name="prior-agreement",
    question="rq3",
    title="Agreement of prior estimates",
    asks="Do blank images and no image at all name the same answer?",
    how="Over all examples of both splits: the share for which two inputs (text only, white, black and mean image) "
    "give the highest prior score to the same candidate. Nothing is fitted.",
    needs=("scores", "views"),
    run=lambda inputs: study_prior_agreement(inputs.table),
)
