"""RQ3: how many development pairs does SPC need?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.benchmarks.splits import NESTED_SEEDS, nested_development
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY
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
class SizeRun:
    """SPC fitted on one of the nested sets."""

    per_subcategory: int
    """Development pairs of every subcategory."""
    pairs: int
    """Development pairs in all."""
    seed: int
    abstains: bool
    """No setting was feasible, so every answer stays."""
    tasks: tuple[TradeOff, ...]


@dataclass(frozen=True, slots=True)
class DevelopmentSize(StudyResult):
    """Nested development sets of rising size, several seeds, always the same test rows.

    >>> from unprior import synthesize
    >>> result = study_development_size(synthesize(seed=0), seeds=(0, 1), sizes=(1, 5))
    >>> [(size, [round(task.cf.deviation, 3) for task in tasks]) for size, tasks in result.summary.items()][-1]
    (70, [0.0, 0.0])
    """

    epsilon: float
    runs: tuple[SizeRun, ...]

    @property
    def summary(self) -> dict[int, tuple[TaskSpread, ...]]:
        """Spread over the seeds by number of development pairs and task."""
        sizes = dict.fromkeys(run.pairs for run in self.runs)
        return {size: spreads(run.tasks for run in self.runs if run.pairs == size) for size in sizes}

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the test rows."""
        return tuple(result.task for result in self.runs[0].tasks)

    def records(self) -> list[dict[str, Any]]:
        """One record per set and task."""
        return [
            {
                "pairs_per_subcategory": run.per_subcategory,
                "development_pairs": run.pairs,
                "seed": run.seed,
                "epsilon": self.epsilon,
                "abstains": run.abstains,
            }
            | result.record()
            for run in self.runs
            for result in run.tasks
        ]

    @property
    def table(self) -> Table:
        """Mean ± standard deviation by size."""
        columns = [f"{task.upper()} Δ{side}" for task in self.tasks for side in ("CF", "CS")]
        rows = [
            (str(size), *(side.shown() for each in of_tasks for side in (each.cf, each.cs)))
            for size, of_tasks in self.summary.items()
        ]
        seeds = len({run.seed for run in self.runs})
        return Table.plain(
            "Effect of development-set size",
            ("Development pairs", *columns),
            rows,
            f"Points of accuracy, mean ± standard deviation over {seeds} seeds; uncertainty-aware SPC, "
            f"ε = {format_limit(self.epsilon)}. The sets of a seed contain each other; the test pairs are always "
            f"the same.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the smallest set gives, and what more pairs change."""
        sizes = list(self.summary)
        least, most = self.summary[sizes[0]], self.summary[sizes[-1]]
        first = format_list([f"{each.cf.shown()} on {each.task.upper()}" for each in least])
        said = [f"With {format_count(sizes[0], 'development pair')} CF accuracy changes by {first}, in points."]
        if len(sizes) > 1:
            moves = []
            for small, large in zip(least, most, strict=True):
                gain, kept = 100 * (large.cf.mean - small.cf.mean), 100 * (large.cs.mean - small.cs.mean)
                moves.append(f"{gain + 0.0:+.1f} points of ΔCF and {kept + 0.0:+.1f} of ΔCS on "
                             f"{small.task.upper()}")  # fmt: skip
            said.append(f"From {sizes[0]} to {sizes[-1]} pairs the means move by {format_list(moves)}.")
        losing = [size for size, of_tasks in self.summary.items() if any(each.cf.low < 0 for each in of_tasks)]
        said.append(
            f"With {format_list([str(size) for size in losing])} {'pair' if losing == [1] else 'pairs'} some draw "
            f"lowers CF "
            f"accuracy."
            if losing
            else "No draw of any size lowers CF accuracy."
        )
        return tuple(said)

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """Means with their deviations by size, for every task."""
        from unprior.plots.display import side_by_side
        from unprior.plots.style import LIGHT
        from unprior.report.figures.sizes import SizesDisplay

        chosen = style or LIGHT
        draws = [
            lambda axes, task=task: SizesDisplay.from_results(self, task=task, ax=axes, style=chosen)
            for task in self.tasks
        ]
        return side_by_side(draws, 4.0, 3.2, chosen)


def study_development_size(
    table: ScoreTable,
    *,
    seeds: Sequence[int] = NESTED_SEEDS,
    sizes: Sequence[int] = range(1, DEV_PAIRS_PER_SUBCATEGORY + 1),
    epsilon: float = 0.10,
) -> DevelopmentSize:
    """Fit uncertainty-aware SPC on nested sets of some development pairs of every subcategory, for every seed."""
    whole = outline_by_subcategory(table)
    nested = {seed: nested_development(whole, seed, sizes) for seed in seeds}
    runs = []
    for size in sizes:
        for seed in seeds:
            drawn = fold(table, nested[seed][size])
            decisions = drawn.decisions(epsilon, uncertainty=True)
            results = trade_offs(drawn.test, decisions)
            runs.append(SizeRun(size, drawn.development_pairs, seed, decisions.settings is None, results))
    return DevelopmentSize(epsilon, tuple(runs))


STUDY = Study(
    name="development-size",
    question="rq3",
    title="Effect of development-set size",
    asks="How many development pairs does SPC need?",
    how="Nested sets of one to five development pairs of every subcategory, five seeds; uncertainty-aware SPC (ε = "
    "{wide_epsilon}) is fitted on each and judged on the same test pairs. The standard deviation is that of a sample "
    "(n − 1).",
    needs=("scores",),
    run=lambda inputs: study_development_size(inputs.table, epsilon=inputs.wide_epsilon),
)
