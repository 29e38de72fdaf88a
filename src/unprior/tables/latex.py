"""Tables and figures for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable

from unprior._text import visible
from unprior.tables.format import wrap_header
from unprior.tables.model import Row, Table

_COMMANDS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$",
    "Δ": r"$\Delta$", "δ": r"$\delta$",
    "ε": r"$\epsilon$", "λ": r"$\lambda$", "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$",
    "ρ": r"$\rho$", "τ": r"$\tau$", "±": r"$\pm$", "×": r"$\times$", "→": r"$\rightarrow$", "↓": r"$\downarrow$",
    "≥": r"$\geq$", "≤": r"$\leq$", "−": r"$-$", "–": "--", "“": "``", "”": "''", "’": "'", "…": r"\dots{}",
    "†": r"$\dagger$", "‡": r"$\ddagger$", "§": r"\S{}", "¶": r"\P{}", "½": r"$\frac12$", "·": r"$\cdot$",
    "∈": r"$\in$", "≠": r"$\neq$", "∞": r"$\infty$", "²": r"$^2$", "\N{NO-BREAK SPACE}": "~", "\n": " ",
}  # fmt: skip
_NARROW = 12
_LINE = 70  # letters that fit the text width of an ordinary article
_SPECIAL = re.compile("|".join(re.escape(character) for character in _COMMANDS))
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
_POWER = re.compile(r"(?<=\d)e([+-])0*(\d+)\b")


def as_latex(table: Table, label: str) -> str:
    r"""The table for a paper; include it as it is, with the packages booktabs and graphicx.

    ``label`` is that of the paper, such as ``tab:main``. A table that is wider than a line of text is made smaller.

    >>> print(as_latex(Table.plain("Changes", ("Task", "ΔCF"), [("MC", "-7.8")], "In points."), "tab:changes"))
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
    headings = [len(section.heading or "") for section in table.sections]
    wide = max(*headings, sum(_widest(table, place) for place in range(width))) > _LINE
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
        lines += [_line(_latex_cell(row, place) for place in range(width)) for row in section.rows]
    caption = rf"\textbf{{{escape_latex(table.title)}.}} {escape_latex(table.caption)}"
    lines += [
        r"\bottomrule",
        r"\end{tabular}" + ("}" if wide else ""),
        rf"\caption{{{caption.strip()}}}",
        rf"\label{{{label}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def as_latex_figure(file: str, title: str, label: str) -> str:
    r"""A figure for a paper, drawn in a file beside the LaTeX; needs the package graphicx.

    >>> print(as_latex_figure("frontier.pdf", "Repair and retention", "fig:supp-gate-pareto"))
    \begin{figure}[t]
    \centering
    \includegraphics[width=\linewidth]{frontier.pdf}
    \caption{\textbf{Repair and retention.}}
    \label{fig:supp-gate-pareto}
    \end{figure}
    <BLANKLINE>
    """
    caption = rf"\caption{{\textbf{{{escape_latex(title)}.}}}}" + "\n" + rf"\label{{{label}}}"
    drawn = rf"\includegraphics[width=\linewidth]{{{file}}}"
    return "\n".join((r"\begin{figure}[t]", r"\centering", drawn, caption, r"\end{figure}", ""))


def escape_latex(text: str) -> str:
    r"""Text as LaTeX sets it: special characters, Greek letters, signs, powers of ten.

    >>> print(escape_latex("Δ -0.4 at 95 % (p = 1.5e-11)"))
    $\Delta$ $-$0.4 at 95 \% (p = 1.5$\times10^{-11}$)
    """
    escaped = _SPECIAL.sub(lambda found: _COMMANDS[found[0]], visible(text))
    escaped = _NEGATIVE.sub("$-$", escaped)
    return _POWER.sub(lambda found: rf"$\times10^{{{found[1].replace('+', '')}{found[2]}}}$", escaped)


def _latex_cell(row: Row, place: int) -> str:
    text = escape_latex(row.cells[place])
    return rf"\textbf{{{text}}}" if text and (row.bold or place in row.bold_cells) else text


def _latex_header(name: str) -> str:
    """A long header in several lines, so that numbers and not words decide the width."""
    lines = wrap_header(name, _NARROW).split("\n")
    if len(lines) == 1:
        return escape_latex(name)
    return r"\shortstack{" + r"\\".join(map(escape_latex, lines)) + "}"


def _widest(table: Table, place: int) -> int:
    """Letters of the widest cell of a column, with the space beside it."""
    cells = [row.cells[place] for row in table.rows]
    return max(len(line) for line in (*cells, *wrap_header(table.columns[place], _NARROW).split("\n"))) + 2


def _line(cells: Iterable[str]) -> str:
    line = " & ".join(cells) + r" \\"
    return f"{{}}{line}" if line.startswith("[") else line  # or it would be an option of the line before
