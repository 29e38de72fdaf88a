"""An evaluation as tables and as records."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from unprior._text import one_line
from unprior.evaluation.metrics import Change, Metrics
from unprior.scores.files import finite_or_none
from unprior.tables.format import format_interval, format_p, format_points
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from unprior.evaluation.comparison import Evaluation, SideResult, TaskResult


def format_repairs(change: Change) -> str:
    """Repairs and harms.

    >>> format_repairs(Change(repairs=21, harms=3, changed=30, total=230))
    '21/3'
    """
    return f"{change.repairs}/{change.harms}"


def main_table(evaluation: Evaluation) -> Table:
    """The paper's main table: accuracies of both sides, their gap, and what changed."""
    percent = f"{100 * evaluation.level:g} %"
    columns = ("CF acc.", "CS acc.", "CFAD↓", "RPD↓", "CCR↓", "ΔCF/ΔCS", f"{percent} ΔCF", f"{percent} ΔCS",
               "R/H CF", "R/H CS")  # fmt: skip
    caption = (
        "CFAD: CS minus CF accuracy; RPD: CFAD relative to CS accuracy; CCR: wrong CF answers that are the pair's "
        f"CS answer. Δ in points, intervals from {evaluation.resamples:,} resamples of pairs; R/H: repairs and harms."
    )

    def rows(task: TaskResult, names: tuple[str, ...]) -> tuple[Row, ...]:
        cf, cs = task.cf, task.cs
        changes = (
            task.changes,
            format_interval(cf.low, cf.high),
            format_interval(cs.low, cs.high),
            format_repairs(cf.change),
            format_repairs(cs.change),
        )
        return (
            Row((*names, evaluation.reference, *_shares(task.original), *("–" for _ in changes))),
            Row((*("" for _ in names), evaluation.method, *_shares(task.method), *changes), bold=True),
        )

    title = (
        f"{'Original answers' if evaluation.reference == 'Original' else evaluation.reference} and {evaluation.method}"
    )
    return _table(evaluation, title, ("Method", *columns), rows, caption)


def changes_table(evaluation: Evaluation) -> Table:
    """Changes of accuracy with their intervals, repairs and harms, and exact tests."""
    columns = ("Side", "Δ", f"{100 * evaluation.level:g} % interval", "Repairs/harms", "Changed", "p", "Holm p")
    caption = (
        f"{evaluation.resamples:,} bootstrap resamples of pairs, seed {evaluation.seed}; exact two-sided McNemar "
        f"tests, Holm over {evaluation.family} tests."
    )

    def rows(task: TaskResult, names: tuple[str, ...]) -> tuple[Row, ...]:
        return tuple(
            Row(
                (
                    *(names if side == "CF" else ("" for _ in names)),
                    side,
                    format_points(result.change.delta),
                    format_interval(result.low, result.high),
                    format_repairs(result.change),
                    str(result.change.changed),
                    format_p(result.test.p_value),
                    format_p(result.holm_p),
                )
            )
            for side, result in (("CF", task.cf), ("CS", task.cs))
        )

    return _table(evaluation, f"What {evaluation.method} changed (points)", columns, rows, caption)


def as_text(evaluation: Evaluation) -> str:
    """The changes of every task and group, a line for each."""
    several = len({(task.model, task.benchmark) for task in evaluation.tasks}) > 1
    names = [
        " ".join(([_source(task)] if several else []) + [task.task.upper()] + ([task.group] if task.group else []))
        for task in evaluation.tasks
    ]
    lines = [f"Evaluation of {evaluation.method} against {evaluation.reference}, ΔCF/ΔCS in points (repairs/harms)"]
    for name, task in zip(map(one_line, names), evaluation.tasks, strict=True):
        counts = f"({format_repairs(task.cf.change)} CF, {format_repairs(task.cs.change)} CS)"
        lines.append(f"  {name:<{max(map(len, names))}}  {task.changes:>11}  {counts}")
    return "\n".join(lines)


def _source(task: TaskResult) -> str:
    return f"{task.model or '?'} · {task.benchmark or '?'}"


def _table(evaluation: Evaluation, title: str, columns: tuple[str, ...], rows: Any, caption: str) -> Table:
    """Blocks of rows by task; models and benchmarks are headings where there are several, groups have a column."""
    several = len({(task.model, task.benchmark) for task in evaluation.tasks}) > 1
    first = ("Task",) if evaluation.by is None else ("Task", evaluation.by.replace("_", " ").capitalize())
    sections = []
    for source, tasks in groupby(evaluation.tasks, key=_source):
        heading: str | None = source if several else None
        for _, parts in groupby(tasks, key=lambda task: task.task):
            found: list[Row] = []
            for part in parts:
                group = () if part.group is None else (part.group,)
                found += rows(part, ("" if found else part.task.upper(), *group))
            sections.append(Section(heading, tuple(found)))
            heading = None
    if evaluation.left_out:
        caption += f" Left out, because one side is missing: {', '.join(evaluation.left_out)}."
    return Table(title, (*first, *columns), tuple(sections), caption, text_columns=len(first) + 1)


def _shares(metrics: Metrics) -> tuple[str, ...]:
    values = (metrics.cf.value, metrics.cs.value, metrics.cfad, metrics.rpd, metrics.ccr.value)
    return tuple("–" if math.isnan(value) else f"{value:.3f}" for value in values)


def flat_record(task: TaskResult, by: str | None) -> dict[str, Any]:
    """One task (and group) as flat, plain values."""
    record: dict[str, Any] = {"model": task.model, "benchmark": task.benchmark, "task": task.task}
    if by is not None:
        record[by] = task.group
    record["utility"] = task.utility
    for when, metrics in (("before", task.original), ("after", task.method)):
        record |= {
            f"cf_accuracy_{when}": metrics.cf.value,
            f"cs_accuracy_{when}": metrics.cs.value,
            f"cfad_{when}": metrics.cfad,
            f"rpd_{when}": finite_or_none(metrics.rpd),
            f"ccr_{when}": finite_or_none(metrics.ccr.value),
        }
    return record | flat_sides(task)


def flat_sides(task: TaskResult) -> dict[str, Any]:
    """Changes, intervals and tests of both sides as flat, plain values, such as ``delta_cf`` and ``cs_holm_p``."""
    return {
        f"delta_{side}" if name == "delta" else f"{side}_{name}": value
        for side, result in (("cf", task.cf), ("cs", task.cs))
        for name, value in _side_record(result).items()
    }


def nested_record(evaluation: Evaluation) -> dict[str, Any]:
    """Everything in the tables as one nested record."""
    grouped = {} if evaluation.by is None else {"by": evaluation.by, "left_out": list(evaluation.left_out)}
    return {
        "level": evaluation.level,
        "resamples": evaluation.resamples,
        "seed": evaluation.seed,
        "holm_family": evaluation.family,
        **grouped,
        "tasks": [
            {
                "model": task.model,
                "benchmark": task.benchmark,
                "task": task.task,
                **({} if evaluation.by is None else {"group": task.group}),
                "original": _metrics_record(task.original),
                "method": _metrics_record(task.method),
                "cf": _side_record(task.cf),
                "cs": _side_record(task.cs),
                "utility": task.utility,
            }
            for task in evaluation.tasks
        ],
    }


def _metrics_record(metrics: Metrics) -> dict[str, Any]:
    shares = {"cf": metrics.cf, "cs": metrics.cs, "ccr": metrics.ccr, "attraction": metrics.attraction}
    record: dict[str, Any] = {
        name: {"count": share.count, "total": share.total, "value": finite_or_none(share.value)}
        for name, share in shares.items()
    }
    return record | {"cfad": finite_or_none(metrics.cfad), "rpd": finite_or_none(metrics.rpd)}


def _side_record(result: SideResult) -> dict[str, Any]:
    return {
        "delta": result.change.delta,
        "low": finite_or_none(result.low),
        "high": finite_or_none(result.high),
        "repairs": result.change.repairs,
        "harms": result.change.harms,
        "changed": result.change.changed,
        "total": result.change.total,
        "p": result.test.p_value,
        "holm_p": result.holm_p,
    }
