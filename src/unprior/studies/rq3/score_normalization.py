"""RQ3: does it matter whether token log-probabilities are summed or averaged?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from unprior.baselines.controls.proposals import FIXED_STRENGTH, fixed_strength_answers
from unprior.calibration import SelectivePriorCalibrator
from unprior.calibration.selection import Ties
from unprior.evaluation.metrics import Share
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.scores.schema import IntArray
from unprior.scores.table import concatenate
from unprior.studies.common.trade_off import TradeOff, changes_by_task, trade_offs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_list, format_percent
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class TaskNormalization:
    """One task with summed and with mean scores."""

    summed: TradeOff
    mean: TradeOff
    same_fixed: Share
    """Examples of both splits with the same winner at the fixed strength."""
    same_cf: Share
    """Counterfactual test examples with the same final answer after separate fits."""
    same_cs: Share
    """The same on commonsense test examples."""

    def record(self) -> dict[str, Any]:
        """Plain numbers; what is undefined is None."""
        record: dict[str, Any] = {"task": self.summed.task}
        for name, result in (("sum", self.summed), ("mean", self.mean)):
            record |= {f"{name}_{key}": value for key, value in result.record().items() if key != "task"}
        return record | {
            name: finite_or_none(getattr(self, name).value) for name in ("same_fixed", "same_cf", "same_cs")
        }


@dataclass(frozen=True, slots=True)
class ScoreNormalization(StudyResult):
    """SPC on summed and on mean token log-probabilities, fitted separately.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_score_normalization(table.where(split="dev"), table.where(split="test"))
    >>> result.identical, result.tasks[0].same_cf.value
    (True, 1.0)
    """

    tasks: tuple[TaskNormalization, ...]
    examples: int
    """Examples of both splits."""
    without_counts: int
    """Examples that do not say how many tokens their candidates have; taken as one each."""
    unequal: int
    """Examples whose candidates differ in their number of tokens."""
    longest: int
    """Tokens of the longest candidate."""
    strength: float
    """The fixed strength."""
    method: str
    """SPC with its version and ε."""

    @property
    def identical(self) -> bool:
        """Whether every candidate is one token, so that sum and mean are the same number."""
        return self.longest == 1

    def records(self) -> list[dict[str, Any]]:
        """One record per task."""
        names = ("examples", "without_counts", "unequal", "longest", "strength")
        counts = {name: getattr(self, name) for name in names}
        return [task.record() | counts for task in self.tasks]

    @property
    def table(self) -> Table:
        """One row per task."""
        rows = [
            (
                each.summed.task.upper(),
                *(format_changes(result.cf.delta, result.cs.delta, 2) for result in (each.summed, each.mean)),
                *(format_percent(share.value) for share in (each.same_fixed, each.same_cf, each.same_cs)),
            )
            for each in self.tasks
        ]
        return Table.plain(
            "Summed and mean token log-probabilities",
            ("Task", "Summed ΔCF/ΔCS", "Mean ΔCF/ΔCS", f"Same at λ = {self.strength:g} (%)", "Same selected CF (%)",
             "Same selected CS (%)"),
            rows,
            f"{self.method}; changes in points. Agreement of the answers at one fixed strength (all examples), and of "
            f"the final answers after separate fits (test).",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether length can matter, and whether it did."""
        if self.identical:
            unsaid = f" ({self.without_counts} of {self.examples} examples do not say so and are taken to be)"
            unknown = unsaid if self.without_counts else ""
            return (
                f"Every candidate is one token{unknown}, so sum and mean are the same by construction.",
                f"With either, {self.method} changes CF/CS accuracy by "
                f"{changes_by_task([each.summed for each in self.tasks])}, in points.",
            )
        most = format_list(
            [f"{each.summed.task.upper()} {format_percent(each.same_fixed.value)} %" for each in self.tasks]
        )
        same = sum(each.same_cf.count + each.same_cs.count for each in self.tasks)
        total = sum(each.same_cf.total + each.same_cs.total for each in self.tasks)
        return (
            f"In {self.unequal or 'none'} of {self.examples} examples the candidates differ in length (at most "
            f"{self.longest} tokens).",
            f"At a fixed strength (λ = {self.strength:g}) sum and mean agree on {most} of the answers; after separate "
            f"fits of {self.method} on {same} of {total} test answers.",
        )


def study_score_normalization(
    development: ScoreTable,
    test: ScoreTable,
    *,
    epsilon: float = 0.04,
    strength: float = FIXED_STRENGTH,
    ties: Ties = "first",
) -> ScoreNormalization:
    """Divide all scores by the number of tokens, fit again, and compare the answers."""
    parts = development, test
    finals, winners = [], []
    for fit, judge in (parts, (_averaged(development), _averaged(test))):
        calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon, ties=ties).fit(fit, split=None)
        finals.append(calibrator.predict(judge))
        winners.append(np.concatenate([fixed_strength_answers(table, strength) for table in (fit, judge)]))
    same_fixed, same = winners[0] == winners[1], finals[0].final_positions == finals[1].final_positions
    both = concatenate(parts)
    named, counts = np.array(both.column("task")), _token_counts(both)
    tasks = []
    for summed, mean in zip(*(trade_offs(test, final) for final in finals), strict=True):
        mine = named == summed.task
        sides = [same[mine[len(development) :] & (test.is_cf == is_cf)] for is_cf in (True, False)]
        shares = [Share(int(agree.sum()), len(agree)) for agree in (same_fixed[mine], *sides)]
        tasks.append(TaskNormalization(summed, mean, *shares))
    return ScoreNormalization(
        tuple(tasks),
        examples=len(both),
        without_counts=sum(count is None for count in both.column("token_counts")),
        unequal=sum(len(set(counts[first:last].tolist())) > 1 for first, last in pairwise(both.offsets.tolist())),
        longest=int(counts.max()),
        strength=strength,
        method=finals[0].method,
    )


def _token_counts(table: ScoreTable) -> IntArray:
    """Tokens of every candidate, flattened like the scores."""
    stored = table.column("token_counts")
    lists = [[1] * size if given is None else given for given, size in zip(stored, table.candidate_counts, strict=True)]
    return np.array([count for given in lists for count in given], dtype=np.int64)


def _averaged(table: ScoreTable) -> ScoreTable:
    count = _token_counts(table)
    return table.with_image_scores(table.image_scores / count).with_prior_scores(table.prior_scores / count)


STUDY = Study(
    name="score-normalization",
    title="Summed or mean scores",
    asks="Does the length of the candidates explain the gain?",
    how="Image and prior scores are divided by the number of tokens of each candidate. Answers are compared at the "
    "fixed strength λ = 0.8 without a gate, and after fitting and selecting standard SPC (ε = {epsilon}) separately on "
    "each.",
    run=lambda inputs: study_score_normalization(
        inputs.development, inputs.test, epsilon=inputs.epsilon, ties=inputs.ties
    ),
    label="tab:score-normalization",
)
