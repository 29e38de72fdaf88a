"""Tables as Markdown."""

from __future__ import annotations

import re

from unprior._text import one_line
from unprior.tables.model import Table

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def as_markdown(table: Table) -> str:
    r"""The rows under their headers, the caption below; the title is left to the page.

    >>> print(as_markdown(Table.plain("Changes", ("Task", "ΔCF"), [("a|b", "+7.8")], "In points.")))
    | Task | ΔCF |
    | --- | ---: |
    | a\|b | +7.8 |
    <BLANKLINE>
    In points.
    """
    line = ["---" if place < table.text_columns else "---:" for place in range(len(table.columns))]
    rows = [[escape(cell) for cell in table.columns], line]
    for section in table.sections:
        if section.heading is not None:
            rows.append([f"**{escape(section.heading)}**", *[""] * (len(table.columns) - 1)])
        rows += [[escape(cell) for cell in row.cells] for row in section.rows]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{text}\n\n{escape(table.caption)}" if table.caption else text


def escape(text: str) -> str:
    r"""Text that stands for itself in Markdown, on one line.

    >>> print(escape("<b>a_b</b>\n# c"))
    \<b\>a\_b\</b\>\\n\# c
    """
    return _SPECIAL.sub(r"\\\1", one_line(text))
