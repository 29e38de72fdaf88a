"""Tables and records of the studies, made ready for pages and notebooks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from unprior.tables.model import Table

_MINUS = re.compile(r"(?<![\w.])-(?=\d)")


class HtmlCell(NamedTuple):
    """Text of a cell, whether it is set to the right, as numbers are, and whether it stands out."""

    text: str
    right: bool
    bold: bool = False


class HtmlRow(NamedTuple):
    """Cells of a row; ``bold`` for the method's own."""

    cells: tuple[HtmlCell, ...]
    bold: bool
    last_of_section: bool
    heading: bool = False
    """Whether only the first cell has text, the name of the rows below."""


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """A table as the template writes it."""

    title: str
    caption: str | None
    header: tuple[HtmlCell, ...]
    rows: tuple[HtmlRow, ...]


def from_table(table: Table) -> HtmlTable:
    """A table of the paper for the page.

    >>> from_table(Table.plain("Changes", ("Task", "ΔCF"), [("MC", "-2.6")], "In points.")).rows[0].cells[1].text
    '−2.6'
    """
    words = table.text_columns

    def cells(texts: Sequence[str], bold: Sequence[int] = ()) -> tuple[HtmlCell, ...]:
        return tuple(HtmlCell(typographic(text), place >= words, place in bold) for place, text in enumerate(texts))

    rows: list[HtmlRow] = []
    for section in table.sections:
        if section.heading:
            rows.append(HtmlRow(cells((section.heading, *[""] * (len(table.columns) - 1))), True, False, heading=True))
        rows += [HtmlRow(cells(row.cells, row.bold_cells), row.bold, row is section.rows[-1]) for row in section.rows]
    return HtmlTable(table.title, table.caption or None, cells(table.columns), tuple(rows))


def as_html(table: Table) -> str:
    """A table as plain HTML, for notebooks.

    >>> as_html(Table.plain("Changes", ("Task", "ΔCF"), [("MC", "<2.6")], ""))[-59:]
    ' style="text-align:right">&lt;2.6</td></tr></tbody></table>'
    """
    shown = from_table(table)

    def line(cells: Sequence[HtmlCell], tag: str, bold: bool = False) -> str:
        made = []
        for cell in cells:
            align = ' style="text-align:right"' if cell.right else ""
            text = escape(cell.text)
            made.append(f"<{tag}{align}>{f'<b>{text}</b>' if (cell.bold or bold) and text else text}</{tag}>")
        return f"<tr>{''.join(made)}</tr>"

    caption = f"<caption><b>{escape(shown.title)}</b> {escape(shown.caption or '')}</caption>"
    body = "".join(line(row.cells, "td", row.bold) for row in shown.rows)
    return f"<table>{caption}<thead>{line(shown.header, 'th')}</thead><tbody>{body}</tbody></table>"


def from_records(title: str, records: Sequence[Mapping[str, Any]]) -> HtmlTable:
    """Records of a study, one per row.

    >>> table = from_records("Numbers", [{"task": "mc", "median": 0.51234, "at_cap": None}])
    >>> [cell.text for cell in table.header], [cell.text for cell in table.rows[0].cells]
    (['task', 'median', 'at cap'], ['mc', '0.512', '–'])
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    numeric = {name: not any(isinstance(record.get(name), str | bool) for record in records) for name in names}
    header = tuple(HtmlCell(name.replace("_", " "), numeric[name]) for name in names)
    rows = tuple(
        HtmlRow(tuple(HtmlCell(_shown(record.get(name)), numeric[name]) for name in names), False, False)
        for record in records
    )
    return HtmlTable(title, None, header, rows)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A small p is not zero.
        return typographic(f"{value:.2g}" if 0.0 < abs(value) < 5e-4 else f"{value:.3f}")
    return typographic(str(value))


def typographic(text: str) -> str:
    """A true minus sign before numbers, so that columns of + and − line up.

    >>> typographic("-0.4 in 2-3 rows")
    '−0.4 in 2-3 rows'
    """
    return _MINUS.sub("−", text)
