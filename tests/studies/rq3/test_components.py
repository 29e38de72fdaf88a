from __future__ import annotations

import pytest

from small_tables import abstaining_calibrator, corrected_winner, count_changes, twelve_pairs
from unprior import SelectivePriorCalibrator
from unprior.evaluation import Change
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.common.variants import SpcVariant
from unprior.studies.rq3.components import Components, study_components


def test_every_row_against_plain_loops() -> None:
    table = twelve_pairs()
    test = table.where(split="test")
    decisions = SelectivePriorCalibrator().fit(table).predict(test)
    rows = test.arrow.to_pylist()
    finals = {
        "no_subtraction": [corrected_winner(row, 0.0) for row in rows],
        "fixed": [corrected_winner(row, 0.8) for row in rows],
        "ungated": [corrected_winner(row, decision.strength) for row, decision in zip(rows, decisions, strict=True)],
        "spc": [decision.final for decision in decisions],
    }
    result = study_components(decisions)
    assert [row.name for row in result.rows] == list(finals)
    for row in result.rows:
        for task in row.tasks:
            for side, change in (("cf", task.cf), ("cs", task.cs)):
                expected = count_changes(rows, finals[row.name], task.task, side)
                assert (change.repairs, change.harms, change.total) == expected, (row.name, task.task, side)
            assert task.utility == pytest.approx(task.cf.delta + 0.5 * task.cs.delta)
    assert len(result.records()) == 8
    assert result.table.rows[-1].cells[0] == "SPC (standard, ε = 0.04)"
    assert result.tasks == ("mc", "qa")


def test_another_fixed_strength_is_named() -> None:
    table = twelve_pairs()
    result = study_components(SelectivePriorCalibrator().fit(table).predict(table), strength=1.0)
    assert result.rows[1].label == "Fixed strength (λ = 1)"


def test_an_abstaining_calibrator_has_no_ungated_row() -> None:
    result = study_components(abstaining_calibrator().predict(twelve_pairs()))
    assert [row.name for row in result.rows] == ["no_subtraction", "fixed", "spc"]
    assert all(task.cf.changed == task.cs.changed == 0 for task in result.rows[-1].tasks)
    assert result.sentences[-1] == "SPC (standard, ε = 0.04) abstains, so there is no proposal to adopt."


def test_table_and_sentences_by_hand() -> None:
    def row(variant: str, repairs: int, harms: int) -> SpcVariant:
        tasks = (TradeOff("mc", Change(repairs, 0, repairs, 10), Change(0, harms, harms, 10)),)
        return SpcVariant(variant, variant.upper(), tasks)

    result = Components((row("no_subtraction", 1, 0), row("fixed", 4, 3), row("ungated", 4, 2), row("spc", 3, 1)))
    assert [each.cells for each in result.table.rows][2:] == [
        ("UNGATED", "+40.0/-20.0", "4/0; 0/2", "+30.0"),
        ("SPC", "+30.0/-10.0", "3/0; 0/1", "+25.0"),
    ]
    assert [each.bold for each in result.table.rows] == [False, False, False, True]
    assert result.sentences == (
        "Choosing the best image-scored candidate without subtraction changes CF/CS accuracy by +10.0/+0.0 on MC.",
        "The CF change of SPC beyond that is +20.0 on MC.",
        "The gate of SPC changes ΔCF/ΔCS of its proposals by -10.0/+10.0 on MC.",
    )
    assert result.figure() is not None
