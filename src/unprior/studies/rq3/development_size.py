"""RQ3: how many development pairs does SPC need?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.benchmarks.splits import NESTED_SEEDS, nested_development
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY
from unprior.plots.display import task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.studies.common.resplit import fold, outline_by_subcategory
from unprior.studies.common.spread import TaskSpread, spreads
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.common.variants import spc_name
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_list, format_points
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    def method(self) -> str:
        """SPC with its version and ε."""
        return spc_name(self.epsilon, uncertainty=True)

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
            f"{self.method}; points of accuracy, mean ± standard deviation over {format_count(seeds, 'seed')}. The "
            f"sets of a seed are nested; the test pairs are always the same.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the smallest set gives, and what more pairs change."""
        sizes = list(self.summary)
        least, most = self.summary[sizes[0]], self.summary[sizes[-1]]
        first = format_list([f"{each.cf.shown()} on {each.task.upper()}" for each in least])
        fewest = format_count(sizes[0], "development pair")
        sentences = [f"With {fewest} {self.method} changes CF accuracy by {first}, in points."]
        if len(sizes) > 1:
            moves = [
                f"{format_points(large.cf.mean - small.cf.mean)} points of ΔCF and "
                f"{format_points(large.cs.mean - small.cs.mean)} of ΔCS on {small.task.upper()}"
                for small, large in zip(least, most, strict=True)
            ]
            means = f"the means of {self.method} move by {format_list(moves)}"
            sentences.append(f"From {sizes[0]} to {sizes[-1]} pairs {means}.")
        losing = [size for size, of_tasks in self.summary.items() if any(each.cf.low < 0 for each in of_tasks)]
        where = f"With {format_list([str(size) for size in losing])} {'pair' if losing == [1] else 'pairs'}"
        sentences.append(
            f"{where} {self.method} lowers CF accuracy for some draw."
            if losing
            else f"{self.method} lowers CF accuracy for no draw of any size."
        )
        return tuple(sentences)

    def panels(self) -> Panels | None:
        """Means with one standard deviation up and down by size, for every task."""
        return Panels.per_task(DevelopmentSize._draw, self, self.tasks, 4.0, 3.2)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        ax.axhline(0, color=style.quiet, linewidth=0.8)
        place = self.tasks.index(task)
        looks = (("ΔCF: repair", "cf", style.cf, "o"), ("ΔCS: retention", "cs", style.cs, "s"))
        for name, side, colour, marker in looks:
            found = [getattr(of_tasks[place], side) for of_tasks in self.summary.values()]
            deviations = [0.0 if math.isnan(each.deviation) else 100 * each.deviation for each in found]
            ax.errorbar(list(self.summary), [100 * each.mean for each in found], yerr=deviations, color=colour,
                        marker=marker, markersize=5, capsize=3, linewidth=1.6, label=name)  # fmt: skip
        ax.set_xticks(list(self.summary))
        ax.set(xlabel=f"development pairs\n{self.method}", ylabel="change of accuracy (points)", title=task_name(task))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.26), ncols=2)


def study_development_size(
    table: ScoreTable,
    *,
    seeds: Sequence[int] = NESTED_SEEDS,
    sizes: Sequence[int] = range(1, DEV_PAIRS_PER_SUBCATEGORY + 1),
    epsilon: float = 0.10,
) -> DevelopmentSize:
    """Fit uncertainty-aware SPC on nested sets of some development pairs of every subcategory, for every seed."""
    benchmark = outline_by_subcategory(table)
    nested = {seed: nested_development(benchmark, seed, sizes) for seed in seeds}
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
    title="Effect of development-set size",
    asks="How many development pairs does SPC need?",
    how="Nested sets of one to five development pairs of every subcategory, five seeds; uncertainty-aware SPC (ε = "
    "{wide_epsilon}) is fitted on each and judged on the same test pairs. The standard deviation is that of a sample "
    "(n − 1).",
    run=lambda inputs: study_development_size(inputs.table, epsilon=inputs.wide_epsilon),
    label="tab:calibration-size",
)
