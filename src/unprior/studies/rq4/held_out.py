"""RQ4: does SPC repair answers in a category that it was not fitted on?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.table import concatenate
from unprior.studies.common.resplit import held_out_folds
from unprior.studies.common.trade_off import TradeOff, changes_by_task, trade_off_panels, trade_offs
from unprior.studies.result import StudyResult, format_repairs
from unprior.studies.study import Study
from unprior.tables.format import format_list
from unprior.tables.model import Row, Section, Table


@dataclass(frozen=True, slots=True)
class HeldOutFold:
    """What SPC does on a category that was left out of its development rows."""

    name: str
    """The category or subcategory."""
    development_pairs: int
    """Pairs it was fitted on, all of other categories."""
    abstains: bool
    """No setting was feasible, so every answer stays."""
    tasks: tuple[TradeOff, ...]


@dataclass(frozen=True, slots=True)
class HeldOut(StudyResult):
    """One fold for every category (or subcategory), and all their answers together.

    >>> from unprior import synthesize
    >>> result = study_held_out(synthesize(seed=0))
    >>> [fold.name for fold in result.folds], result.pooled[0].cf.total
    (['Counting Anomalies', 'Relational Anomalies', 'Attribute Anomalies'], 230)
    """

    by: str
    """``category`` or ``subcategory``."""
    epsilon: float
    method: str
    """SPC with its version and ε."""
    folds: tuple[HeldOutFold, ...]
    pooled: tuple[TradeOff, ...]
    """Over the answers of all folds."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the test rows."""
        return tuple(result.task for result in self.pooled)

    def of(self, task: str) -> tuple[TradeOff, ...]:
        """The results of one task in all folds that have it."""
        return tuple(result for fold in self.folds for result in fold.tasks if result.task == task)

    def records(self) -> list[dict[str, Any]]:
        """One record per fold and task, the pooled ones first with no name."""
        folds = ((fold.name, fold.development_pairs, fold.abstains, fold.tasks) for fold in self.folds)
        return [
            {"by": self.by, "epsilon": self.epsilon, "held_out": name, "development_pairs": pairs, "abstains": abstains}
            | result.record()
            for name, pairs, abstains, results in ((None, None, None, self.pooled), *folds)
            for result in results
        ]

    @property
    def table(self) -> Table:
        """Changes with their repairs and harms, by what was held out."""
        measures = ("ΔCF/ΔCS", "repairs/harms (CF; CS)")
        columns = (f"Held-out {self.by}", *(f"{task.upper()} {name}" for task in self.tasks for name in measures))
        rows = [Row(self._cells(fold.name, fold.tasks)) for fold in self.folds]
        return Table(
            f"Generalisation of {self.method} to each {self.by} left out of development",
            columns,
            (Section(None, (*rows, Row(self._cells("All together", self.pooled), bold=True))),),
            f"Changes in points of accuracy. Every row is fitted without development pairs of its "
            f"{self.by} and tested on that alone; the last row counts all of these answers.",
        )

    def _cells(self, name: str, results: tuple[TradeOff, ...]) -> tuple[str, ...]:
        cells = {each.task: (each.changes, f"{format_repairs(each.cf)}; {format_repairs(each.cs)}") for each in results}
        return (name, *(cell for task in self.tasks for cell in cells.get(task, ("–", "–"))))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The pooled result, and in how many folds repair generalises."""
        plural = "categories" if self.by == "category" else "subcategories"
        sentences = [
            f"Fitted without the {self.by} it is tested on, {self.method} changes CF/CS accuracy by "
            f"{changes_by_task(self.pooled)} (points) over {len(self.folds)} {plural}."
        ]
        for task in self.tasks:
            gains = np.sign([result.cf.repairs - result.cf.harms for result in self.of(task)])
            words = {"rises": 1, "does not change": 0, "falls": -1}
            found = [f"{word} in {(gains == sign).sum()}" for word, sign in words.items() if sign in gains]
            where = f"{format_list(found)} of {len(gains)}" if len(found) > 1 else found[0].replace(" in ", " in all ")
            sentences.append(f"{task.upper()} accuracy on counterfactual images {where} {plural}.")
        abstaining = sum(fold.abstains for fold in self.folds)
        if abstaining:
            sentences.append(
                f"In {abstaining} of {len(self.folds)} fits no setting was feasible, so that no answer is changed."
            )
        return tuple(sentences)

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every fold, task by task."""
        rows = [(fold.name, fold.tasks) for fold in self.folds]
        return trade_off_panels([*rows, ("All together", self.pooled)], bold=("All together",), method=self.method)


def study_held_out(table: ScoreTable, *, by: str = "category", epsilon: float = 0.04) -> HeldOut:
    """Fit uncertainty-aware SPC without one category (or ``by="subcategory"``), test on it alone; for all of them."""
    folds, tests, finals = [], [], []
    for name, fold in held_out_folds(table, by):
        decisions = fold.decisions(epsilon, uncertainty=True)
        results = trade_offs(fold.test, decisions)
        folds.append(HeldOutFold(name, fold.development_pairs, decisions.settings is None, results))
        tests.append(fold.test)
        finals.append(decisions.final_positions)
    return HeldOut(by, epsilon, decisions.method, tuple(folds), trade_offs(concatenate(tests), np.concatenate(finals)))


def _study(by: str, plural: str, label: str = "") -> Study:
    return Study(
        name=f"held-out-{plural}",
        title=f"Held-out {plural}",
        asks=f"Does SPC repair answers in a {by} that it has not seen in development?",
        how=f"For every {by}, SPC (uncertainty-aware, ε = {{epsilon}}) is fitted on the development pairs outside it "
        f"and tested on the test pairs inside it; all answers together cover the test pairs once.",
        label=label,
        needs=("scores",),
        run=lambda inputs: study_held_out(inputs.table, by=by, epsilon=inputs.epsilon),
    )


CATEGORIES = _study("category", "categories", "tab:family-folds")
SUBCATEGORIES = _study("subcategory", "subcategories")
