"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from unprior.tables.format import wrap_header
from unprior.tables.model import Section, Table

_NARROW, _WIDE = 12, 28


def plain_table(
    title: str | None = None, columns: Iterable[str] = (), *, right: Container[str] = (), unbroken: Container[str] = ()
) -> RichTable:
    """A table in the style that all commands share; columns of numbers stand to the ``right``."""
    table = RichTable(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=name in unbroken)
    return table


def as_rich(table: Table) -> Group:
    """The table in the terminal; title and caption may be wider than its columns.

    >>> table = Table.plain("Changes", ("Task", "ΔCF"), [("MC", "+7.8")], "In points.")
    >>> [type(part).__name__ for part in as_rich(table).renderables]
    ['Text', 'Table', 'Text']
    """
    shown = plain_table()
    for place, name in enumerate(table.columns):
        words = place < table.text_columns
        longest = max((len(row.cells[place]) for row in table.rows), default=0)
        shown.add_column(
            name if words else wrap_header(name, longest),
            justify="left" if words else "right",
            no_wrap=not words,
            overflow="fold",
            min_width=None if words else longest,
        )
    for number, section in enumerate(table.sections):
        if section.heading:
            shown.add_row(Text(section.heading), *[""] * (len(table.columns) - 1), style="bold")
        for row in section.rows:
            last = row is section.rows[-1] and number < len(table.sections) - 1
            cells = [Text(cell, "bold" if place in row.bold_cells else "") for place, cell in enumerate(row.cells)]
            shown.add_row(*cells, style="bold" if row.bold else None, end_section=last)
    # As text and not as markup: the name of a model may hold brackets.
    parts: list[RenderableType] = [Text(table.title, style="bold"), shown]
    return Group(*parts, *([Text(table.caption, style="table.caption")] if table.caption else []))


def fitting(table: Table, width: int) -> list[Table]:
    """The table in parts that fit so many columns of a terminal, each with the words on the left.

    >>> wide = Table.plain("Wide", ("Task", "one", "two", "three"), [("MC", "+10.0", "+20.0", "+30.0")], "End.")
    >>> [part.columns for part in fitting(wide, 26)]
    [('Task', 'one', 'two'), ('Task', 'three')]
    """
    words = list(range(table.text_columns))
    groups: list[list[int]] = [[]]
    taken = base = sum(_width(table, place) for place in words)
    for place in range(table.text_columns, len(table.columns)):
        needed = _width(table, place)
        if groups[-1] and taken + needed > width:
            groups.append([])
            taken = base
        groups[-1].append(place)
        taken += needed
    if len(groups) == 1:
        return [table]
    return [
        _columns(table, [*words, *group], first=number == 0, last=number == len(groups) - 1)
        for number, group in enumerate(groups)
    ]


def _columns(table: Table, places: list[int], *, first: bool, last: bool) -> Table:
    """Some columns of a table; the caption stands below the last part."""
    sections = tuple(
        Section(
            section.heading,
            tuple(
                replace(
                    row,
                    cells=tuple(row.cells[place] for place in places),
                    bold_cells=tuple(number for number, place in enumerate(places) if place in row.bold_cells),
                )
                for row in section.rows
            ),
        )
        for section in table.sections
    )
    columns = tuple(table.columns[place] for place in places)
    title = table.title if first else f"{table.title} (continued)"
    return Table(title, columns, sections, table.caption if last else "", table.text_columns)


def _width(table: Table, place: int) -> int:
    """Room that a column takes, with the space beside it."""
    longest = max((len(row.cells[place]) for row in table.rows), default=0)
    if place == 0:  # headings of sections stand here, too
        longest = max([longest, *(len(section.heading or "") for section in table.sections)])
    if place < table.text_columns:
        return min(max(longest, len(table.columns[place])), _WIDE if place == 0 else _NARROW) + 2
    return max(longest, *(len(line) for line in wrap_header(table.columns[place], longest).split("\n"))) + 2
