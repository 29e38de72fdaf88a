"""Tables of studies for terminal, LaTeX and CSV."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from unprior.tables.csv import as_csv
from unprior.tables.format import format_p
from unprior.tables.html import from_table
from unprior.tables.latex import as_latex, escape_latex
from unprior.tables.model import Row, Section, Table
from unprior.tables.terminal import as_rich, fitting

TABLE = Table(
    "Changes & more (ε = 4 %)",
    ("Method", "MC ΔCF/ΔCS", "p"),
    (
        Section(
            "Qwen_3",
            (Row(("VCD", "-0.9/+0.0", "0.25")), Row(("SPC", "+7.8/+0.4", "1.5e-11"), bold=True)),
        ),
        Section("LLaVA", (Row(("SPC", "+7.0/-0.4", "–"), bold_cells=(1,)),)),
    ),
    "Points; 95 % intervals → below.",
)


def shown(table: Table, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(as_rich(table))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_terminal_shows_headings_rows_and_caption() -> None:
    text = shown(TABLE)
    for part in ("Changes & more", "Qwen_3", "VCD", "-0.9/+0.0", "LLaVA", "95 % intervals"):
        assert part in text
    assert text.index("Qwen_3") < text.index("VCD") < text.index("LLaVA")


def test_brackets_are_no_markup() -> None:
    text = shown(Table.plain("x[/INST]: changes", ("Task", "Δ"), [("llava[v1.5]", "[-1, +2]")], "[bold]m in points."))
    for part in ("x[/INST]: changes", "llava[v1.5]", "[-1, +2]", "[bold]m in points."):
        assert part in text


def test_title_and_caption_are_as_wide_as_the_terminal() -> None:
    caption = "The median width is that of bounded ranges, and the radius is the distance to its nearer end."
    wide = Table.plain("Strengths that keep it", ("Task", *"abcdefghij"), [("MC", *["+10.0/-10.0"] * 10)], caption)
    *_, last = fitting(wide, 79)
    text = shown(last, 80).splitlines()
    assert text[0].rstrip() == "Strengths that keep it (continued)"
    assert [line.rstrip() for line in text[-2:]] == [caption[:-16], "its nearer end."]


def test_the_page_gets_the_same_cells() -> None:
    html = from_table(TABLE)
    assert [row.cells[0].text for row in html.rows] == ["Qwen_3", "VCD", "SPC", "LLaVA", "SPC"]
    assert html.rows[1].cells[1].text == "−0.9/+0.0"
    assert html.rows[2].bold
    assert html.rows[4].cells[1].bold
    assert html.rows[2].last_of_section


def test_latex_has_one_line_per_row_and_strong_cells() -> None:
    lines = as_latex(TABLE, "tab:changes").splitlines()
    assert r"VCD & $-$0.9/+0.0 & 0.25 \\" in lines
    assert r"\textbf{SPC} & \textbf{+7.8/+0.4} & \textbf{1.5$\times10^{-11}$} \\" in lines
    assert r"SPC & \textbf{+7.0/$-$0.4} & -- \\" in lines
    assert r"\multicolumn{3}{l}{\itshape Qwen\_3} \\" in lines
    assert r"\begin{tabular}{lrr}" in lines
    assert lines.count(r"\midrule") == 2
    assert (
        r"\caption{\textbf{Changes \& more ($\epsilon$ = 4 \%).} Points; 95 \% intervals $\rightarrow$ below.}" in lines
    )


def test_an_empty_cell_of_a_strong_row_is_empty_in_latex() -> None:
    table = Table.plain("Changes", ("Task", "Δ"), [("", "+7.8")], "", bold=[0])
    assert r" & \textbf{+7.8} \\" in as_latex(table, "tab:changes").splitlines()


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & 50 %", r"a\_b \& 50 \%"),
        ("-1.5 to 2-3", r"$-$1.5 to 2-3"),
        ("λ ≥ 0.8 ± 0.1", r"$\lambda$ $\geq$ 0.8 $\pm$ 0.1"),
        ("3e-08 and 1e+20", r"3$\times10^{-8}$ and 1$\times10^{20}$"),
        ("one\ntwo", "one two"),
        (r"\{x}", r"\textbackslash{}\{x\}"),
    ],
)
def test_latex_escapes(text: str, latex: str) -> None:
    assert escape_latex(text) == latex


def test_csv_joins_records_of_different_fields() -> None:
    records = [{"task": "mc", "delta": 0.25}, {"task": "qa", "note": "a, b"}]
    rows = list(csv.DictReader(io.StringIO(as_csv(records))))
    assert rows == [{"task": "mc", "delta": "0.25", "note": ""}, {"task": "qa", "delta": "", "note": "a, b"}]
    assert as_csv([]) == "\n"


def test_a_row_of_the_wrong_length_is_a_mistake_of_the_study() -> None:
    with pytest.raises(AssertionError, match="Changes"):
        Table.plain("Changes", ("a", "b"), [("1",)], "")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"), (0.05, "0.05"), (0.000870, "0.00087"), (0.001015, "0.001"), (3.64e-12, "3.6e-12"), (0.625, "0.62"),
        (1e-16, "1e-16"), (9e-17, "<1e-16"), (0.0, "<1e-16"),
    ],
)  # fmt: skip
def test_p_values(value: float, shown: str) -> None:
    assert format_p(value) == shown


def test_odd_names_leave_latex_and_csv_whole() -> None:
    table = Table("Odd", ("Model", "Δ"), (Section(120 * "m", (Row(("[31m\x1b\x00", "1")),)),), "")
    lines = as_latex(table, "tab:odd").splitlines()
    assert r"{}[31m\textbackslash{}x1b\textbackslash{}x00 & 1 \\" in lines, "a bracket is no option of the line before"
    assert any(r"\resizebox" in line for line in lines), "a long heading does not stick out"
    assert as_csv([{"model": "a\x00b\x1b"}]) == "model\na\\x00b\\x1b\n"
