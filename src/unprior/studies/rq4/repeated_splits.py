"""RQ4: does the result depend on which pairs happened to be for development?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.benchmarks.splits import DEV, REPEATED_SEEDS, split_by_seed
from unprior.scores import ScoreTable
from unprior.studies.common.resplit import fold, outline_by_subcategory
from unprior.studies.common.spread import TaskSpread, spreads
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_limit, format_list
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle


@dataclass(frozen=True, slots=True)
class SplitResult:
    """SPC fitted and judged on one split."""

    seed: int
    development_pairs: int
    abstains: bool
    """No setting was feasible, so every answer stays."""
    tasks: tuple[TradeOff, ...]


@dataclass(frozen=True, slots=True)
class RepeatedSplits(StudyResult):
    """One fit for every seed.

    >>> from unprior import synthesize
    >>> result = study_repeated_splits(synthesize(seed=0), seeds=(0, 1))
    >>> [(split.seed, split.development_pairs) for split in result.splits]
    [(0, 70), (1, 70)]
    """

    epsilon: float
    per_subcategory: int
    """Development pairs drawn from every subcategory that has so many."""
    subcategories: int
    """How many subcategories there are to draw from."""
    splits: tuple[SplitResult, ...]

    @property
    def summary(self) -> tuple[TaskSpread, ...]:
        """Mean, standard deviation and range by task."""
        return spreads(split.tasks for split in self.splits)

    def of(self, task: str) -> tuple[TradeOff, ...]:
        """The results of one task by seed."""
        return tuple(result for split in self.splits for result in split.tasks if result.task == task)

    def records(self) -> list[dict[str, Any]]:
        """One record per split and task."""
        return [
            {
                "seed": split.seed,
                "epsilon": self.epsilon,
                "development_pairs": split.development_pairs,
                "abstains": split.abstains,
            }
            | result.record()
            for split in self.splits
            for result in split.tasks
        ]

    @property
    def table(self) -> Table:
        """Mean ± standard deviation [range]."""
        rows = [
            (each.task.upper(), *(f"{side.shown(2)} {side.shown_range(2)}" for side in (each.cf, each.cs)))
            for each in self.summary
        ]
        everywhere = all(each.development_pairs == self.per_subcategory * self.subcategories for each in self.splits)
        drawn = f"{'' if everywhere else 'up to '}{format_count(self.per_subcategory, 'pair')} of each subcategory"
        return Table.plain(
            f"Variation across {len(self.splits)} independent data splits",
            ("Task", "ΔCF mean ± std [range]", "ΔCS mean ± std [range]"),
            rows,
            f"Points of accuracy; uncertainty-aware SPC, ε = {format_limit(self.epsilon)}. For every "
            f"split {drawn} are drawn for development; all others are tested.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """In how many splits there is repair, and how much results vary."""
        results = [result for split in self.splits for result in split.tasks]
        positive = sum(result.cf.delta > 0 for result in results)
        means = format_list([f"{each.cf.shown()} on {each.task.upper()}" for each in self.summary])
        lost = [f"in {sum(result.cs.delta < 0 for result in self.of(each.task)) or 'none'} on {each.task.upper()}"
                for each in self.summary]  # fmt: skip
        return (
            f"{'All' if positive == len(results) else f'{positive} of'} {len(results)} CF changes over "
            f"{len(self.splits)} splits are positive; mean ± standard deviation is {means}.",
            f"Of the {len(self.splits)} splits CS accuracy falls {format_list(lost)}.",
        )

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """One point per split, for every task."""
        from unprior.plots.display import side_by_side
        from unprior.plots.style import LIGHT
        from unprior.report.figures.splits import SplitsDisplay

        chosen = style or LIGHT
        draws = [
            lambda axes, task=each.task: SplitsDisplay.from_results(self, task=task, ax=axes, style=chosen)
            for each in self.summary
        ]
        return side_by_side(draws, 4.0, 3.4, chosen)


def study_repeated_splits(
    table: ScoreTable, *, seeds: Sequence[int] = REPEATED_SEEDS, epsilon: float = 0.04
) -> RepeatedSplits:
    """Draw the development pairs of every subcategory anew for every seed and fit uncertainty-aware SPC again.

    As many are drawn as the table's own split has at most in a subcategory; in the paper these are five.
    """
    whole = outline_by_subcategory(table)
    own = Counter(subcategory for _, subcategory in {(e.pair_id, e.subcategory) for e in whole if e.split == DEV})
    per_subcategory = max(own.values())
    splits = []
    for seed in seeds:
        drawn = fold(table, split_by_seed(whole, seed, per_subcategory))
        decisions = drawn.decisions(epsilon, uncertainty=True)
        results = trade_offs(drawn.test, decisions)
        splits.append(SplitResult(seed, drawn.development_pairs, decisions.settings is None, results))
    return RepeatedSplits(epsilon, per_subcategory, len({each.subcategory for each in whole}), tuple(splits))


STUDY = Study(
    name="repeated-splits",
    question="rq4",
    title="Repeated data splits",
    asks="Does the result depend on which pairs happened to be for development?",
    how="Ten seeds; each draws as many development pairs of every subcategory as the run has at most in one (five in "
    "the paper), uncertainty-aware SPC (ε = {epsilon}) is fitted on these and judged on all others. The standard "
    "deviation is that of a sample (n − 1).",
    needs=("scores",),
    run=lambda inputs: study_repeated_splits(inputs.table, epsilon=inputs.epsilon),
)
