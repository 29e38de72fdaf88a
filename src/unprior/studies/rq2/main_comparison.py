"""RQ2: how much does SPC repair, and what does it retain?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.calibration import Decisions
from unprior.evaluation import Evaluation, Metrics, SideResult, TaskResult, evaluate
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores.files import finite_or_none
from unprior.studies.result import StudyResult, format_repairs
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_interval, format_list, format_points
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle


@dataclass(frozen=True, slots=True)
class MainComparison(StudyResult):
    """Original answers and SPC by task: accuracies, the gap between the sides, repairs and harms.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_main(SelectivePriorCalibrator().fit(table).predict(table.where(split="test")))
    >>> [row.cells[:4] for row in result.table.rows][:2]
    [('MC', 'Original', '0.517', '0.952'), ('', 'SPC', '0.761', '0.926')]
    """

    evaluation: Evaluation

    @property
    def table(self) -> Table:
        """The paper's main table for all tasks, with the intervals of its caption."""
        columns = ("Task", "Method", "CF acc.", "CS acc.", "CFAD↓", "RPD↓", "CCR↓", "ΔCF/ΔCS", "95 % ΔCF", "95 % ΔCS",
                   "R/H CF", "R/H CS")  # fmt: skip
        sections = tuple(Section(None, _rows(task)) for task in self.evaluation.tasks)
        return Table(
            "Original answers and SPC",
            columns,
            sections,
            "CFAD: CS minus CF accuracy; RPD: CFAD relative to CS accuracy; CCR: wrong CF answers that are the pair's "
            f"CS answer. Δ in points, intervals from {self.evaluation.resamples:,} resamples of pairs; R/H: repairs "
            "and harms.",
            text_columns=2,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Gain, loss, and what becomes of the gap between the sides."""
        said = []
        for task in self.evaluation.tasks:
            said.append(
                f"On {task.task.upper()} SPC {_moves(task.cf, 'CF', ' repairs/harms')} and {_moves(task.cs, 'CS')}."
            )
            before, after = task.original, task.method
            measures = [
                ("CS minus CF accuracy", before.cfad, after.cfad),
                ("CCR", before.ccr.value, after.ccr.value),
            ]
            trends = [f"{name} {_trend(one, other)}" for name, one, other in measures if not math.isnan(one + other)]
            said.append(f"There {format_list(trends)}.")
        return tuple(said)

    def records(self) -> list[dict[str, Any]]:
        """One record per task."""
        return [_record(task) for task in self.evaluation.tasks]

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """Changes with their intervals."""
        from unprior.plots.style import LIGHT
        from unprior.report.figures import IntervalsDisplay

        return IntervalsDisplay.from_results(self.evaluation, style=style or LIGHT).figure_


def _rows(task: TaskResult) -> tuple[Row, ...]:
    cf, cs = task.cf, task.cs
    changes = (
        format_changes(cf.change.delta, cs.change.delta),
        format_interval(cf.low, cf.high),
        format_interval(cs.low, cs.high),
        format_repairs(cf.change),
        format_repairs(cs.change),
    )
    return (
        Row((task.task.upper(), "Original", *_shares(task.original), *("–" for _ in changes))),
        Row(("", "SPC", *_shares(task.method), *changes), bold=True),
    )


def _shares(metrics: Metrics) -> tuple[str, ...]:
    values = (metrics.cf.value, metrics.cs.value, metrics.cfad, metrics.rpd, metrics.ccr.value)
    return tuple("–" if math.isnan(value) else f"{value:.3f}" for value in values)


def _moves(side: SideResult, name: str, unit: str = "") -> str:
    delta = side.change.delta
    if not delta:
        return f"leaves {name} accuracy as it was ({format_repairs(side.change)}{unit})"
    verb = "raises" if delta > 0 else "lowers"
    unclear = "; could be chance" if side.low <= 0 <= side.high else ""
    return (
        f"{verb} {name} accuracy by {format_points(abs(delta))[1:]} points "
        f"({format_repairs(side.change)}{unit}{unclear})"
    )


def _trend(before: float, after: float) -> str:
    shown = [f"{round(value, 3) + 0.0:.3f}" for value in (before, after)]
    if shown[0] == shown[1]:
        return f"stays at {shown[0]}"
    return f"{'falls' if after < before else 'rises'} from {shown[0]} to {shown[1]}"


def _record(task: TaskResult) -> dict[str, Any]:
    record: dict[str, Any] = {"task": task.task, "utility": task.utility}
    for when, metrics in (("before", task.original), ("after", task.method)):
        record |= {
            f"cf_accuracy_{when}": metrics.cf.value,
            f"cs_accuracy_{when}": metrics.cs.value,
            f"cfad_{when}": metrics.cfad,
            f"rpd_{when}": finite_or_none(metrics.rpd),
            f"ccr_{when}": finite_or_none(metrics.ccr.value),
        }
    for name, side in (("cf", task.cf), ("cs", task.cs)):
        record |= {
            f"delta_{name}": side.change.delta,
            f"{name}_low": finite_or_none(side.low),
            f"{name}_high": finite_or_none(side.high),
            f"{name}_repairs": side.change.repairs,
            f"{name}_harms": side.change.harms,
            f"{name}_changed": side.change.changed,
            f"{name}_total": side.change.total,
        }
    return record


def study_main(
    decisions: Decisions, *, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = BOOTSTRAP_SEED
) -> MainComparison:
    """Compare decisions about test rows with the original answers."""
    return MainComparison(evaluate(decisions.table, decisions, resamples=resamples, seed=seed))


STUDY = Study(
    name="main",
    question="rq2",
    title="Repair and retention by SPC",
    asks="How many wrong answers to counterfactual images does SPC repair, and what does it cost on ordinary images?",
    how="SPC in its standard version, fitted on the development pairs with ε = {epsilon}, against the original "
    "answers to the test pairs; 95 % percentile intervals from 10,000 resamples of pairs.",
    needs=("scores",),
    run=lambda inputs: study_main(inputs.decisions(), resamples=inputs.resamples, seed=inputs.seed),
)
