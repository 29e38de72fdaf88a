from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from random_tables import random_rows
from small_tables import abstaining_calibrator, hand_made_table, twelve_pairs
from study_checks import is_plain
from unprior import Decisions, ScoreTable, SelectivePriorCalibrator
from unprior.studies.rq3.repairs import study_repairs

TABLE = twelve_pairs()


def _of_spc() -> Decisions:
    return SelectivePriorCalibrator(epsilon_cs=0.2).fit(TABLE).predict(TABLE.where(split="test"))


def _without_conditions() -> Decisions:
    """Repairs of every kind, on both sides."""
    table = ScoreTable.from_rows(random_rows(seed=46, pairs=12))
    return SelectivePriorCalibrator(epsilon_cs=1.0, conditions=None).fit(table).predict(table)


@pytest.mark.parametrize("made", [_of_spc, _without_conditions])
def test_against_plain_loops(made: Callable[[], Decisions]) -> None:
    decisions = made()
    result = study_repairs(decisions)
    repaired = 0
    for task in result.tasks:
        same, total = {"cf": 0, "cs": 0}, {"cf": 0, "cs": 0}
        repairs = right = alike = 0
        for row, decision in zip(decisions.table.arrow.to_pylist(), decisions, strict=True):
            if row["task"] != task.task:
                continue
            image = row["candidates"][row["image_scores"].index(max(row["image_scores"]))]
            prior = row["candidates"][row["prior_scores"].index(max(row["prior_scores"]))]
            total[row["side"]] += 1
            same[row["side"]] += row["original"] == image
            if row["side"] == "cf" and row["original"] != row["answer"] == decision.final:
                repairs += 1
                right += image == row["answer"]
                alike += row["original"] == image == prior
        assert (task.same_cf.count, task.same_cf.total) == (same["cf"], total["cf"])
        assert (task.same_cs.count, task.same_cs.total) == (same["cs"], total["cs"])
        assert (task.image_right.count, task.image_right.total) == (right, repairs)
        assert (task.all_wrong_alike.count, task.all_wrong_alike.total) == (alike, repairs)
        repaired += repairs
    assert repaired > 0
    assert f"of {repaired} CF repair" in result.sentences[0]
    assert is_plain(result)


def test_an_unparsed_answer_agrees_with_nothing() -> None:
    decisions = abstaining_calibrator().predict(hand_made_table())
    mc = study_repairs(decisions).tasks[0]
    # CF of the hand-made table: A=A, C=C, A=A, nothing, B=B.
    assert (mc.same_cf.count, mc.same_cf.total) == (4, 5)


def test_without_repairs_there_are_no_shares() -> None:
    result = study_repairs(abstaining_calibrator().predict(TABLE))
    assert result.sentences[0] == "SPC (standard, ε = 0.04) makes no CF repair."
    assert math.isnan(result.tasks[0].image_right.value)
    assert result.records()[0]["all_wrong_alike"] is None
    assert result.table.rows[0].cells[2:] == ("0", "–", "–")
    assert result.figure() is None


@pytest.mark.parametrize("task", ["mc", "qa"])
def test_one_task_is_enough(task: str) -> None:
    table = TABLE.where(task=task)
    result = study_repairs(SelectivePriorCalibrator().fit(table).predict(table))
    assert [each.task for each in result.tasks] == [task]
    assert f"{task.upper()} CF images" in result.sentences[1]
