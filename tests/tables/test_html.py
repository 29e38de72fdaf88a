"""Tables and records for pages and notebooks."""

from __future__ import annotations

import pytest

from unprior import SelectivePriorCalibrator, synthesize
from unprior.studies.rq2.main_comparison import study_main_comparison
from unprior.tables.html import as_html, from_records, from_table
from unprior.tables.model import Row, Section, Table


@pytest.fixture(scope="module")
def source() -> Table:
    """A table of a study, with changes in both directions."""
    scores = synthesize(seed=0)
    return study_main_comparison(
        SelectivePriorCalibrator().fit(scores).predict(scores.where(split="test")), resamples=100
    ).table


def test_the_page_says_what_the_study_says(source: Table) -> None:
    table = from_table(source)
    assert (table.title, table.caption) == (source.title, source.caption)
    assert [cell.text for cell in table.header] == list(source.columns)
    for shown, row in zip(table.rows, source.rows, strict=True):
        assert [cell.text.replace("−", "-") for cell in shown.cells] == list(row.cells)
        assert [cell.right for cell in shown.cells] == [place >= source.text_columns for place in range(len(row.cells))]
    assert [row.last_of_section for row in table.rows] == [False, True, False, True]


def test_the_method_is_bold(source: Table) -> None:
    assert [row.bold for row in from_table(source).rows] == [False, True, False, True]


def test_minus_signs_only_before_numbers(source: Table) -> None:
    text = " ".join(cell.text for row in from_table(source).rows for cell in row.cells)
    assert "/−" in text
    small = Table.plain("Tests", ("p", "pair-wise"), [("3.6e-12", "-2-3")], "")
    assert [cell.text for cell in from_table(small).rows[0].cells] == ["3.6e-12", "−2-3"]


def test_headings_span_the_table_and_are_escaped() -> None:
    rows = (Row(("SPC", "+1"), bold_cells=(1,)), Row(("VCD", "-1"), bold=True))
    table = Table("Changes", ("Method", "Δ"), (Section("<Qwen_3>", rows),), "")
    page = from_table(table)
    assert [row.heading for row in page.rows] == [True, False, False]
    assert [cell.bold for cell in page.rows[1].cells] == [False, True]
    assert page.caption is None
    html = as_html(table)
    assert "<b>&lt;Qwen_3&gt;</b>" in html
    assert html.count("<b>−1</b>") == 1


def test_records() -> None:
    table = from_records("Points", [{"task": "mc", "n": 3, "delta": -0.25, "abstains": True, "strength": None}])
    assert [cell.text for cell in table.rows[0].cells] == ["mc", "3", "−0.250", "yes", "–"]
    assert [cell.right for cell in table.header] == [False, True, True, False, True]
    assert from_records("Nothing", []).rows == ()


def test_records_of_several_models_may_differ_in_their_fields() -> None:
    table = from_records("Both", [{"model": "a", "mc_delta": 0.5}, {"model": "b", "qa_delta": 0.25}])
    assert [[cell.text for cell in row.cells] for row in table.rows] == [["a", "0.500", "–"], ["b", "–", "0.250"]]


def test_a_small_p_is_not_zero() -> None:
    table = from_records("Tests", [{"p": 3.6e-12, "delta": 0.0}])
    assert [cell.text for cell in table.rows[0].cells] == ["3.6e-12", "0.000"]
