"""RQ4: does the result depend on which pairs happened to be for development?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.benchmarks.splits import DEV, REPEATED_SEEDS, split_by_seed
from unprior.plots.display import draw_zero, task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.studies.common.resplit import fold, outline_by_subcategory
from unprior.studies.common.spread import TaskSpread, spreads
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_list
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class SplitResult:
    """SPC fitted and tested on one split."""

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
    method: str
    """SPC with its version and ε."""
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
            {"seed": split.seed, "epsilon": self.epsilon, "development_pairs": split.development_pairs,
             "abstains": split.abstains}
            | result.record()
            for split in self.splits
            for result in split.tasks
        ]  # fmt: skip

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
            f"Variation of {self.method} across {len(self.splits)} independent data splits",
            ("Task", "ΔCF mean ± std [range]", "ΔCS mean ± std [range]"),
            rows,
            f"Changes in points of accuracy. For every split {drawn} are drawn for development; all others are tested.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """In how many splits there is repair, and how much results vary."""
        gains = [result.cf.delta > 0 for split in self.splits for result in split.tasks]
        means = format_list([f"{each.cf.shown()} on {each.task.upper()}" for each in self.summary])
        lost = [f"in {sum(result.cs.delta < 0 for result in self.of(each.task)) or 'none'} on {each.task.upper()}"
                for each in self.summary]  # fmt: skip
        return (
            f"{'All' if all(gains) else f'{sum(gains)} of'} {len(gains)} CF changes of {self.method} "
            f"over {len(self.splits)} splits are positive; mean ± standard deviation is {means}.",
            f"Of the {len(self.splits)} splits, CS accuracy falls {format_list(lost)}.",
        )

    def panels(self) -> Panels | None:
        """One point per split, for every task."""
        return Panels.per_task(RepeatedSplits._draw, self, [each.task for each in self.summary], 4.0, 3.4)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        """Every split as a dot, their mean with one standard deviation as a cross."""
        points = [(100 * result.cs.delta, 100 * result.cf.delta) for result in self.of(task)]
        summary = next(each for each in self.summary if each.task == task)
        across, up = (0.0 if math.isnan(each.deviation) else 100 * each.deviation for each in (summary.cs, summary.cf))
        draw_zero(ax, style)
        ax.plot(*zip(*points, strict=True), "o", color=style.method, markersize=6, alpha=0.75,
                markeredgecolor=style.paper, label=f"{self.method}, one split", zorder=3)  # fmt: skip
        ax.errorbar(100 * summary.cs.mean, 100 * summary.cf.mean, xerr=across, yerr=up, color=style.control,
                    linewidth=1.6, capsize=3, label="mean ± std", zorder=4)  # fmt: skip
        ax.margins(0.12)
        ax.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)", title=task_name(task))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=1)


def study_repeated_splits(
    table: ScoreTable, *, seeds: Sequence[int] = REPEATED_SEEDS, epsilon: float = 0.04
) -> RepeatedSplits:
    """Draw the development pairs of every subcategory anew for every seed and fit uncertainty-aware SPC again.

    As many are drawn as the table's own split has at most in a subcategory; in the paper these are five.
    """
    full_benchmark = outline_by_subcategory(table)
    pairs = {(example.pair_id, example.subcategory) for example in full_benchmark if example.split == DEV}
    per_subcategory = max(Counter(subcategory for _, subcategory in pairs).values())
    splits = []
    for seed in seeds:
        drawn = fold(table, split_by_seed(full_benchmark, seed, per_subcategory))
        decisions = drawn.decisions(epsilon, uncertainty=True)
        results = trade_offs(drawn.test, decisions)
        splits.append(SplitResult(seed, drawn.development_pairs, decisions.settings is None, results))
    subcategories = len({example.subcategory for example in full_benchmark})
    return RepeatedSplits(epsilon, decisions.method, per_subcategory, subcategories, tuple(splits))


STUDY = Study(
    name="repeated-splits",
    title="Repeated data splits",
    asks="Does the result depend on which pairs happened to be for development?",
    how="Ten seeds; each draws as many development pairs of every subcategory as the run has at most in one (five in "
    "the paper), SPC (uncertainty-aware, ε = {epsilon}) is fitted on these and tested on all others. The standard "
    "deviation is that of a sample (n − 1).",
    label="tab:repeated-split-summary",
    figure="fig:repeated-splits",
    run=lambda inputs: study_repeated_splits(inputs.table, epsilon=inputs.epsilon),
)
