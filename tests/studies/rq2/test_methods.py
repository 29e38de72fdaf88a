from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from made_up_methods import COSTS, made_up
from small_tables import abstaining_calibrator, hopeless_table, twelve_pairs
from unprior import SelectivePriorCalibrator, evaluate, holm
from unprior.baselines.answers import MethodAnswers, MethodInfo
from unprior.baselines.controls import CONTROLS, run_controls
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq2.methods import STUDY, Methods, compare_methods, study_methods

TABLE = twelve_pairs()
DEVELOPMENT, TEST = TABLE.where(split="dev"), TABLE.where(split="test")
CALIBRATOR = SelectivePriorCalibrator().fit(TABLE)
DECISIONS = CALIBRATOR.predict(TEST)


@pytest.fixture(scope="module")
def methods() -> Methods:
    return study_methods(DECISIONS, CALIBRATOR, DEVELOPMENT, made_up(TEST), references=COSTS, resamples=200)


def test_baselines_come_first_and_spc_last(methods: Methods) -> None:
    assert [row.name for row in methods.rows] == ["focus", "nolan", *CONTROLS, "spc"]
    assert [row.kind for row in methods.rows] == ["prompt", "decoder", *["control"] * len(CONTROLS), "spc"]
    assert methods.rows[-1].label == "SPC (standard, ε = 0.04)"
    assert methods.tasks == ("mc", "qa")


def test_every_row_is_the_evaluation_of_its_answers(methods: Methods) -> None:
    given = {each.info.name: each.answers for each in made_up(TEST)}
    given |= {each.name: each.answers for each in run_controls(DEVELOPMENT, TEST, calibrator=CALIBRATOR)}
    given["spc"] = DECISIONS.final_positions
    for row in methods.rows:
        expected = evaluate(TEST, given[row.name], resamples=200)
        for ours, theirs in zip(row.tasks, expected.tasks, strict=True):
            assert (ours.original, ours.method, ours.cf.change) == (theirs.original, theirs.method, theirs.cf.change)
            assert (ours.cs.low, ours.cs.high, ours.cs.test) == (theirs.cs.low, theirs.cs.high, theirs.cs.test)


def test_the_matched_decoder_is_the_other_reference(methods: Methods) -> None:
    decoder = made_up(TEST)[1]
    expected = evaluate(TEST, decoder.answers, reference=decoder.matched, resamples=200)
    rows = {row.name: row for row in methods.rows}
    matched = rows["nolan"].matched
    assert matched is not None
    assert [task.cf.change for task in matched] == [task.cf.change for task in expected.tasks]
    assert matched[0].cf.change != rows["nolan"].tasks[0].cf.change
    assert rows["focus"].matched is rows["spc"].matched is None


def test_holm_covers_the_whole_table_and_matched_tests_are_a_family_of_their_own(methods: Methods) -> None:
    sides = [side for row in methods.rows for task in row.tasks for side in (task.cf, task.cs)]
    assert methods.family == len(sides) == 4 * (3 + len(CONTROLS))
    assert [side.holm_p for side in sides] == list(holm([side.test.p_value for side in sides]).adjusted)
    matched = [side for row in methods.rows for task in row.matched or () for side in (task.cf, task.cs)]
    assert methods.matched_family == len(matched) == 4
    assert [side.holm_p for side in matched] == list(holm([side.test.p_value for side in matched]).adjusted)


def test_equally_good_methods_are_all_best() -> None:
    twins = [
        MethodAnswers(
            MethodInfo(name, name, "edit", {}, None),
            np.where(TEST.is_cf, TEST.answer_positions, TEST.original_positions),
            None,
        )
        for name in ("one", "other")
    ]
    result = study_methods(DECISIONS, CALIBRATOR, None, twins, resamples=20)
    assert [row.name for row in result.rows] == ["one", "other", "spc"]
    assert result.best("mc") == result.best("qa") == ("one", "other")
    marked = {(record["method"], record["best_utility"]) for record in result.records()}
    assert marked == {("one", True), ("other", True), ("spc", False)}


def test_records_are_flat_and_plain(methods: Methods) -> None:
    records = methods.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert len(records) == 2 * len(methods.rows)
    assert len({tuple(record) for record in records}) == 1, "every record has the same columns"
    assert not any(isinstance(value, dict | list) for record in records for value in record.values())
    by_name = {record["method"]: record for record in records}
    assert by_name["nolan"]["settings"] == "beta 0.8"
    assert (by_name["nolan"]["cost_passes"], by_name["spc"]["cost_passes"]) == (8.0, 6.0)
    assert by_name["focus"]["cost_seconds"] is by_name["focus"]["matched_delta_cf"] is None
    assert by_name["nolan"]["matched_delta_cf"] is not None
    assert methods.original_cost == COSTS["original"]


def test_a_choice_that_breaks_its_promise_says_so() -> None:
    table = hopeless_table()
    calibrator = abstaining_calibrator()
    result = study_methods(calibrator.predict(table), calibrator, table, resamples=20)
    notes = {row.name: row.note for row in result.rows}
    assert notes["selected-strength"] == "not feasible on the development rows"
    assert notes["fixed-strength-gated"] == notes["spc"] == "abstains: no setting feasible"
    kept = [row.name for row in result.rows if row.note == notes["spc"] or row.name.startswith("learned-rule")]
    assert result.best("mc") == tuple(kept)


def test_without_other_methods_there_are_controls_and_spc() -> None:
    result = STUDY.run(StudyInputs(TABLE, resamples=20))
    assert isinstance(result, Methods)
    assert [row.kind for row in result.rows] == ["control"] * len(CONTROLS) + ["spc"] * 3
    assert [row.name for row in result.rows[-3:]] == [
        "spc", "SPC (standard, ε = 0.10)", "SPC (uncertainty-aware, ε = 0.10)",
    ]  # fmt: skip
    assert STUDY.missing(StudyInputs(TABLE)) == ()
    assert STUDY.missing(StudyInputs(TABLE), wanted=True) == ("baselines",)


def test_controls_are_chosen_like_the_version_under_study_which_is_listed_once() -> None:
    inputs = StudyInputs(TABLE, resamples=20, epsilon=0.05, uncertainty=True)
    result = STUDY.run(inputs)
    assert isinstance(result, Methods)
    assert [row.label for row in result.rows if row.kind == "spc"] == [
        "SPC (uncertainty-aware, ε = 0.05)", "SPC (uncertainty-aware, ε = 0.10)",
    ]  # fmt: skip
    expected = {each.name: each for each in run_controls(DEVELOPMENT, TEST, calibrator=inputs.fitted())}
    for row in result.rows[: len(CONTROLS)]:
        assert row.settings == expected[row.name].settings
    assert "like SPC (uncertainty-aware, ε = 0.05)." in result.table.caption


def test_the_table_has_a_section_per_task_and_the_best_cells_are_bold(methods: Methods) -> None:
    table = methods.table
    assert [section.heading for section in table.sections] == ["Multiple choice", "Yes/no questions"]
    assert table.columns == (
        "Method", "ΔCF/ΔCS", "U", "R/H CF", "R/H CS", "Changed", "p CF", "p CS", "Matched ΔCF/ΔCS",
    )  # fmt: skip
    for index, (task, section) in enumerate(zip(methods.tasks, table.sections, strict=True)):
        for row, line in zip(methods.rows, section.rows, strict=True):
            assert line.cells[0].startswith(row.label)
            assert ({1, 2} <= set(line.bold_cells)) == (row.name in methods.best(task))
            assert (0 in line.bold_cells) == (row.kind == "spc")
            assert (line.cells[-1] == "–") == (row.matched is None)
            change = row.tasks[index].cf.change
            assert line.cells[3] == f"{change.repairs}/{change.harms}"
    without = replace(methods, rows=tuple(row for row in methods.rows if row.matched is None)).table
    assert without.columns == table.columns[:-1]
    assert "switched off" in table.caption
    assert "switched off" not in without.caption


def test_notes_have_the_same_mark_whatever_else_is_noted(methods: Methods) -> None:
    def marked(*notes: str | None) -> tuple[list[str], str]:
        rows = tuple(replace(row, note=note) for row, note in zip(methods.rows, notes, strict=False))
        table = replace(methods, rows=rows).table
        return [row.cells[0] for row in table.sections[0].rows], table.caption

    idle, broken = "abstains: no setting feasible", "not feasible on the development rows"
    assert marked(broken, None)[0] == ["Focus on Vision ‡", "NoLan"]
    assert marked(broken, idle)[0] == ["Focus on Vision ‡", "NoLan †"]
    assert marked(broken, idle)[1].endswith("† abstains: no setting feasible. ‡ not feasible on the development rows.")
    assert "†" not in marked(broken, None)[1]


def test_versions_of_spc_are_rows_of_their_own_in_the_same_family() -> None:
    nothing = replace(DECISIONS, final_positions=TEST.original_positions)
    wide = CALIBRATOR.reselect(0.1).predict(TEST)
    result = compare_methods(TEST, nothing, made_up(TEST), further=[wide], resamples=20)
    assert [row.label for row in result.rows] == ["Focus on Vision", "NoLan", nothing.method, wide.method]
    assert result.family == 16
    assert result.rows[3].tasks[0].cf.change == evaluate(TEST, wide, resamples=20).tasks[0].cf.change
    assert result.rows[2].tasks[0].cf.change.changed == 0
    figure = result.figure()
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Multiple choice", "Yes/no questions"]
    numbers = {text.get_text() for text in figure.axes[0].texts}
    assert {"3", "4"} <= {number for text in numbers for number in text.split(", ")}, "two stars are told apart"


def test_every_method_is_a_family_of_tests(methods: Methods) -> None:
    tests = methods.tests()
    assert len(tests) == methods.family
    for row in methods.rows:
        own = [test for test in tests if test.family == row.label]
        assert [test.name for test in own] == ["MC CF", "MC CS", "QA CF", "QA CS"]
        sides = [side.test.p_value for task in row.tasks for side in (task.cf, task.cs)]
        assert [test.p for test in own] == sides
        assert [test.holm_p for test in own] == list(holm(sides).adjusted)


def test_sentences_name_the_best_and_the_best_of_the_other_side() -> None:
    perfect = MethodAnswers(MethodInfo("one", "One", "edit", {}, None), TEST.answer_positions, None)
    worst = MethodAnswers(
        MethodInfo("two", "Two", "edit", {}, None), (TEST.answer_positions + 1) % TEST.candidate_counts, None
    )  # fmt: skip
    ahead = compare_methods(TEST, DECISIONS, [perfect, worst], resamples=20).sentences
    assert ahead[0].startswith("On MC One has the highest U (")
    assert ahead[0].endswith("of SPC (standard, ε = 0.04).")
    assert ahead[-1] == "CF accuracy falls with Two (on MC and QA)."
    behind = compare_methods(TEST, TEST.answer_positions, [worst], resamples=20).sentences
    assert behind[0].startswith("On MC SPC has the highest U (")
    assert behind[0].endswith("of Two.")
    alone = compare_methods(TEST, DECISIONS, [], resamples=20).sentences
    assert "against" not in alone[0]
