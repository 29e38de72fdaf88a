from __future__ import annotations

from rich.table import Table
from rich.text import Text

from finished_run import Finished
from unprior.report import changes_table, metrics_table
from unprior.tables.html import from_records, from_terminal


def test_the_page_says_what_the_terminal_says(finished: Finished) -> None:
    source = changes_table(finished.evaluation)
    table = from_terminal(source)
    assert table.title == "What SPC changed (points)"
    assert [cell.text for cell in table.header] == [str(column.header) for column in source.columns]
    for index, column in enumerate(source.columns):
        cells = [row.cells[index].text.replace("−", "-") for row in table.rows]
        assert cells == [str(cell) for cell in column.cells]
    assert [row.last_of_section for row in table.rows] == [False, True, False, False]


def test_minus_signs_only_before_numbers(finished: Finished) -> None:
    text = " ".join(cell.text for row in from_terminal(changes_table(finished.evaluation)).rows for cell in row.cells)
    assert "[−" in text
    assert "e-" in text, "exponents keep their hyphen"


def test_the_method_is_strong(finished: Finished) -> None:
    assert [row.bold for row in from_terminal(metrics_table(finished.evaluation)).rows] == [False, True, False, True]


def test_records() -> None:
    table = from_records("Points", [{"task": "mc", "n": 3, "delta": -0.25, "abstains": True, "strength": None}])
    assert [cell.text for cell in table.rows[0].cells] == ["mc", "3", "−0.250", "yes", "–"]
    assert [cell.right for cell in table.header] == [False, True, True, False, True]
    assert from_records("Nothing", []).rows == ()


def test_a_small_p_is_not_zero_and_headers_keep_their_words_apart() -> None:
    table = from_records("Tests", [{"p": 3.6e-12, "delta": 0.0}])
    assert [cell.text for cell in table.rows[0].cells] == ["3.6e-12", "0.000"]
    source = Table("Rep./\nharms", "Matched\nΔCF")
    source.add_row(Text("+1", style="bold"), "-1")
    page = from_terminal(source)
    assert [cell.text for cell in page.header] == ["Rep./harms", "Matched ΔCF"]
    assert [cell.bold for cell in page.rows[0].cells] == [True, False]
