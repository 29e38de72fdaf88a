"""The main table of the paper, for a terminal and as a record for programs."""

from __future__ import annotations

import math
from typing import Any

from rich.table import Table
from rich.text import Text

from unprior.evaluation import Change, Evaluation, Metrics, SideResult, TaskResult
from unprior.studies import Attraction, Components
from unprior.tables.format import format_p
from unprior.tables.terminal import plain_table


def metrics_table(evaluation: Evaluation, method: str = "SPC") -> Table:
    """Accuracy on both sides, CFAD, RPD and CCR, before and after.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> final = SelectivePriorCalibrator().fit(table).predict(table).final
    >>> metrics_table(evaluate(table, final)).row_count
    4
    """
    table = plain_table("Accuracy on counterfactual (CF) and commonsense (CS) images")
    table.caption = _source(evaluation)
    _add_task_column(table, evaluation)
    table.add_column("Method", no_wrap=True)
    for name in ("CF acc", "CS acc", "CFAD ↓", "RPD ↓", "CCR ↓", "Attraction", "U"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, task in enumerate(evaluation.tasks):
        for row, (name, metrics) in enumerate((("Original", task.original), (method, task.method))):
            table.add_row(
                _task_name(task, evaluation) if row == 0 else "",
                name,
                *_metric_cells(metrics),
                f"{100 * task.utility:+.1f}" if row else "",
                style="bold" if row else None,
                end_section=row == 1 and index < len(evaluation.tasks) - 1,
            )
    return table


def changes_table(evaluation: Evaluation, method: str = "SPC") -> Table:
    """Change of accuracy with its interval, repairs and harms, and exact tests.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> changes_table(evaluate(table, SelectivePriorCalibrator().fit(table).predict(table))).row_count
    4
    """
    percent = f"{100 * evaluation.level:g} %"
    table = plain_table(f"What {method} changed (points)")
    _add_task_column(table, evaluation)
    table.add_column("Side", no_wrap=True)
    for name in ("Δ", f"{percent} interval", "Repairs/harms", "Changed", "p", "Holm p"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, task in enumerate(evaluation.tasks):
        for side, result in (("CF", task.cf), ("CS", task.cs)):
            table.add_row(
                _task_name(task, evaluation) if side == "CF" else "",
                side,
                *_change_cells(result),
                end_section=side == "CS" and index < len(evaluation.tasks) - 1,
            )
    table.caption = (
        f"{evaluation.resamples:,} bootstrap resamples of pairs, seed {evaluation.seed}; "
        f"exact two-sided McNemar tests, Holm over {evaluation.family} tests"
    )
    return table


def components_table(components: Components) -> Table:
    """What each part of the method contributes, in points.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_components
    >>> table = synthesize(seed=0)
    >>> components_table(study_components(SelectivePriorCalibrator().fit(table).predict(table))).row_count
    8
    """
    table = plain_table("Parts of the method (points)")
    table.add_column("Task", no_wrap=True)
    table.add_column("Variant", no_wrap=True)
    for name in ("ΔCF", "Repairs/\nharms", "ΔCS", "Repairs/\nharms", "U"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, task in enumerate(components.tasks):
        for place, row in enumerate(components.rows):
            result, last = row.tasks[index], place == len(components.rows) - 1
            table.add_row(
                task.upper() if place == 0 else "",
                row.label,
                *(cell for change in (result.cf, result.cs) for cell in _repair_cells(change)),
                f"{100 * result.utility:+.1f}",
                style="bold" if last else None,
                end_section=last and index < len(components.tasks) - 1,
            )
    table.caption = "Repairs/harms stand beside the Δ they make up; U = ΔCF + 0.5 ΔCS"
    return table


def attraction_table(attraction: Attraction) -> Table:
    """How many wrong counterfactual answers are the one the model gives without the image.

    >>> from unprior import synthesize
    >>> from unprior.studies import study_attraction
    >>> attraction_table(study_attraction(synthesize(seed=0).where(split="test"))).row_count
    2
    """
    table = plain_table("Prior attraction of wrong CF answers")
    table.add_column("Task", no_wrap=True)
    for name in ("CF errors", "Prior's winner", "By chance", "CS answer is prior's winner"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in attraction.overall:
        table.add_row(
            cell.task.upper(),
            str(cell.attracted.total),
            *(_percent(value) for value in (cell.attracted.value, cell.chance, cell.prior_is_ordinary.value)),
        )
    table.caption = "By chance: errors spread evenly over the wrong candidates; with two candidates there is no choice"
    return table


def evaluation_record(evaluation: Evaluation) -> dict[str, Any]:
    """Everything in the tables, for programs; what is undefined is null.

    >>> from unprior import evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> evaluation_record(evaluate(table, table.original))["tasks"][0]["utility"]
    0.0
    """
    return evaluation.record()


def _add_task_column(table: Table, evaluation: Evaluation) -> None:
    """Names of models may be long: they fold, so that the numbers keep their room."""
    several = _several(evaluation)
    table.add_column("Task", no_wrap=not several, overflow="fold", max_width=22 if several else None)


def _several(evaluation: Evaluation) -> bool:
    return len({(task.model, task.benchmark) for task in evaluation.tasks}) > 1


def _source(evaluation: Evaluation) -> str:
    """Explain the last column, and name the one model and benchmark that all rows share."""
    utility = "U = ΔCF + 0.5 ΔCS in points"
    if _several(evaluation):
        return utility
    named = [name for name in (evaluation.tasks[0].model, evaluation.tasks[0].benchmark) if name]
    return " · ".join([*dict.fromkeys(named), utility])


def _task_name(task: TaskResult, evaluation: Evaluation) -> Text:
    """As text and not as markup: a name may hold brackets."""
    where = f"{task.model or '?'} · {task.benchmark or '?'} · " if _several(evaluation) else ""
    return Text(where + task.task.upper())


def _metric_cells(metrics: Metrics) -> list[str]:
    values = (
        metrics.cf.value, metrics.cs.value, metrics.cfad, metrics.rpd, metrics.ccr.value, metrics.attraction.value,
    )  # fmt: skip
    return ["–" if math.isnan(value) else f"{value:.3f}" for value in values]


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _repair_cells(change: Change) -> tuple[str, str]:
    return f"{100 * change.delta:+.1f}", f"{change.repairs}/{change.harms}"


def _change_cells(result: SideResult) -> list[str]:
    delta, repairs = _repair_cells(result.change)
    return [
        delta,
        "–" if math.isnan(result.low) else f"[{100 * result.low:+.1f}, {100 * result.high:+.1f}]",
        repairs,
        str(result.change.changed),
        format_p(result.test.p_value),
        format_p(result.holm_p),
    ]
