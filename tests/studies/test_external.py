from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from made_up_methods import made_up
from small_tables import abstaining_calibrator, example, few_pairs
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.evaluation import Change
from unprior.studies import Transfers, study_external
from unprior.studies.effects import Effect, MethodEffect
from unprior.studies.external import Transfer
from unprior.studies.inputs import External


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
    parts = (Effect("cf", 0.5, 0.5 + cf, cf, 1.0), Effect("cs", 0.9, 0.9 + cs, cs, 1.0))
    return MethodEffect(method, method.upper(), Change(1, 0, changed, 10), parts)


def test_effects_that_nothing_dominates_are_marked() -> None:
    row = Transfer("other", "mc", False, (effect("spc-0.04", 0.1, 0.0), effect("nolan", 0.1, -0.1)))
    assert row.nondominated == ("spc-0.04",)
    assert [line.strong_cells for line in Transfers((row,)).table.rows] == [(3,), ()]
    traded = replace(row, methods=(effect("spc-0.04", 0.1, 0.0), effect("nolan", 0.2, -0.1)))
    assert traded.nondominated == ("spc-0.04", "nolan")
    equal = replace(row, methods=(effect("spc-0.04", 0.1, 0.0), effect("nolan", 0.1, 0.0)))
    assert equal.nondominated == ("spc-0.04", "nolan")


def test_sentences_compare_how_much_is_changed() -> None:
    few, many = effect("spc-0.04", 0.1, 0.0, changed=2), effect("nolan", 0.1, -0.1, changed=5)
    said = Transfers((Transfer("other", "mc", False, (few, many)),)).sentences
    assert said[0] == "On other MC SPC-0.04 changes 2 of 10 answers (repairs/harms 1/0, ΔCF/ΔCS +10.0/+0.0)."
    assert said[1] == (
        "NoLan changes more answers than SPC-0.04 in 1 of 1 combinations of benchmark and task; SPC-0.04 is not "
        "dominated in 1."
    )
    fewer = Transfers((Transfer("other", "mc", False, (few, effect("nolan", 0.2, 0.1, changed=1))),)).sentences
    assert "in 0 of 1 combinations of benchmark and task; SPC-0.04 is not dominated in 0" in fewer[1]
    assert Transfers((Transfer("own", "mc", True, (few,)),)).sentences == ("There are no other benchmarks.",)


def test_a_method_without_answers_has_no_row(table: ScoreTable) -> None:
    test = table.where(split="test")
    calibrator = SelectivePriorCalibrator().fit(table)
    result = study_external([calibrator], External(test, tuple(made_up(test))), {"other": External(test)})
    assert [section.heading for section in result.table.sections][1:3] == [
        "synthetic QA, where SPC was fitted: ΔCF/ΔCS of 6 answers",
        "other MC: ΔCF/ΔCS of 6 answers",
    ]
    assert [len(section.rows) for section in result.table.sections] == [2, 2, 1, 1]
    records = json.loads(json.dumps(result.records(), allow_nan=False))
    assert len(records) == 2 * 2 + 2
    assert result.figure() is None
    assert np.isclose(records[0]["cf_delta"], records[-2]["cf_delta"])
