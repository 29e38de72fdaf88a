from __future__ import annotations

import json

import numpy as np
import pytest

from small_tables import abstaining_calibrator, count_changes, hopeless_table, twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, holm
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq2.main_comparison import STUDY, study_main_comparison

TABLE = twelve_pairs()
TEST = TABLE.where(split="test")
DECISIONS = SelectivePriorCalibrator().fit(TABLE).predict(TEST)


def test_accuracies_and_counts_agree_with_plain_loops() -> None:
    rows = TEST.arrow.to_pylist()
    finals = TEST.candidate_names(DECISIONS.final_positions)
    for record in study_main_comparison(DECISIONS, resamples=20).records():
        for side in ("cf", "cs"):
            repaired, harmed, total = count_changes(rows, finals, record["task"], side)
            chosen = [index for index, row in enumerate(rows) if (row["task"], row["side"]) == (record["task"], side)]
            right = [finals[index] == rows[index]["answer"] for index in chosen]
            assert (record[f"{side}_repairs"], record[f"{side}_harms"]) == (repaired, harmed)
            assert record[f"{side}_total"] == total == 7
            assert record[f"{side}_accuracy_after"] == pytest.approx(sum(right) / total)
        gap = record["cs_accuracy_after"] - record["cf_accuracy_after"]
        assert record["cfad_after"] == pytest.approx(gap)
        assert record["rpd_after"] == pytest.approx(gap / record["cs_accuracy_after"])


def test_the_table_has_original_and_spc_for_every_task() -> None:
    result = study_main_comparison(DECISIONS, resamples=20)
    method = "SPC (standard, ε = 0.04)"
    assert [row.cells[:2] for row in result.table.rows] == [
        ("MC", "Original"), ("", method), ("QA", "Original"), ("", method),
    ]  # fmt: skip
    assert result.sentences[0].startswith(f"On MC {method} ")
    assert [row.bold for row in result.table.rows] == [False, True, False, True]
    assert result.table.rows[0].cells[-1] == "–"


def test_words_follow_the_numbers() -> None:
    table = TEST.where(task="mc")
    decisions = SelectivePriorCalibrator().fit(TABLE).predict(table)
    decisions.final_positions[:] = np.where(table.is_cf, table.answer_positions, (table.answer_positions + 1) % 4)
    first, second = study_main_comparison(decisions, resamples=200).sentences
    assert "raises CF accuracy" in first
    assert "lowers CS accuracy by 100.0 points" in first
    assert " to -1.000" in second
    decisions.final_positions[:] = table.original_positions
    first, second = study_main_comparison(decisions, resamples=20).sentences
    assert "leaves CF accuracy as it was" in first
    assert "CS minus CF accuracy stays at" in second
    one_repair = table.original_positions.copy()
    wrong = int(np.flatnonzero(table.is_cf & (table.original_positions != table.answer_positions))[0])
    one_repair[wrong] = table.answer_positions[wrong]
    decisions.final_positions[:] = one_repair
    assert "(1/0 repairs/harms; could be chance)" in study_main_comparison(decisions, resamples=200).sentences[0]


def test_an_abstaining_calibrator_changes_nothing() -> None:
    result = study_main_comparison(abstaining_calibrator().predict(hopeless_table()), resamples=20)
    assert [record["delta_cf"] for record in result.records()] == [0.0]
    assert "leaves CF accuracy" in result.sentences[0]
    json.dumps(result.records(), allow_nan=False)


def test_the_figure_shows_every_side() -> None:
    figure = study_main_comparison(DECISIONS, resamples=20).figure()
    assert figure is not None
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["MC ΔCF", "MC ΔCS", "QA ΔCF", "QA ΔCS"]


def test_the_name_is_that_of_the_module_and_the_label_that_of_the_paper() -> None:
    assert (STUDY.name, STUDY.latex_label) == ("main-comparison", "tab:official-cdh-full")
    assert STUDY.run.__module__.rpartition(".")[2] == STUDY.name.replace("-", "_")


def test_every_side_of_every_task_is_a_test_of_one_family() -> None:
    result = study_main_comparison(DECISIONS, resamples=20)
    tests = result.tests()
    assert [test.name for test in tests] == ["MC CF", "MC CS", "QA CF", "QA CS"]
    assert {test.family for test in tests} == {"SPC (standard, ε = 0.04)"}
    assert [test.holm_p for test in tests] == list(holm([test.p for test in tests]).adjusted)
    assert [test.p for test in tests] == [record[f"{side}_p"] for record in result.evaluation.records()
                                          for side in ("cf", "cs")]  # fmt: skip


def test_answers_of_test_rows_have_no_part_in_the_decisions() -> None:
    rows = TABLE.arrow.to_pylist()
    other = [row | {"answer": row["candidates"][-1]} if row["split"] == "test" else row for row in rows]
    changed = StudyInputs(ScoreTable.from_rows(other), resamples=20)
    assert (changed.decisions().final_positions == StudyInputs(TABLE).decisions().final_positions).all()
    assert STUDY.run(changed).records() != STUDY.run(StudyInputs(TABLE, resamples=20)).records()
