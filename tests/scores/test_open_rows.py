"""Open questions in score tables: written forms are merged on the way in, and the right answer may be missing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unprior import InvalidScoresError, ScoreTable, read_scores, synthesize
from unprior.answer_forms import normalize_answer
from unprior.scores.judge import judge_answers
from unprior.scores.open_rows import merge_forms
from unprior.scores.pairs import check_pairs, table_pairs, warnings_about
from unprior.scores.table import concatenate

FORMS = (
    ("six", "6", "Six."),
    ("five", "The 5", "FIVE"),
    ("a red one", "red one", "Red, one!"),
    ("blue", "blue ", "Blue"),
)


def row(**changes: Any) -> dict[str, Any]:
    base = {
        "pair_id": 1, "side": "cf", "task": "open", "candidates": ["five", "six", "seven"], "original": "five",
        "image_scores": [-0.5, -1.0, -3.0], "prior_scores": [-0.1, -4.0, -5.0], "answer": "six",
    }  # fmt: skip
    return base | changes


def table(*rows: dict[str, Any], **options: Any) -> ScoreTable:
    return ScoreTable.from_rows(rows, **options)


def test_forms_of_one_answer_become_one_candidate_with_all_that_belongs_to_it() -> None:
    merged = table(
        row(
            candidates=["Five", "six", " 5.", "seven"],
            image_scores=[-2.0, -1.0, -0.5, -3.0],
            prior_scores=[-0.1, -4.0, -1.0, -5.0],
            views={"white": [-1.0, -2.0, -3.0, -4.0]},
            token_counts=[1, 2, 3, 4],
            censored=[True, False, False, False],
            original="Five",
            answer="SIX",
        )
    ).arrow.to_pylist()[0]

    def both(first: float, second: float) -> float:
        return float(np.logaddexp(first, second))

    assert merged["candidates"] == ["5.", "six", "seven"]
    assert merged["image_scores"] == pytest.approx([both(-2.0, -0.5), -1.0, -3.0], rel=1e-15)
    assert merged["prior_scores"] == pytest.approx([both(-0.1, -1.0), -4.0, -5.0], rel=1e-15)
    assert dict(merged["views"])["white"] == pytest.approx([both(-1.0, -3.0), -2.0, -4.0], rel=1e-15)
    assert (merged["token_counts"], merged["censored"]) == ([3, 2, 4], [True, False, False])
    assert (merged["original"], merged["answer"]) == ("5.", "six")


def test_of_equal_image_scores_the_first_form_stays() -> None:
    merged = merge_forms(["6", "six", "Six"], [-1.0, -1.0, -2.0])
    assert (merged.labels, merged.chosen, merged.members) == (["6"], [0], [[0, 1, 2]])


def test_one_text_that_stands_there_twice_counts_once() -> None:
    merged = merge_forms(["six", "five", "six"], [-1.0, -2.0, -0.5], [-3.0, -1.0, -4.0])
    assert merged.labels == ["six", "five"]
    assert merged.scores == [[-0.5, -2.0], [-4.0, -1.0]]


names = st.lists(st.sampled_from([form for forms in FORMS for form in forms]), min_size=1, max_size=8)


@given(names, st.data())
def test_merging_is_the_sum_of_probabilities_and_can_be_repeated(texts: list[str], data: st.DataObject) -> None:
    values = st.lists(st.floats(-50, 0), min_size=len(texts), max_size=len(texts))
    image, prior = data.draw(values), data.draw(values)
    once = merge_forms(texts, image, prior)
    totals: dict[str, dict[str, tuple[float, float]]] = {}
    for text, first, second in zip(texts, image, prior, strict=True):
        of_text = totals.setdefault(normalize_answer(text), {})
        if text not in of_text or first > of_text[text][0]:
            of_text[text] = (first, second)
    for label, first, second in zip(once.labels, *once.scores, strict=True):
        members = totals.pop(normalize_answer(label)).values()
        assert math.exp(first) == pytest.approx(sum(math.exp(each) for each, _ in members), rel=1e-12)
        assert math.exp(second) == pytest.approx(sum(math.exp(each) for _, each in members), rel=1e-12)
    assert not totals
    again = merge_forms(once.labels, *once.scores)
    assert (again.labels, again.scores) == (once.labels, once.scores)
    order = data.draw(st.permutations(range(len(texts))))
    other = merge_forms(*([each[place] for place in order] for each in (texts, image, prior)))
    assert sorted(other.scores[0]) == sorted(once.scores[0])


def test_a_merged_table_is_merged_already() -> None:
    merged = synthesize(seed=2, open_questions=True)
    assert any(normalize_answer(text) != text for texts in merged.column("candidates") for text in texts)
    assert ScoreTable.from_arrow(merged.arrow).arrow.equals(merged.arrow)


def test_rows_with_options_stay_as_they_are() -> None:
    closed = synthesize(seed=3)
    mixed = synthesize(seed=3, open_questions=True)
    assert mixed.take(~mixed.is_open).arrow.equals(closed.arrow)
    # What forms of one answer would be are different options there.
    given = row(task="mc", candidates=["six", "6"], image_scores=[0, -1], prior_scores=[0, -1], original="6")
    assert table(given).column("candidates") == [["six", "6"]]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_files_hold_open_rows(tmp_path: Path, suffix: str) -> None:
    written = concatenate([table(row(aliases=["6 fingers"], answer="half a dozen")), table(row(task="mc"))])
    path = tmp_path / f"scores.{suffix}"
    written.write(path)
    read = read_scores(path)
    assert read.arrow.equals(written.arrow)
    assert read.answer_positions.tolist() == [-2, 1]
    if suffix == "jsonl":
        assert "aliases" not in path.read_text().splitlines()[1]


def test_data_frames_hold_open_rows() -> None:
    written = table(row(aliases=["6"]), row(side="cs", answer="five"))
    assert ScoreTable.from_pandas(written.to_pandas()).arrow.equals(written.arrow)


def test_the_answer_may_be_missing_from_the_candidates() -> None:
    found = table(row(answer="nine"), row(answer="6."), row(answer=None, side="cs"), require_answers=False)
    assert found.answer_positions.tolist() == [-2, 1, -1]
    assert found.is_labelled.tolist() == [True, True, False]
    assert found.is_covered.tolist() == [False, True, False]
    assert found.is_right(np.array([-2, 1, -1])).tolist() == [False, True, False]


def test_several_candidates_may_be_right_and_the_answer_is_the_one_that_the_image_supports() -> None:
    found = table(row(candidates=["pup", "cat", "dog"], original="cat", answer="dog", aliases=["puppy", "Pup"]))
    assert found.answer.tolist() == ["pup"]
    assert found.column("aliases") == [["puppy", "Pup", "dog"]]
    rights = [bool(found.is_right(np.array([position]))[0]) for position in (-1, 0, 1, 2)]
    assert rights == [False, True, False, True]
    assert found.is_right(np.array([2]), np.array([0])).tolist() == [True]
    assert ScoreTable.from_arrow(found.arrow).arrow.equals(found.arrow)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"candidates": [], "image_scores": [], "prior_scores": [], "original": None},
            "at least 1 candidate is needed",
        ),
        ({"candidates": ["five", " ", "six"]}, "a candidate is empty"),
        ({"original": "nine"}, "original 'nine' is no form of any candidate"),
        ({"aliases": [""]}, "an alias is empty"),
        ({"aliases": ["6"], "answer": None}, "there are aliases but no answer"),
        ({"aliases": ["6"], "task": "mc"}, "aliases are for open questions, those of task open"),
        ({"image_scores": [-0.5, -1.0]}, "image_scores has 2 values for 3 candidates"),
    ],
)
def test_rows_that_cannot_be_are_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidScoresError, match=reason) as error:
        table(row(side="cs"), row(**changes), require_answers=False)
    assert [problem.line for problem in error.value.problems] == [2]


def test_one_candidate_and_no_original_answer_are_enough() -> None:
    found = table(row(candidates=["six"], image_scores=[-1], prior_scores=[-2], original=None))
    assert (found.candidate_counts.tolist(), found.original_positions.tolist()) == ([1], [-1])


def test_the_two_sides_of_a_pair_have_candidates_of_their_own() -> None:
    both = table(row(), row(side="cs", candidates=["four", "5", "six"], original="5", answer="5"))
    assert not check_pairs(table_pairs(both)).problems
    closed = table(row(task="mc"), row(task="mc", side="cs", candidates=["four", "five", "six"]))
    assert check_pairs(table_pairs(closed)).problems


def test_nobody_guesses_among_proposed_answers() -> None:
    rows = [row(pair_id=pair, side=side, answer="seven") for pair in range(40) for side in ("cf", "cs")]
    assert warnings_about(table(*rows)) == []
    assert "no better than guessing" in warnings_about(table(*(each | {"task": "mc"} for each in rows)))[0]


def test_a_judge_accepts_more() -> None:
    before = table(row(candidates=["crimson", "green"], image_scores=[-1, -2], prior_scores=[-1, -2],
                       original="green", answer="red"), row(task="mc"))  # fmt: skip
    asked = []

    def judge(given: str, right: str, aliases: tuple[str, ...], question: str | None) -> bool:
        asked.append((given, right, aliases, question))
        return given == "crimson"

    after = judge_answers(before, judge)
    assert asked == [("crimson", "red", (), None), ("green", "red", (), None)]
    assert before.is_covered.tolist() == [False, True]
    assert after.is_covered.tolist() == [True, True]
    assert after.answer.tolist() == ["crimson", "six"]
    assert after.is_right(np.array([0, 1])).tolist() == [True, True]


@settings(max_examples=25)
@given(st.permutations(range(5)))
def test_the_order_of_candidates_does_not_name_the_answer(order: list[int]) -> None:
    names, image = ["dog", "pup", "cat", "Dog!", "hound"], [-3.0, -1.5, -0.5, -2.0, -1.75]
    shuffled = row(
        candidates=[names[place] for place in order], image_scores=[image[place] for place in order],
        prior_scores=[image[place] for place in order], original="cat", answer="hound", aliases=["dog", "pup"],
    )  # fmt: skip
    assert table(shuffled).answer.tolist() == ["pup"]
