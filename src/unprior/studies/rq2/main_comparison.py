"""RQ2: how much does SPC repair, and what does it retain?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.calibration import Decisions
from unprior.evaluation import Evaluation, SideResult, evaluate
from unprior.evaluation.intervals import figure_size
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.studies.result import StudyResult, Test, format_repairs
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_points
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class MainComparison(StudyResult):
    """Original answers and SPC by task: accuracies, the gap between the sides, repairs and harms.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_main_comparison(SelectivePriorCalibrator().fit(table).predict(table.where(split="test")))
    >>> [row.cells[:4] for row in result.table.rows][:2]
    [('MC', 'Original', '0.517', '0.952'), ('', 'SPC (standard, ε = 0.04)', '0.761', '0.926')]
    """

    evaluation: Evaluation

    @property
    def table(self) -> Table:
        """The paper's main table for all tasks, with the intervals of its caption."""
        return self.evaluation.table

    @property
    def sentences(self) -> tuple[str, ...]:
        """Gain, loss, and what becomes of the gap between the sides."""
        sentences = []
        for task in self.evaluation.tasks:
            changes = f"{_moves(task.cf, 'CF', ' repairs/harms')} and {_moves(task.cs, 'CS')}"
            sentences.append(f"On {task.task.upper()} {self.evaluation.method} {changes}.")
            before, after = ((metrics.cfad, metrics.ccr.value) for metrics in (task.original, task.method))
            measures = zip(("CS minus CF accuracy", "CCR"), before, after, strict=True)
            trends = [f"{name} {_trend(one, other)}" for name, one, other in measures if not math.isnan(one + other)]
            sentences.append(f"For {task.task.upper()}, {format_list(trends)}.")
        return tuple(sentences)

    def records(self) -> list[dict[str, Any]]:
        """One record per task."""
        return [
            {name: value for name, value in record.items() if name not in ("model", "benchmark")}
            for record in self.evaluation.records()
        ]

    def panels(self) -> Panels:
        """Changes with their intervals."""

        def draw(axes: Axes, style: FigureStyle) -> None:
            self.evaluation.plot(axes, style)
            axes.set_xlabel(f"change of accuracy (points)\n{self.evaluation.method}")

        return Panels((draw,), *figure_size(self.evaluation))

    def tests(self) -> tuple[Test, ...]:
        """Both sides of every task."""
        return Test.from_tasks(self.evaluation.method, self.evaluation.tasks)


def _moves(side: SideResult, name: str, unit: str = "") -> str:
    delta, counts = side.change.delta, f"{format_repairs(side.change)}{unit}"
    if not delta:
        return f"leaves {name} accuracy as it was ({counts})"
    verb, points = "raises" if delta > 0 else "lowers", format_points(abs(delta))[1:]
    unclear = "; could be chance" if side.low <= 0 <= side.high else ""
    return f"{verb} {name} accuracy by {points} points ({counts}{unclear})"


def _trend(before: float, after: float) -> str:
    old, new = (f"{round(value, 3) + 0.0:.3f}" for value in (before, after))
    return f"stays at {old}" if old == new else f"{'falls' if after < before else 'rises'} from {old} to {new}"


def study_main_comparison(
    decisions: Decisions, *, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = BOOTSTRAP_SEED
) -> MainComparison:
    """Compare decisions about test rows with the original answers."""
    return MainComparison(evaluate(decisions.table, decisions, resamples=resamples, seed=seed))


STUDY = Study(
    name="main-comparison",
    title="Repair and retention by SPC",
    asks="How many wrong answers to counterfactual images does SPC repair, and what does it cost on ordinary images?",
    how="{method}, fitted on the development pairs, against the original answers to the test pairs; "
    "95 % percentile intervals from 10,000 resamples of pairs.",
    run=lambda inputs: study_main_comparison(inputs.decisions(), resamples=inputs.resamples, seed=inputs.seed),
    label="tab:official-cdh-full",
    takes_open=True,
)
