"""Answers as texts: forms of candidates, aliases, and right answers that are no candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from unprior import ScoreTable, UnpriorError, evaluate
from unprior.evaluation import compare
from unprior.evaluation.free_texts import right_texts, text_positions
from unprior.evaluation.metrics import Share, as_answers, correct, measure
from unprior.scores.schema import OTHER_ANSWER, OTHER_ORDINARY_ANSWER, OTHER_RIGHT_ANSWER


def row(pair: int, side: str, answer: str, original: str = "4 legs", **more: Any) -> dict[str, Any]:
    return {
        "pair_id": pair, "side": side, "task": "open", "candidates": ["4 legs", "six legs"], "original": original,
        "image_scores": [-0.5, -1.0], "prior_scores": [-0.1, -3.0], "answer": answer,
    } | more  # fmt: skip


def open_table(*rows: dict[str, Any], aliases: list[list[str] | None] | None = None) -> ScoreTable:
    """A table whose right answers may be missing from the candidates."""
    arrow = ScoreTable.from_rows([each | {"answer": each["candidates"][0]} for each in rows]).arrow
    names = arrow.column_names
    answers = pa.array([each["answer"] for each in rows], pa.string())
    arrow = arrow.set_column(names.index("answer"), "answer", answers)
    if aliases is not None:
        given = pa.array(aliases, pa.list_(pa.string()))
        place = names.index("aliases") if "aliases" in names else len(names)
        arrow = arrow.drop_columns([name for name in names if name == "aliases"]).add_column(place, "aliases", given)
    return ScoreTable(arrow)


TABLE = open_table(
    row(1, "cf", "six legs"), row(1, "cs", "4 legs"), row(2, "cf", "8 legs"), row(2, "cs", "4 legs"),
    aliases=[["6"], ["4", "two pairs"], ["8"], None],
)  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "positions", "right"),
    [
        (["6 Legs.", "the four legs", "Eight legs", "4 legs"], [1, 0, OTHER_RIGHT_ANSWER, 0], [True, True, True, True]),
        (["6", "two pairs", "8", "4"], [1, 0, OTHER_RIGHT_ANSWER, OTHER_ANSWER], [True, True, True, False]),
        ([None, "an octopus", "4 legs", ""], [-1, OTHER_ANSWER, 0, OTHER_ANSWER], [False, False, False, False]),
    ],
)
def test_texts_of_open_questions(texts: list[str | None], positions: list[int], right: list[bool]) -> None:
    found = text_positions(TABLE, texts)
    assert found.tolist() == positions
    assert right_texts(TABLE, texts).tolist() == right == correct(TABLE, found).tolist()
    assert as_answers(TABLE, texts).tolist() == positions, "labels and positions are the same to every measure"
    assert as_answers(TABLE, found).tolist() == positions


def test_another_text_counts_as_a_change_and_perhaps_as_a_repair() -> None:
    given = ["eight", "a dog", "8 legs", "4 legs"]
    cf, cs = (compare(TABLE, given, side=side) for side in ("cf", "cs"))
    assert (cf.repairs, cf.harms, cf.changed, cf.total) == (1, 0, 2, 2)
    assert (cs.repairs, cs.harms, cs.changed, cs.total) == (0, 1, 1, 2)
    covered = TABLE.take(np.array([0, 1]))
    (result,) = evaluate(covered, ["seven", "4"], resamples=50).tasks
    assert (result.cf.change.repairs, result.cs.change.harms, result.method.cf.count) == (0, 0, 0)
    (result,) = evaluate(covered, ["6", "4"], resamples=50).tasks
    assert (result.cf.change.repairs, result.cs.change.harms, result.method.cf.count) == (1, 0, 1)


# What was seen without options is far from the pair's commonsense answer: it is a candidate of neither row.
LEGS = {"candidates": ["8 legs", "nine legs"], "original": "8 legs"}
ORDINARY = open_table(
    row(1, "cf", "six legs", **LEGS), row(1, "cs", "4 legs", **LEGS),
    row(2, "cf", "six legs", **LEGS), row(2, "cs", "4 legs", **LEGS),
    aliases=[None, ["two pairs"], ["half a dozen"], None],
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "position", "counted"),
    [
        ("Four legs.", OTHER_ORDINARY_ANSWER, (1, 1)),  # another form of the commonsense answer
        ("two pairs", OTHER_ORDINARY_ANSWER, (1, 1)),  # its alias
        ("a table", OTHER_ANSWER, (0, 1)),  # wrong in a way of its own
        ("9 legs", 1, (0, 1)),  # a wrong candidate
        (None, -1, (0, 1)),  # no answer is wrong
        ("6 legs", OTHER_RIGHT_ANSWER, (0, 0)),  # right, so it is not counted
    ],
)
def test_a_wrong_text_that_is_no_candidate_is_compared_with_the_commonsense_answer(
    given: str | None, position: int, counted: tuple[int, int]
) -> None:
    texts = [given, "4 legs", "6 legs", "4 legs"]
    positions = text_positions(ORDINARY, texts)
    assert positions[0] == position
    assert measure(ORDINARY, texts).ccr == measure(ORDINARY, positions).ccr == Share(*counted)
    (result,) = evaluate(ORDINARY, texts, resamples=50).tasks
    assert result.method.ccr == Share(*counted)
    assert (result.original.ccr, result.method.cf.count) == (Share(0, 2), int(position == OTHER_RIGHT_ANSWER) + 1)


def test_the_commonsense_answer_of_another_pair_or_of_no_pair_is_another_text() -> None:
    other = open_table(row(1, "cf", "six legs", **LEGS), row(2, "cs", "4 legs", **LEGS))
    assert text_positions(other, ["4 legs", "4 legs"]).tolist() == [OTHER_ANSWER, OTHER_RIGHT_ANSWER]
    assert measure(other, ["4 legs", "4 legs"]).ccr == Share(0, 0)
    assert measure(other, np.array([OTHER_ORDINARY_ANSWER, 0])).ccr == Share(0, 0)
    swapped = text_positions(ORDINARY, ["4 legs", "6 legs", "half a dozen", "half a dozen"])
    assert swapped.tolist() == [OTHER_ORDINARY_ANSWER, OTHER_ANSWER, OTHER_RIGHT_ANSWER, OTHER_ANSWER]


def test_where_there_are_options_another_text_is_refused() -> None:
    closed = ScoreTable.from_rows([row(1, side, "4 legs", task="mc") for side in ("cf", "cs")])
    assert text_positions(closed, ["Four legs", "6 legs"]).tolist() == [OTHER_ANSWER, OTHER_ANSWER]
    assert right_texts(closed, ["4 legs", "four legs"]).tolist() == [True, False]
    with pytest.raises(UnpriorError, match="answer 'four legs' of row 1 is not one of its candidates"):
        as_answers(closed, ["4 legs", "four legs"])
    for strange in (OTHER_ANSWER, OTHER_RIGHT_ANSWER, OTHER_ORDINARY_ANSWER, 2):
        with pytest.raises(UnpriorError, match="answers are labels"):
            as_answers(closed, np.array([0, strange]))
    with pytest.raises(UnpriorError, match="answers are labels"):
        as_answers(TABLE, np.array([0, 0, OTHER_ORDINARY_ANSWER - 1, 0]))


def test_without_a_known_answer_no_text_is_right() -> None:
    table = open_table(row(1, "cf", "4 legs"), row(1, "cs", "4 legs"))
    unknown = ScoreTable(table.arrow.set_column(
        table.arrow.column_names.index("answer"), "answer", pa.nulls(2, pa.string())))  # fmt: skip
    assert right_texts(unknown, ["4 legs", "6"]).tolist() == [False, False]
    assert text_positions(unknown, ["four legs", "6"]).tolist() == [0, OTHER_ANSWER]
    with pytest.raises(UnpriorError, match="some rows have no correct answer"):
        correct(unknown, np.array([0, 0]))
