"""One check finds every pair that is not one counterfactual and one commonsense image of one question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small_tables import Row, synthetic, twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate, read_scores, synthesize
from unprior.scores.pairs import (
    Fault,
    PairProblem,
    check_pairs,
    pairs_by_task,
    refuse_too_few,
    sound_pairs,
    table_pairs,
    warnings_about,
)


def rows() -> list[Row]:
    return [row for row in twelve_pairs().arrow.to_pylist() if row["split"] == "dev"]


def problems_of(changed: list[Row]) -> list[PairProblem]:
    return list(check_pairs(table_pairs(ScoreTable.from_rows(changed))).problems)


def faults(changed: list[Row]) -> list[tuple[Fault, str, str | None]]:
    return [(problem.fault, problem.pair, problem.task) for problem in problems_of(changed)]


def without(**where: Any) -> Callable[[Row], bool]:
    return lambda row: any(row[name] != value for name, value in where.items())


def test_sound_pairs_pass() -> None:
    assert faults(rows()) == []
    assert check_pairs(table_pairs(synthetic(seed=0))).sound.all()


@pytest.mark.parametrize("named", [True, False])
def test_a_row_that_stands_twice(named: bool) -> None:
    doubled = rows()
    doubled.append(dict(doubled[0]))
    if named:  # under another name it is still the same example: all its scores are equal
        doubled[0]["example_id"], doubled[-1]["example_id"] = "a", "b"
    pair, task = doubled[0]["pair_id"], doubled[0]["task"]
    assert faults(doubled) == [(Fault.TWICE, str(pair), task)]
    assert problems_of(doubled)[0].lines == (1, 2, len(doubled))


def test_a_whole_table_that_stands_twice() -> None:
    check = check_pairs(table_pairs(ScoreTable.from_rows([*rows(), *rows()])))
    assert {problem.fault for problem in check.problems} == {Fault.TWICE}
    assert check.total == 10
    assert not check.sound.any()


@pytest.mark.parametrize(("side", "fault"), [("cf", Fault.NO_CF), ("cs", Fault.NO_CS)])
def test_a_side_that_is_missing(side: str, fault: Fault) -> None:
    kept = [row for row in rows() if without(pair_id=3, side=side, task="qa")(row)]
    assert faults(kept) == [(fault, "3", "qa")]


def test_two_commonsense_rows_and_no_counterfactual_one() -> None:
    changed = rows()
    row = next(row for row in changed if (row["pair_id"], row["side"], row["task"]) == (2, "cf", "mc"))
    row |= {"side": "cs", "example_id": "another"}
    assert faults(changed) == [(Fault.NO_CF, "2", "mc")]


def test_a_side_that_is_repeated() -> None:
    changed = rows()
    extra = dict(next(row for row in changed if row["side"] == "cs"))
    extra |= {"image_scores": [score - 0.5 for score in extra["image_scores"]], "example_id": "another"}
    assert faults([*changed, extra]) == [(Fault.REPEATED, str(extra["pair_id"]), extra["task"])]


def test_sides_with_different_options() -> None:
    changed = rows()
    row = next(row for row in changed if (row["pair_id"], row["side"], row["task"]) == (4, "cf", "mc"))
    row["candidates"] = ["E", *row["candidates"][1:]]
    row["original"] = row["answer"] = row["candidates"][1]
    assert faults(changed) == [(Fault.OPTIONS, "4", "mc")]


def test_the_order_of_named_candidates_does_not_matter() -> None:
    changed = rows()
    row = next(row for row in changed if row["side"] == "cf" and row["task"] == "mc")
    for name in ("candidates", "image_scores", "prior_scores"):
        row[name] = row[name][::-1]
    assert faults(changed) == []


def test_several_questions_of_one_pair() -> None:
    again = [
        row
        | {
            "example_id": f"second-{index}",
            "image_scores": [score - 0.1 * index - 0.1 for score in row["image_scores"]],
        }
        for index, row in enumerate(rows())
    ]
    first = [row | {"example_id": f"first-{index}"} for index, row in enumerate(rows())]
    assert faults([*first, *again]) == []


def test_a_pair_in_two_splits_is_found_even_outside_the_rows_to_fit_on() -> None:
    table = twelve_pairs().arrow.to_pylist()
    for row in table:
        if row["pair_id"] == 12:
            row |= {"pair_id": 1, "example_id": "leaked"}
    leaking = ScoreTable.from_rows(table)
    with pytest.raises(UnpriorError, match="pair 1: stands in two splits"):
        SelectivePriorCalibrator().fit(leaking)


def test_fitting_and_evaluating_refuse_what_would_count_twice() -> None:
    table = twelve_pairs().arrow.to_pylist()
    doubled = ScoreTable.from_rows([*table, *(row for row in table if row["split"] == "dev")])
    with pytest.raises(UnpriorError, match="more than once"):
        SelectivePriorCalibrator().fit(doubled)
    test = ScoreTable.from_rows([*table, table[-1]])
    with pytest.raises(UnpriorError, match="more than once"):
        evaluate(test, test.original_positions)


def test_messages_name_file_line_pair_and_remedy(tmp_path: Path) -> None:
    ScoreTable.from_rows([row for row in rows() if without(pair_id=3, side="cf", task="qa")(row)]).write(
        tmp_path / "scores.jsonl"
    )
    table = read_scores(tmp_path / "scores.jsonl")
    line = next(
        index for index, row in enumerate(table.arrow.to_pylist(), 1) if (row["pair_id"], row["task"]) == (3, "qa")
    )
    with pytest.raises(UnpriorError) as refused:
        SelectivePriorCalibrator().fit(table)
    assert f"{tmp_path}/scores.jsonl: 1 pair is not sound" in str(refused.value)
    assert f"line {line}: pair 3 (qa): has no counterfactual (cf) side" in str(refused.value)
    assert "Correct these pairs" in str(refused.value)


def test_lines_survive_choosing_rows(tmp_path: Path) -> None:
    twelve_pairs().write(tmp_path / "scores.jsonl")
    table = read_scores(tmp_path / "scores.jsonl")
    assert list(table.take(np.array([5, 2])).lines) == [6, 3]
    assert (
        list(table.where(split="test").where(task="qa").lines[:2])
        == [
            number
            for number, row in enumerate(table.arrow.to_pylist(), 1)
            if (row["split"], row["task"]) == ("test", "qa")
        ][:2]
    )


def test_unsound_pairs_can_be_left_out() -> None:
    table = ScoreTable.from_rows([row for row in rows() if without(pair_id=3, side="cf", task="qa")(row)])
    sound, check = sound_pairs(table)
    assert check.total == 1
    assert len(sound) == len(table) - 1
    assert faults(sound.arrow.to_pylist()) == []


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_exactly_the_injured_pair_is_found(seed: int, injury: int) -> None:
    changed = rows()
    generator = np.random.default_rng(seed)
    hurt = int(generator.integers(len(changed)))
    row = changed[hurt]
    if injury == 0:
        del changed[hurt]
    elif injury == 1:
        changed.insert(int(generator.integers(len(changed))), dict(row))
    elif injury == 2:
        row["side"] = {"cf": "cs", "cs": "cf"}[row["side"]]
    else:
        row |= {"candidates": [*row["candidates"][:-1], "other"], "original": None, "answer": row["candidates"][0]}
    order = generator.permutation(len(changed)).tolist()
    found = faults([changed[index] for index in order])
    assert {(pair, task) for _, pair, task in found} == {(str(row["pair_id"]), row["task"])}


@pytest.mark.parametrize("kind", [int, str, lambda pair: pair * 10**15, lambda pair: -pair])
def test_any_kind_of_pair_id(kind: Callable[[int], Any]) -> None:
    changed = [row | {"pair_id": kind(row["pair_id"])} for row in rows()]
    assert faults(changed) == []
    del changed[0]
    assert len(faults(changed)) == 1


def test_one_pair_is_too_few_to_fit_on() -> None:
    one = ScoreTable.from_rows([row for row in rows() if row["pair_id"] == 1])
    with pytest.raises(UnpriorError, match="one: task mc has 1 development pair; at least 2 are needed"):
        refuse_too_few("one", pairs_by_task(one))


def test_few_pairs_bring_a_warning_that_says_what_it_means() -> None:
    few = ScoreTable.from_rows(rows())
    mc, qa = warnings_about(few, 0.04)
    assert mc == (
        "task mc has only 5 pairs: one answer more or less moves an accuracy by 20.0 points, so a permitted loss of "
        "ε = 0.04 permits no harmed answer at all; the paper uses 70 development pairs"
    )
    assert qa.startswith("task qa has only 5 pairs")
    assert warnings_about(synthetic(seed=0).where(split="dev"), 0.04) == []


def test_a_model_at_chance_brings_a_warning() -> None:
    guessing = synthetic(seed=0).where(split="dev").arrow.to_pylist()
    for index, row in enumerate(row for row in guessing if row["task"] == "mc"):
        right = row["candidates"].index(row["answer"])
        row["original"] = row["candidates"][(right + index // 2) % 4]  # right in every fourth pair
    (sentence,) = warnings_about(ScoreTable.from_rows(guessing), 0.04)
    assert sentence.startswith("on task mc the model answers ")
    assert "no better than guessing (18)" in sentence


def test_open_questions_whose_candidates_miss_the_answer_are_told() -> None:
    table = synthesize(seed=3, open_questions=True).where(task="open")
    assert warnings_about(table) == []
    lost = table.with_column("answer", ["?!" if side == "cs" else answer for side, answer in
                                        zip(table.column("side"), table.answer, strict=True)])  # fmt: skip
    lost = ScoreTable.from_arrow(lost.with_column("aliases", [None] * len(lost)).arrow)
    (told,) = warnings_about(lost)
    assert "only 0 of 300 rows about commonsense images" in told
