"""SPC beside other methods, and what they cost, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from unprior.baselines.answers import Cost
from unprior.evaluation import TaskResult
from unprior.report.figures import task_name
from unprior.studies import MethodRow, Methods
from unprior.studies.rq2.changes import Changes
from unprior.tables.format import format_p
from unprior.tables.terminal import plain_table

_MARKS = "†‡§¶"


def methods_table(methods: Methods) -> Table:
    """What every method repairs and harms, task by task; the largest U is bold.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_methods
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> decisions = calibrator.predict(table.where(split="test"))
    >>> methods_table(study_methods(decisions, calibrator, table.where(split="dev"))).row_count
    24
    """
    matched, marks = methods.matched_family > 0, _marks(methods.rows)
    table = plain_table("Beside other methods (points)")
    table.padding = (0, 0)  # many columns; those of a box already keep them apart
    table.add_column("Method")
    for name in ("ΔCF", "Rep./\nharms", "ΔCS", "Rep./\nharms", "Changed", "U", "p CF", "p CS"):
        table.add_column(name, justify="right", no_wrap=True)
    if matched:
        table.add_column("Matched\nΔCF/ΔCS", justify="right", no_wrap=True)
    for index, task in enumerate(methods.tasks):
        table.add_row(task_name(task), style="bold")
        best = methods.best(task)
        for row in methods.rows:
            label = f"{row.label} {marks[row.note]}" if row.note else row.label
            table.add_row(
                Text(label, style="bold" if row.kind == "spc" else ""),
                *_change_cells(row.tasks[index], best=row.name in best),
                *([_matched_cell(row, index)] if matched else []),
                end_section=row is methods.rows[-1] and index < len(methods.tasks) - 1,
            )
    table.caption = _caption(methods, marks)
    return table


def cost_table(methods: Methods) -> Table | None:
    """What one example costs by each measured method, also relative to the original answer; None if none was measured.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.studies import study_methods
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> cost_table(study_methods(calibrator.predict(table), calibrator, None)) is None
    True
    """
    measured = [(row.label, row.cost) for row in methods.rows if row.cost is not None]
    if not measured:
        return None
    original = methods.original_cost
    table = plain_table("Cost of one example")
    table.add_column("Method")
    for name in ("Images encoded", "Forward passes", "Seconds", "Times the original"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, cost in ([("Original answer", original)] if original else []) + measured:
        table.add_row(label, f"{cost.images:.2g}", f"{cost.passes:.3g}", f"{cost.seconds:.3g}", _times(cost, original))
    examples = sorted({cost.examples for _, cost in measured})
    table.caption = (
        f"Means over {' or '.join(map(str, examples))} examples, all measured together; times the "
        f"original are seconds. Controls read the scores of SPC and cost what it costs"
    )
    return table


def accuracy_table(changes: Changes) -> Table:
    """What methods change where images are not paired: accuracy before and after.

    >>> from unprior import synthesize
    >>> from unprior.studies.rq2.changes import study_changes
    >>> accuracy_table(study_changes(synthesize(seed=0), [])).row_count
    0
    """
    table = plain_table("Accuracy of original answers and of other methods")
    table.padding = (0, 0)
    table.add_column("Task")
    table.add_column("Method", no_wrap=True)
    for name in ("Before", "After", "Δ", "Rep./\nharms", "Changed", "p", "Matched\nΔ", "Passes", "Seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in changes.rows:
        table.add_row(
            row.task.upper(),
            row.label,
            f"{row.before.value:.3f}",
            f"{row.after.value:.3f}",
            f"{100 * row.change.delta:+.1f}",
            f"{row.change.repairs}/{row.change.harms}",
            str(row.change.changed),
            format_p(row.test.p_value),
            "–" if row.matched is None else f"{100 * row.matched.delta:+.1f}",
            "–" if row.cost is None else f"{row.cost.passes:.3g}",
            "–" if row.cost is None else f"{row.cost.seconds:.3g}",
        )
    table.caption = (
        "Accuracy before and after, Δ in points; exact two-sided McNemar p, not adjusted; matched: against the same "
        "decoder with its correction switched off; passes and seconds of one example; without pairs there is no CF and "
        "no CS side"
    )
    return table


def _change_cells(result: TaskResult, *, best: bool) -> list[str | Text]:
    cf, cs = result.cf, result.cs
    utility = f"{100 * result.utility:+.1f}"
    return [
        f"{100 * cf.change.delta:+.1f}",
        f"{cf.change.repairs}/{cf.change.harms}",
        f"{100 * cs.change.delta:+.1f}",
        f"{cs.change.repairs}/{cs.change.harms}",
        str(cf.change.changed + cs.change.changed),
        Text(utility, style="bold") if best else utility,
        format_p(cf.test.p_value),
        format_p(cs.test.p_value),
    ]


def _matched_cell(row: MethodRow, index: int) -> str:
    if row.matched is None:
        return "–"
    result = row.matched[index]
    return f"{100 * result.cf.change.delta:+.1f}/{100 * result.cs.change.delta:+.1f}"


def _marks(rows: Sequence[MethodRow]) -> dict[str | None, str]:
    """A sign for every different note."""
    notes = dict.fromkeys(row.note for row in rows if row.note)
    return dict(zip(notes, _MARKS, strict=False))


def _caption(methods: Methods, marks: dict[str | None, str]) -> str:
    parts = [
        "All against the common original answers; U = ΔCF + 0.5 ΔCS, the largest bold; changed answers on both sides; "
        "exact two-sided McNemar p, not adjusted"
    ]
    if methods.matched_family:
        parts.append("matched: against the same decoder with its correction switched off")
    parts += [f"{mark} {note}" for note, mark in marks.items()]
    return "; ".join(parts)


def _times(cost: Cost, original: Cost | None) -> str:
    return "–" if original is None or not original.seconds else f"{cost.seconds / original.seconds:.1f} ×"
