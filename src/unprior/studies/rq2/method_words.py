"""The comparison of methods as the paper's table, and in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unprior.tables.format import format_changes, format_list, format_points
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from unprior.studies.rq2.methods import MethodRow, Methods


def methods_table(methods: Methods) -> Table:
    """ΔCF/ΔCS by method and task, with a column against matched decoders for tasks that have one."""
    matched = methods.matched_family > 0
    names = [task.upper() for task in methods.tasks]
    columns = ("Method", *names, *(f"{name}, matched" for name in names if matched))
    best = {task: methods.best(task) for task in methods.tasks}

    def line(row: MethodRow) -> Row:
        cells = [format_changes(each.cf.change.delta, each.cs.change.delta) for each in row.tasks]
        if matched:
            references = row.matched or ()
            cells += [format_changes(each.cf.change.delta, each.cs.change.delta) for each in references]
            cells += ["–"] * (len(columns) - 1 - len(cells))
        label = f"{row.label} ({row.note})" if row.note else row.label
        bold = [1 + index for index, task in enumerate(methods.tasks) if row.name in best[task]]
        return Row((label, *cells), bold_cells=tuple(bold))

    kinds = (
        [row for row in methods.rows if row.kind not in ("control", "spc")],
        [row for row in methods.rows if row.kind == "control"],
        [row for row in methods.rows if row.kind == "spc"],
    )
    caption = "ΔCF/ΔCS in points against the original answers; the highest U = ΔCF + 0.5 ΔCS of a task is bold."
    if matched:
        caption += " Matched: against the same decoder with its correction switched off."
    sections = tuple(Section(None, tuple(map(line, rows))) for rows in kinds if rows)
    return Table("Repair and retention by method", columns, sections, caption)


def methods_sentences(methods: Methods) -> tuple[str, ...]:
    """Who is best by task, where SPC stands if it is not, and who makes counterfactual answers worse."""
    said = []
    worse: dict[str, list[str]] = {}  # tasks by method
    others = [row for row in methods.rows if row.kind != "spc"]
    for index, task in enumerate(methods.tasks):
        named = {row.name: row for row in methods.rows}
        best = [named[name] for name in methods.best(task)]

        def usefulness(row: MethodRow, index: int = index) -> float:
            return row.tasks[index].utility

        verb = "has" if len(best) == 1 else "have"
        said.append(
            f"On {task.upper()} {format_list([row.label for row in best])} {verb} the highest U "
            f"({format_points(usefulness(best[0]))}){_runner_up(methods, index, best)}."
        )
        for row in others:
            if row.tasks[index].cf.change.delta < 0:
                worse.setdefault(row.label, []).append(task.upper())
    if worse:
        said.append(
            f"CF accuracy falls with {format_list([f'{label} (on {format_list(on)})' for label, on in worse.items()])}."
        )
    return tuple(said)


def _runner_up(methods: Methods, index: int, best: list[MethodRow]) -> str:
    """The best of those on the other side: another method where SPC leads, SPC where it does not."""
    leads = any(row.kind == "spc" for row in best)
    rivals = [row for row in methods.rows if (row.kind == "spc") != leads and row not in best]
    if not rivals or len({row.kind == "spc" for row in best}) > 1:
        return ""
    second = max(rivals, key=lambda row: row.tasks[index].utility)
    return f", against {format_points(second.tasks[index].utility)} of {second.label}"
