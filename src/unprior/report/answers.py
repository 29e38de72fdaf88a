"""Raw answers as a table: the original-model block of the main table, and accuracy by subcategory."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rich.table import Table

from unprior.evaluation import Share
from unprior.evaluation.raw_answers import AnswersEvaluation, TaskAnswers
from unprior.tables.terminal import plain_table


def answers_table(result: AnswersEvaluation) -> Table:
    """Accuracy of every task; CF, CS, CFAD, RPD and CCR for pairs, accuracy and F1 otherwise."""
    table = plain_table("Original answers")
    table.caption = _caption(result)
    table.add_column("Task", no_wrap=True)
    paired = all(task.metrics is not None for task in result.tasks)
    names = ("CF acc", "CS acc", "CFAD ↓", "RPD ↓", "CCR ↓") if paired else ("Accuracy", "F1 (yes)", "Says yes")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for task in result.tasks:
        table.add_row(task.task.upper(), *(_paired(task) if paired else _unpaired(task)))
    return table


def groups_table(result: AnswersEvaluation) -> Table:
    """Right answers by subcategory."""
    table = plain_table("Right answers by subcategory")
    table.add_column("Subcategory")
    columns = [(task, side) for task in result.tasks for side in (("cf", "cs") if task.metrics else ("right",))]
    for task, side in columns:
        name = task.task.upper() if side == "right" else f"{task.task.upper()} {side.upper()}"
        table.add_column(name, justify="right", no_wrap=True)
    for name in dict.fromkeys(group.name for task in result.tasks for group in task.groups):
        cells = []
        for task, side in columns:
            group = next((group for group in task.groups if group.name == name), None)
            cells.append("–" if group is None else _counted(getattr(group, side)))
        table.add_row(name, *cells)
    return table


def answers_record(result: AnswersEvaluation) -> dict[str, Any]:
    """Everything in the tables, for programs."""
    tasks = []
    for task in result.tasks:
        record = asdict(task)
        if task.metrics is not None:
            del record["metrics"]["attraction"]  # needs scores
            values = {"cfad": task.metrics.cfad, "rpd": task.metrics.rpd}
            record["metrics"] |= {name: None if math.isnan(value) else value for name, value in values.items()}
        if task.f1 is not None and math.isnan(task.f1):
            record["f1"] = None
        tasks.append(record)
    return asdict(result) | {"tasks": tasks}


def _caption(result: AnswersEvaluation) -> str:
    where = f"{result.benchmark}, split {result.split}" if result.split else result.benchmark
    asked = " and ".join(f"{task.right.total:,} {task.task.upper()}" for task in result.tasks)
    unparsed = sum(task.unparsed for task in result.tasks)
    caption = f"{where}: {asked} answers; {unparsed or 'none'} without a candidate in it (counted as wrong)"
    if any(task.cut_off for task in result.tasks):
        cut_off = " and ".join(f"{task.cut_off:,} {task.task.upper()}" for task in result.tasks)
        caption += f"; {cut_off} answers cut off while thinking (not read, counted as wrong)"
    return caption


def _paired(task: TaskAnswers) -> list[str]:
    assert task.metrics is not None
    metrics = task.metrics
    return [
        _accuracy(metrics.cf),
        _accuracy(metrics.cs),
        _number(metrics.cfad),
        _number(metrics.rpd),
        _accuracy(metrics.ccr),
    ]


def _unpaired(task: TaskAnswers) -> list[str]:
    f1 = "–" if task.f1 is None else _number(task.f1)
    return [_accuracy(task.right), f1, "–" if task.said_yes is None else _number(task.said_yes.value)]


def _accuracy(share: Share) -> str:
    return f"{_number(share.value)} ({share.count}/{share.total})"


def _counted(share: Share) -> str:
    return f"{share.count}/{share.total}" if share.total else "–"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
