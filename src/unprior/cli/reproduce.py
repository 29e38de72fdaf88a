"""The paper's published values beside ours, from its per-example score files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, SkipInvalid, flag, output, print_json, warn
from unprior.cli.lazy import examples

if TYPE_CHECKING:
    from rich.table import Table

    from unprior.reproduction import ComparedCell, PublishedScores, PublishedTable, ReproductionResult

_STYLES = {"equal": "green", "close": "yellow", "differs": "red"}


@examples(
    "unprior reproduce scores/",
    "unprior reproduce scores/ --table tab:main --table tab:controlled --out cells.csv",
)
def reproduce(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the published per-example score files.")],
    table: Annotated[
        list[str] | None, flag("Input", "LaTeX label of a table, such as tab:main; may be repeated.", "--table")
    ] = None,
    model: Annotated[str | None, flag("Input", "Only this model of the paper.")] = None,
    out: Annotated[Path | None, flag("Output", "Write all cells to this file (.csv or .json).", "--out")] = None,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Recompute the paper's tables from its score files: ours, the paper's, the difference, a verdict."""
    from unprior.reproduction import check_cells_file, find_scores, write_cells
    from unprior.reproduction import reproduce as recompute

    if out is not None:
        check_cells_file(out)
    found = find_scores(folder, model=model, skip_invalid=skip_invalid)
    result = recompute({name: scores.table for name, scores in found.items()}, labels=table)
    if any("synthetic" in scores.table.column("benchmark") for scores in found.values()):
        warn("these scores are synthetic: their numbers say nothing about the paper's models")
    if out is not None:
        write_cells(result, out)
    if as_json:
        print_json(_record(result, found))
        return
    for name, scores in found.items():
        output.print(f"{name}: {len(scores.table):,} rows from {len(scores.files)} files", soft_wrap=True)
    for each in result.tables:
        _print_table(each, result.of(each.label))
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in result.counts().items())
    output.print(f"All tables: {verdicts}", soft_wrap=True)


def _print_table(table: PublishedTable, cells: tuple[ComparedCell, ...]) -> None:
    computed = [cell for cell in cells if cell.ours is not None]
    output.print()
    output.print(f"{table.label}  {table.title} ({table.unit})", style="bold", soft_wrap=True)
    if computed:
        output.print(_beside(computed))
    for reason, count in Counter(cell.reason for cell in cells if cell.ours is None).items():
        output.print(f"{count} cells not recomputed: {reason}", soft_wrap=True)
    for cell in cells:
        if cell.published.slip:
            about = cell.published
            output.print(f"Slip in {about.model}, {about.row}, {about.column}: {about.slip}", soft_wrap=True)
    if table.note:
        output.print(f"Note: {table.note}", soft_wrap=True)


def _beside(cells: Sequence[ComparedCell]) -> Table:
    """Ours and the paper's under the name of the model; a row is named once, so that words leave room for numbers."""
    from unprior.tables.terminal import plain_table

    shown, numbers = plain_table(), ("Ours", "Paper", "Difference")
    for name in ("Row", "Column"):
        shown.add_column(name, overflow="fold")
    for name in (*numbers, "Verdict"):
        shown.add_column(name, justify="right" if name in numbers else "left", no_wrap=True)
    for model, of_model in groupby(cells, lambda cell: cell.published.model):
        shown.add_section()
        shown.add_row(model, style="bold")
        for row, of_row in groupby(of_model, lambda cell: cell.published.row):
            for place, cell in enumerate(of_row):
                about, verdict = cell.published, str(cell.verdict)
                values = [_number(value, about.digits) for value in (cell.ours, about.value, cell.difference)]
                words = (row if place == 0 else "", about.column)
                shown.add_row(*words, *values, verdict, style=_STYLES.get(verdict))
    return shown


def _number(value: float | None, digits: int) -> str:
    """With the paper's digits; tiny numbers keep their exponent.

    >>> _number(7.8261, 1), _number(8.554e-14, 16), _number(-0.04, 1)
    ('7.8', '8.55e-14', '0.0')
    """
    assert value is not None
    if digits > 6:
        return f"{value:.2e}"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _record(result: ReproductionResult, found: dict[str, PublishedScores]) -> dict[str, Any]:
    def counts(label: str | None = None) -> dict[str, int]:
        return {str(verdict): count for verdict, count in result.counts(label).items()}

    return {
        "models": {
            name: {"rows": len(scores.table), "files": [str(path) for path in scores.files]}
            for name, scores in found.items()
        },
        "counts": counts(),
        "tables": {
            each.label: {"title": each.title, "unit": each.unit, "note": each.note, "counts": counts(each.label)}
            for each in result.tables
        },
        "cells": result.records(),
    }
