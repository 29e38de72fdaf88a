"""Tables of studies for the terminal, for LaTeX and as CSV."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Table
from rich.text import Text

from unprior.report.tables import plain_table
from unprior.studies.result import ResultRow, ResultSection, ResultTable

_COMMANDS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$",
    "Δ": r"$\Delta$", "ε": r"$\epsilon$", "λ": r"$\lambda$", "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$",
    "ρ": r"$\rho$", "τ": r"$\tau$", "±": r"$\pm$", "×": r"$\times$", "→": r"$\rightarrow$", "↓": r"$\downarrow$",
    "≥": r"$\geq$", "≤": r"$\leq$", "−": r"$-$", "–": "--", "“": "``", "”": "''", "’": "'", "…": r"\dots{}",
    "†": r"$\dagger$", "‡": r"$\ddagger$", "§": r"\S{}", "¶": r"\P{}", "½": r"$\frac12$", "·": r"$\cdot$",
    "∈": r"$\in$", "≠": r"$\neq$", "∞": r"$\infty$", "²": r"$^2$", "\N{NO-BREAK SPACE}": "~", "\n": " ",
}  # fmt: skip
_NARROW, _WIDE = 12, 28
_LINE = 70  # letters that fit the text width of an ordinary article
_SPECIAL = re.compile("|".join(re.escape(character) for character in _COMMANDS))
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
_POWER = re.compile(r"(?<=\d)e([+-])0*(\d+)\b")


def as_rich(table: ResultTable) -> Table:
    """The table in the terminal.

    >>> as_rich(ResultTable.plain("Changes", ("Task", "ΔCF"), [("MC", "+7.8")], "In points.")).row_count
    1
    """
    shown = plain_table(table.title)
    for place, name in enumerate(table.columns):
        words = place < table.text_columns
        longest = max((len(row.cells[place]) for row in table.rows), default=0)
        shown.add_column(
            name if words else _wrapped(name, longest),
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
            shown.add_row(*_cells(row), style="bold" if row.strong else None, end_section=last)
    shown.caption = table.caption
    return shown


def fitting(table: ResultTable, width: int) -> list[ResultTable]:
    """The table in parts that fit so many columns of a terminal, each with the words on the left.

    >>> wide = ResultTable.plain("Wide", ("Task", "one", "two", "three"), [("MC", "+10.0", "+20.0", "+30.0")], "End.")
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


def _columns(table: ResultTable, places: list[int], *, first: bool, last: bool) -> ResultTable:
    """Some columns of a table; the caption stands below the last part."""
    sections = tuple(
        ResultSection(
            section.heading,
            tuple(
                replace(
                    row,
                    cells=tuple(row.cells[place] for place in places),
                    strong_cells=tuple(number for number, place in enumerate(places) if place in row.strong_cells),
                )
                for row in section.rows
            ),
        )
        for section in table.sections
    )
    columns = tuple(table.columns[place] for place in places)
    title = table.title if first else f"{table.title} (continued)"
    return ResultTable(title, columns, sections, table.caption if last else "", table.text_columns)


def as_latex(table: ResultTable, label: str) -> str:
    r"""The table for a paper; include it as it is, with the packages booktabs and graphicx.

    A table that is wider than a line of text is made smaller.

    >>> print(as_latex(ResultTable.plain("Changes", ("Task", "ΔCF"), [("MC", "-7.8")], "In points."), "changes"))
    \begin{table}[t]
    \centering
    \small
    \begin{tabular}{lr}
    \toprule
    Task & $\Delta$CF \\
    \midrule
    MC & $-$7.8 \\
    \bottomrule
    \end{tabular}
    \caption{\textbf{Changes.} In points.}
    \label{tab:changes}
    \end{table}
    <BLANKLINE>
    """
    width = len(table.columns)
    wide = sum(_widest(table, place) for place in range(width)) > _LINE
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        r"\small",
        *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
        rf"\begin{{tabular}}{{{'l' * table.text_columns}{'r' * (width - table.text_columns)}}}",
        r"\toprule",
        _line(map(_latex_header, table.columns)),
    ]
    for section in table.sections:
        lines.append(r"\midrule")
        if section.heading:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\itshape {escape_latex(section.heading)}}} \\")
        lines += [_line(_latex_cells(row)) for row in section.rows]
    caption = rf"\textbf{{{escape_latex(table.title)}.}} {escape_latex(table.caption)}"
    lines += [
        r"\bottomrule",
        r"\end{tabular}" + ("}" if wide else ""),
        rf"\caption{{{caption.strip()}}}",
        rf"\label{{tab:{label}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    r"""Text as LaTeX sets it: special characters, Greek letters, signs, powers of ten.

    >>> print(escape_latex("Δ -0.4 at 95 % (p = 1.5e-11)"))
    $\Delta$ $-$0.4 at 95 \% (p = 1.5$\times10^{-11}$)
    """
    escaped = _SPECIAL.sub(lambda found: _COMMANDS[found[0]], text)
    escaped = _NEGATIVE.sub("$-$", escaped)
    return _POWER.sub(lambda found: rf"$\times10^{{{found[1].replace('+', '')}{found[2]}}}$", escaped)


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    r"""Records with a header; what is undefined is empty.

    A spreadsheet takes text that begins with one of ``= + - @`` for a formula; such text gets an apostrophe in front.

    >>> as_csv([{"task": "mc", "delta": -0.5}, {"task": "=cmd()", "delta": None}])
    "task,delta\nmc,-0.5\n'=cmd(),\n"
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in record.items()} for record in records)
    return stream.getvalue()


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _wrapped(header: str, width: int) -> str:
    """A header in several lines, hardly wider than the numbers below it.

    >>> _wrapped("Repairs/harms (CF; CS)", 10)
    'Repairs/\\nharms (CF;\\nCS)'
    """
    parts = textwrap.wrap(header.replace("/", "/ "), max(width, _NARROW - 2), break_long_words=False)
    return "\n".join(parts).replace("/ ", "/")


def _width(table: ResultTable, place: int) -> int:
    """Room that a column takes, with the space beside it."""
    longest = max((len(row.cells[place]) for row in table.rows), default=0)
    if place == 0:  # headings of sections stand here, too
        longest = max([longest, *(len(section.heading or "") for section in table.sections)])
    if place < table.text_columns:
        return min(max(longest, len(table.columns[place])), _WIDE if place == 0 else _NARROW) + 2
    return max(longest, *(len(line) for line in _wrapped(table.columns[place], longest).split("\n"))) + 2


def _cells(row: ResultRow) -> list[Text]:
    return [Text(cell, style="bold" if place in row.strong_cells else "") for place, cell in enumerate(row.cells)]


def _latex_cells(row: ResultRow) -> list[str]:
    return [
        rf"\textbf{{{escape_latex(cell)}}}" if row.strong or place in row.strong_cells else escape_latex(cell)
        for place, cell in enumerate(row.cells)
    ]


def _latex_header(name: str) -> str:
    """A long header in several lines, so that numbers and not words decide the width."""
    lines = _wrapped(name, _NARROW).split("\n")
    if len(lines) == 1:
        return escape_latex(name)
    return r"\shortstack{" + r"\\".join(map(escape_latex, lines)) + "}"


def _widest(table: ResultTable, place: int) -> int:
    """Letters of the widest cell of a column, with the space beside it."""
    cells = [row.cells[place] for row in table.rows]
    return max(len(line) for line in (*cells, *_wrapped(table.columns[place], _NARROW).split("\n"))) + 2


def _line(cells: Any) -> str:
    return " & ".join(cells) + r" \\"
