from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from made_up_methods import made_up
from small_tables import abstaining_calibrator, example, few_pairs
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.baselines.controls import run_controls
from unprior.evaluation import Change
from unprior.studies.inputs import External
from unprior.studies.rq4.external import (
    BenchmarkEffects,
    ExternalBenchmarks,
    MeasureChange,
    MethodEffect,
    study_external,
)


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=3, test=1)


def without_sides(table: ScoreTable) -> ScoreTable:
    rows = [row | {"side": None, "example_id": f"{row['pair_id']}-{row['side']}-{row['task']}"}
            for row in table.arrow.to_pylist()]  # fmt: skip
    return ScoreTable.from_rows(rows)


def test_every_number_against_plain_loops(table: ScoreTable) -> None:
    calibrator = SelectivePriorCalibrator().fit(table)
    test = table.where(split="test")
    result = study_external(
        [calibrator], External(test, tuple(made_up(test))), {"loose": External(without_sides(test))}
    )
    assert [(row.benchmark, row.task, row.own) for row in result.rows] == [
        ("synthetic", "mc", True), ("synthetic", "qa", True), ("loose", "mc", False), ("loose", "qa", False),
    ]  # fmt: skip
    assert [each.method for each in result.rows[0].methods] == ["spc-0.04", "nolan"]
    measures = [[effect.measure for effect in row.methods[0].effects] for row in result.rows]
    assert measures == [["cf", "cs"], ["cf", "cs"], ["accuracy"], ["accuracy", "f1"]]
    rows = list(zip(test.arrow.to_pylist(), calibrator.predict(test), strict=True))
    for transfer in result.rows:
        spc = transfer.methods[0]
        mine = [(row, made.final) for row, made in rows if row["task"] == transfer.task]
        assert spc.change.changed == sum(final != row["original"] for row, final in mine)
        for effect in spc.effects:
            if effect.measure == "f1":
                continue
            part = [(r, final) for r, final in mine if effect.measure in ("accuracy", r["side"])]
            before = sum(r["original"] == r["answer"] for r, _ in part) / len(part)
            after = sum(final == r["answer"] for r, final in part) / len(part)
            assert (effect.before, effect.after) == (pytest.approx(before), pytest.approx(after))
            assert effect.delta == pytest.approx(after - before)


def test_f1_by_hand() -> None:
    said = ["yes", "yes", "no", None]
    right = ["yes", "no", "yes", "yes"]
    rows = [
        example(pair, "cf", [-1.0, -2.0], [-1.0, -1.0], original, answer) | {"side": None}
        for pair, (original, answer) in enumerate(zip(said, right, strict=True))
    ]
    own = External(few_pairs().where(split="test"))
    table = ScoreTable.from_rows(rows)
    result = study_external([abstaining_calibrator()], own, {"presence": External(table)})
    accuracy, f1 = result.rows[-1].methods[0].effects
    assert accuracy.before == 1 / 4
    assert f1.before == f1.after == 2 * 1 / (2 + 3), "one hit, two said and three right"
    no = ScoreTable.from_rows([row | {"original": "no", "answer": "no"} for row in rows])
    undefined = study_external([abstaining_calibrator()], own, {"never": External(no)})
    assert undefined.records()[-1]["f1_delta"] is None
    assert undefined.table.rows[-1].cells[-1] == "+0.0/–"


def test_answers_of_the_other_benchmark_are_not_looked_at(table: ScoreTable) -> None:
    calibrator = SelectivePriorCalibrator().fit(table)
    own, other = External(table.where(split="test")), without_sides(few_pairs(seed=5))
    wrong = ScoreTable.from_rows([row | {"answer": row["candidates"][0]} for row in other.arrow.to_pylist()])
    mine, theirs = (study_external([calibrator], own, {"other": External(each)}) for each in (other, wrong))
    for one, two in zip(mine.rows, theirs.rows, strict=True):
        assert one.methods[0].change.changed == two.methods[0].change.changed
    assert study_external([calibrator], own, {"other": External(other)}) == mine, "the same twice"


def effect(method: str, cf: float, cs: float, changed: int = 1) -> MethodEffect:
    parts = (MeasureChange("cf", 0.5, 0.5 + cf, cf, 1.0), MeasureChange("cs", 0.9, 0.9 + cs, cs, 1.0))
    return MethodEffect(method, method.upper(), Change(1, 0, changed, 10), parts)


def test_effects_that_nothing_dominates_are_marked() -> None:
    row = BenchmarkEffects("other", "mc", False, (effect("spc-0.04", 0.1, 0.0), effect("nolan", 0.1, -0.1)))
    assert row.nondominated == ("spc-0.04",)
    assert [line.bold_cells for line in ExternalBenchmarks((row,)).table.rows] == [(3,), ()]
    traded = replace(row, methods=(effect("spc-0.04", 0.1, 0.0), effect("nolan", 0.2, -0.1)))
    assert traded.nondominated == ("spc-0.04", "nolan")
    equal = replace(row, methods=(effect("spc-0.04", 0.1, 0.0), effect("nolan", 0.1, 0.0)))
    assert equal.nondominated == ("spc-0.04", "nolan")


def test_sentences_compare_how_much_is_changed() -> None:
    few, many = effect("spc-0.04", 0.1, 0.0, changed=2), effect("nolan", 0.1, -0.1, changed=5)
    said = ExternalBenchmarks((BenchmarkEffects("other", "mc", False, (few, many)),)).sentences
    assert said[0] == "On other MC, SPC-0.04 changes 2 of 10 answers (repairs/harms 1/0, ΔCF/ΔCS +10.0/+0.0)."
    assert said[1] == (
        "NOLAN changes more answers than SPC-0.04 in 1 of 1 combinations of benchmark and task, is dominated by it in "
        "1 and dominates it in 0."
    )
    fewer = ExternalBenchmarks(
        (BenchmarkEffects("other", "mc", False, (few, effect("nolan", 0.2, 0.1, changed=1))),)
    ).sentences
    assert "in 0 of 1 combinations of benchmark and task, is dominated by it in 0 and dominates it in 1" in fewer[1]
    assert ExternalBenchmarks((BenchmarkEffects("own", "mc", True, (few,)),)).sentences == (
        "There are no other benchmarks.",
    )


def test_a_method_without_answers_has_no_row(table: ScoreTable) -> None:
    test = table.where(split="test")
    calibrator = SelectivePriorCalibrator().fit(table)
    result = study_external([calibrator], External(test, tuple(made_up(test))), {"other": External(test)})
    assert [section.heading for section in result.table.sections][1:3] == [
        "synthetic QA, the run's own benchmark: ΔCF/ΔCS of 6 answers",
        "other MC: ΔCF/ΔCS of 6 answers",
    ]
    assert [len(section.rows) for section in result.table.sections] == [2, 2, 1, 1]
    records = json.loads(json.dumps(result.records(), allow_nan=False))
    assert len(records) == 2 * 2 + 2
    assert result.figure() is None
    assert np.isclose(records[0]["cf_delta"], records[-2]["cf_delta"])


def test_a_control_is_compared_with_spc_of_its_own_limit() -> None:
    methods = (effect("spc-0.04", 0.1, 0.0), effect("spc-0.1", 0.3, 0.0), effect("learned-rule-fixed-0.1", 0.2, 0.0))
    said = ExternalBenchmarks((BenchmarkEffects("other", "mc", False, methods),)).sentences
    assert said[1].startswith("LEARNED-RULE-FIXED-0.1 changes more answers than SPC-0.1 in 0 of 1")
    assert "is dominated by it in 1 and" in said[1]


def test_controls_are_chosen_on_the_development_rows_and_carried_over(table: ScoreTable) -> None:
    development, other = table.where(split="dev"), without_sides(few_pairs(seed=5))
    calibrators = [SelectivePriorCalibrator(epsilon_cs=epsilon).fit(table) for epsilon in (0.04, 0.1)]
    own = External(table.where(split="test"))
    result = study_external(calibrators, own, {"other": External(other)}, development=development)
    assert [each.label for each in result.rows[-1].methods] == [
        "SPC (standard, ε = 0.04)", "SPC (standard, ε = 0.10)", "Fixed strength (ε = 0.10)", "Learned rule (ε = 0.10)",
        "CFG on scores (ε = 0.04)",
    ]  # fmt: skip
    alone = {each.name: each for each in run_controls(development, other, epsilon_cs=0.1)}
    alone["cfg-score"] = run_controls(development, other, epsilon_cs=0.04, names=["cfg-score"])[0]
    rows = other.arrow.to_pylist()
    for transfer in result.rows[2:]:
        for name, label in (
            ("selected-strength-gated", "Fixed"),
            ("learned-rule-fixed", "Learned"),
            ("cfg-score", "CFG"),
        ):
            (found,) = (each for each in transfer.methods if each.label.startswith(label))
            finals = other.candidate_names(alone[name].answers)
            mine = [(row, final) for row, final in zip(rows, finals, strict=True) if row["task"] == transfer.task]
            assert found.change.changed == sum(final != row["original"] for row, final in mine)
            after = sum(final == row["answer"] for row, final in mine) / len(mine)
            assert found.effects[0].after == pytest.approx(after)


def test_guidance_has_no_row_for_a_task_without_development_rows(table: ScoreTable) -> None:
    choices = table.where(task="mc")
    calibrator = SelectivePriorCalibrator().fit(choices)
    own = External(choices.where(split="test"))
    result = study_external([calibrator], own, {"other": External(table)}, development=choices.where(split="dev"))
    assert [(row.task, row.of("cfg-score-0.04") is None) for row in result.rows] == [
        ("mc", False), ("mc", False), ("qa", True),
    ]  # fmt: skip


def test_every_method_that_has_answered_elsewhere_has_a_row(table: ScoreTable) -> None:
    test, other = table.where(split="test"), few_pairs(seed=5)
    calibrator = SelectivePriorCalibrator().fit(table)
    result = study_external([calibrator], External(test, tuple(made_up(test))),
                            {"other": External(other, tuple(made_up(other)[:1]))})  # fmt: skip
    methods = [[each.method for each in row.methods] for row in result.rows]
    assert methods == [["spc-0.04", "focus", "nolan"]] * 2 + [["spc-0.04", "focus"]] * 2
    assert sum("Focus on Vision changes" in sentence for sentence in result.sentences) == 1
    assert not any("NoLan" in sentence for sentence in result.sentences)


def test_right_answers_that_are_all_the_same_are_pointed_out() -> None:
    rows = [example(pair, "cf", [-1.0, -2.0], [-1.0, -1.0], "yes", "yes") | {"side": None} for pair in range(3)]
    own = External(few_pairs().where(split="test"))
    always, mixed = (
        study_external([abstaining_calibrator()], own, {"leaning": External(ScoreTable.from_rows(each))})
        for each in (rows, [*rows[:2], rows[2] | {"answer": "no"}])
    )
    note = "All right answers of leaning QA are “yes”, so a gain there may only show a bias towards that answer."
    assert always.sentences[-1] == note
    assert always.table.caption.endswith(note)
    assert [record["only_answer"] for record in always.records()] == [None, None, "yes"]
    assert note not in (*mixed.sentences, mixed.table.caption)
    assert mixed.records()[-1]["only_answer"] is None
