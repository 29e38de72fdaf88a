from __future__ import annotations

import json

import pytest

from small_tables import count_changes, few_pairs, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.baselines.controls import run_controls
from unprior.benchmarks.splits import nested_development
from unprior.evaluation import Change
from unprior.studies.common.resplit import outline
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.rq3.less_or_shifted import METHODS, SHIFTED, LessOrShifted, ShiftRun, study_less_or_shifted

CONTROL = "learned-rule-fixed"


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=3, test=2)


@pytest.fixture(scope="module")
def result(table: ScoreTable) -> LessOrShifted:
    return study_less_or_shifted(table, seeds=(0, 1))


def answers(development: ScoreTable, test: ScoreTable, method: str) -> list[str | None]:
    calibrator = SelectivePriorCalibrator(uncertainty=True).fit(development, split=None)
    if method == "spc":
        return [decision.final for decision in calibrator.predict(test)]
    (control,) = run_controls(development, test, calibrator=calibrator, names=[method])
    return test.candidate_names(control.answers)


def mean_utility(test: ScoreTable, finals: list[str | None]) -> float:
    rows, total = test.arrow.to_pylist(), 0.0
    for task in ("mc", "qa"):
        for side, weight in (("cf", 1.0), ("cs", 0.5)):
            repairs, harms, count = count_changes(rows, finals, task, side)
            total += weight * (repairs - harms) / count
    return total / 2


@pytest.mark.parametrize("method", METHODS)
def test_utilities_against_plain_loops(table: ScoreTable, result: LessOrShifted, method: str) -> None:
    rows = table.arrow.to_pylist()
    test = table.where(split="test")
    finals: dict[int, str | None] = {}
    for category in set(table.column("category")):
        outside = ScoreTable.from_rows([r for r in rows if r["split"] == "dev" and r["category"] != category])
        inside = [place for place, name in enumerate(test.column("category")) if name == category]
        given = answers(outside, test.where(category=category), method)
        finals |= dict(zip(inside, given, strict=True))
    pooled = [finals[place] for place in range(len(test))]
    assert result.utility(SHIFTED, method) == pytest.approx(mean_utility(test, pooled))
    few = []
    for seed in (0, 1):
        kept = {each.pair_id for each in nested_development(outline(table), seed, [1])[1] if each.split == "dev"}
        development = ScoreTable.from_rows([row for row in rows if row["pair_id"] in kept])
        few.append(mean_utility(test, answers(development, test, method)))
    assert result.utility("3 pairs", method) == pytest.approx(sum(few) / 2)


def test_test_answers_are_not_looked_at(table: ScoreTable, result: LessOrShifted) -> None:
    other = study_less_or_shifted(with_other_answers(table, split="test"), seeds=(0, 1))
    for mine, theirs in zip(result.runs, other.runs, strict=True):
        assert [task.cs.changed for task in mine.tasks] == [task.cs.changed for task in theirs.tasks]
    assert study_less_or_shifted(table, seeds=(0, 1)) == result, "the same twice"


def made_up(**repairs: int) -> LessOrShifted:
    names = dict(zip(("spc", "fixed", "learned"), METHODS, strict=True))
    return LessOrShifted(
        0.04,
        tuple(
            ShiftRun(SHIFTED, names[name], None, (TradeOff("mc", Change(count, 0, count, 10), Change(0, 0, 0, 10)),))
            for name, count in repairs.items()
        ),
    )


def test_the_best_of_a_row_is_marked_and_named() -> None:
    result = made_up(spc=2, fixed=1, learned=3)
    assert result.table.rows[0].cells == (SHIFTED, "+20.00", "+10.00", "+30.00")
    assert result.table.rows[0].bold_cells == (3,)
    assert (
        result.sentences[0]
        == "Without the tested category “Learned revision rule” has the highest U (+30.00, ε = 0.04)."
    )
    assert "+10.00 to +10.00 points" in result.sentences[1]
    assert "ahead in 1 of 1" in result.sentences[1]
    equal = made_up(spc=2, fixed=2, learned=1)
    assert equal.table.rows[0].bold_cells == (1, 2)
    assert equal.sentences[0].endswith(
        "SPC (uncertainty-aware, ε = 0.04) and “Fixed strength” have the highest U (+20.00, ε = 0.04)."
    )
    assert "ahead in 0 of 1" in equal.sentences[1]


def test_records_are_plain(result: LessOrShifted) -> None:
    assert len(json.loads(json.dumps(result.records(), allow_nan=False))) == (1 + 2 + 1) * 3 * 2
    assert result.figure() is None
