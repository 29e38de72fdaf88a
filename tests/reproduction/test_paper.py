"""The published values against arithmetic that must hold between them: a slip of the pen would break it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unprior.evaluation import holm, mcnemar
from unprior.reproduction import MODELS, PublishedCell, published_tables

TOTALS = {"Attribute": 75, "Counting": 80, "Relation": 75}
CELLS = [cell for table in published_tables().values() for cell in table.cells]


def values(label: str) -> dict[tuple[str, str, str], float]:
    return {cell.key: cell.value for cell in published_tables()[label].cells}


def printed(cell: PublishedCell, value: float) -> bool:
    return abs(cell.value - value) <= 0.5 * 10**-cell.digits + 1e-9


def test_every_table_of_the_paper_is_there_with_its_cells() -> None:
    assert {label: len(table.cells) for label, table in published_tables().items() if label.startswith("tab:")} == {
        "tab:main": 36, "tab:official-cdh-full": 50, "tab:spc-primary-settings": 6, "tab:primary-holm": 20,
        "tab:controlled": 64, "tab:components": 32, "tab:supp-attribution": 32, "tab:neutral-prior-controls": 32,
        "tab:paired-calibration-full": 48, "tab:score-normalization": 28, "tab:native-score-agreement": 20,
        "tab:matched-gate-four": 56, "tab:matched-shift": 12, "tab:calibration-size": 80, "tab:joint-task-fitting": 16,
        "tab:family-holdout": 24, "tab:family-folds": 90, "tab:repeated-split-summary": 32, "tab:mc-option-order": 48,
        "tab:spectrum": 138, "tab:supp-transfer": 80, "tab:vcf-controls": 16, "tab:polarity-consistency": 48,
        "tab:prior-direction": 12, "tab:template-transfer": 56, "tab:equivariance": 38,
        "tab:semantic-conditioning-full": 140,
    }  # fmt: skip


def test_no_cell_stands_twice_and_every_model_is_one_of_the_papers() -> None:
    keys = [(cell.table, *cell.key) for cell in CELLS]
    assert len(set(keys)) == len(keys)
    assert {cell.model for cell in CELLS} == {*MODELS, "both"}


def test_printed_digits_are_kept() -> None:
    by_value = {(cell.table, *cell.key): cell for cell in CELLS}
    assert by_value["tab:main", "Qwen3-VL-32B", "Original", "CFAD"].digits == 3  # printed 0.300
    tiny = by_value["tab:primary-holm", "Qwen3-VL-32B", "QA CF", "raw p"]
    assert (tiny.value, tiny.digits) == (8.55e-14, 16)


def test_rows_speak_for_themselves_where_they_differ_from_the_caption() -> None:
    rows = {cell.row: cell for cell in published_tables()["tab:controlled"].cells}
    assert (rows["SPC ε = .10"].epsilon, rows["SPC ε = .10"].version) == (0.10, "uncertainty-aware")
    assert rows["NoLan"].needs == ("baselines",)
    assert rows["SPC ε = .04"].needs == ()


def test_metrics_follow_from_counts_of_230_pairs() -> None:
    rows = {(cell.table, cell.model, cell.row) for cell in CELLS if cell.column == "CFAD"}
    assert len(rows) == 14
    for table, model, row in rows:
        cells = {cell.column: cell for cell in CELLS if (cell.table, cell.model, cell.row) == (table, model, row)}
        cf, cs = (round(230 * cells[name].value) for name in ("CF-Acc", "CS-Acc"))
        attracted = round((230 - cf) * cells["CCR"].value)
        for name, value in (
            ("CF-Acc", cf / 230), ("CS-Acc", cs / 230), ("CFAD", (cs - cf) / 230), ("RPD", (cs - cf) / cs),
            ("CCR", attracted / (230 - cf)),
        ):  # fmt: skip
            assert printed(cells[name], value), (table, model, row, name)


@pytest.mark.parametrize("label", ["tab:paired-calibration-full", "tab:family-folds"])
def test_changes_follow_from_repairs_and_harms(label: str) -> None:
    cells = {cell.key: cell for cell in published_tables()[label].cells}
    checked = 0
    for (model, row, column), cell in cells.items():
        task, _, name = column.partition(" ")
        counts = [cells.get((model, row, f"{task} {name[1:]} {what}")) for what in ("repairs", "harms")]
        if name in ("ΔCF", "ΔCS") and None not in counts:
            repairs, harms = (count.value for count in counts if count is not None)
            assert printed(cell, 100 * (repairs - harms) / TOTALS.get(row, 230)), cell
            checked += 1
    assert checked == {"tab:paired-calibration-full": 12, "tab:family-folds": 30}[label]


def test_raw_p_values_follow_from_the_counts_of_other_tables() -> None:
    tests = {cell.key: cell for cell in published_tables()["tab:primary-holm"].cells}
    for (model, row), counts in {
        ("Qwen3-VL-32B", "MC CF"): (21, 3), ("Qwen3-VL-32B", "QA CF"): (53, 2), ("Qwen3-VL-32B", "QA CS"): (0, 4),
        ("LLaVA-1.6-34B", "MC CF"): (17, 1), ("LLaVA-1.6-34B", "QA CF"): (57, 2), ("LLaVA-1.6-34B", "QA CS"): (0, 11),
        ("Qwen3-VL-30B-A3B", "MC CF"): (24, 2), ("Qwen3-VL-30B-A3B", "MC CS"): (4, 14),
    }.items():  # fmt: skip
        assert printed(tests[model, row, "raw p"], mcnemar(*counts).p_value), (model, row)


def test_the_known_slips_are_the_adjusted_values_that_do_not_follow() -> None:
    raw = [cell for cell in published_tables()["tab:primary-holm"].cells if cell.column == "raw p"]
    adjusted = [cell for cell in published_tables()["tab:primary-holm"].cells if cell.column == "Holm p"]
    exact = {0.000277: mcnemar(21, 3).p_value, 0.000145: mcnemar(17, 1).p_value, 0.000977: mcnemar(0, 11).p_value,
             1.05e-5: mcnemar(24, 2).p_value, 0.030884: mcnemar(4, 14).p_value}  # fmt: skip
    expected = holm([exact.get(cell.value, cell.value) for cell in raw]).adjusted
    wrong = {cell.key for cell, value in zip(adjusted, expected, strict=True) if not printed(cell, value)}
    assert wrong == {cell.key for cell in CELLS if cell.slip}
    assert ("LLaVA-1.6-34B", "MC CF", "Holm p") in wrong


def test_the_same_quantity_has_the_same_value_in_every_table() -> None:
    components, gate, folds, holdout = (
        values(f"tab:{name}") for name in ("components", "matched-gate-four", "family-folds", "family-holdout")
    )
    for (model, row, column), value in components.items():
        other = {"Full SPC": "SPC", "Fixed correction strength": "Fixed λ = 0.8, always adopt",
                 "Ungated adaptive subtraction": "Adaptive strength, always adopt"}.get(row)  # fmt: skip
        assert other is None or gate[model, other, column] == value
    for key, value in holdout.items():
        assert folds[key] == value


def test_the_documentation_names_every_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "paper-and-code.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`((?:tab|text):[a-z-]+)`", text)) == set(published_tables())
    assert f"{len(published_tables())} tables, {len(CELLS):,} cells" in text
