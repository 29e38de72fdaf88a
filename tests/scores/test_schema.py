from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from unprior.scores.schema import (
    REQUIRED,
    SCHEMA,
    ScoreRow,
    find_problems,
    list_offsets,
    position_in_row,
    rows_to_arrow,
)
from unprior.scores.table import describe_validation_error

ROW: dict[str, Any] = {
    "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "image_scores": [-0.3, -1.4],
    "prior_scores": [-0.1, -2.4], "original": "yes", "answer": "no",
}  # fmt: skip
NAN, INF = float("nan"), float("inf")


def columns(*rows: dict[str, Any]) -> pa.Table:
    """Columns as a Parquet file may hold them: nothing is checked yet."""
    arrays = {}
    for field in SCHEMA:
        values = [row.get(field.name) for row in rows]
        if field.name == "views":
            values = [None if value is None else list(value.items()) for value in values]
        arrays[field.name] = pa.array(values, pa.int64() if field.name == "pair_id" else field.type)
    return pa.table(arrays)


def test_row_and_columns_have_the_same_fields() -> None:
    assert list(ScoreRow.model_fields) == SCHEMA.names
    assert [name for name, field in ScoreRow.model_fields.items() if field.is_required()] == list(REQUIRED)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_field_must_be_there(name: str) -> None:
    with pytest.raises(ValidationError) as raised:
        ScoreRow.model_validate({key: value for key, value in ROW.items() if key != name})
    assert describe_validation_error(raised.value) == f"{name}: missing"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"pair_id": 1.5}, "pair_id"),
        ({"pair_id": True}, "pair_id"),
        ({"pair_id": None}, "pair_id"),
        ({"side": "CF"}, "side"),
        ({"side": "left"}, "side"),
        ({"task": "V QA"}, "task"),
        ({"candidates": "yes"}, "candidates"),
        ({"candidates": ["yes", True]}, "candidates.1"),
        ({"image_scores": ["-0.3", "-1.4"]}, "image_scores.0"),
        ({"image_scores": [-0.3, None]}, "image_scores.1"),
        ({"prior_scores": [True, False]}, "prior_scores.0"),
        ({"prior_scores": {"yes": -0.1}}, "prior_scores"),
        ({"token_counts": [1.5, 2.0]}, "token_counts.0"),
        ({"views": [[0.0, 1.0]]}, "views"),
        ({"views": {"white": [0.0, "x"]}}, "views.white.1"),
        ({"model": 3}, "model"),
        ({"split": ["dev"]}, "split"),
        ({"original": False}, "original"),
        ({"answer": False}, "answer"),
    ],
)
def test_a_wrong_type_is_refused_and_the_field_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as raised:
        ScoreRow.model_validate(ROW | change)
    assert describe_validation_error(raised.value).startswith(f"{where}: must be ")


def test_unknown_fields_are_ignored_and_integers_are_scores() -> None:
    row = ScoreRow.model_validate(ROW | {"image_scores": [0, -1], "note": "seen twice"})
    assert row.image_scores == [0.0, -1.0]
    assert not hasattr(row, "note")


PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "one candidate": (
        {"candidates": ["yes"], "image_scores": [0.0], "prior_scores": [0.0], "answer": "yes"},
        "K is 1, at least 2 candidates are needed",
    ),
    "no candidate": (
        {"candidates": [], "image_scores": [], "prior_scores": [], "original": None, "answer": None},
        "K is 0, at least 2 candidates are needed",
    ),
    "duplicate": ({"candidates": ["no", "no"], "original": None}, "candidate 'no' appears twice"),
    "duplicates not adjacent": (
        {"candidates": ["yes", "no", "yes"], "image_scores": [0.0] * 3, "prior_scores": [0.0] * 3},
        "candidate 'yes' appears twice",
    ),
    "null candidate": ({"candidates": ["yes", None], "answer": "yes"}, "a candidate is null"),
    "two null candidates": ({"candidates": [None, None], "original": None, "answer": None}, "a candidate is null"),
    "no candidates list": ({"candidates": None}, "candidates is missing"),
    "no image list": ({"image_scores": None}, "image_scores is missing"),
    "no prior list": ({"prior_scores": None}, "prior_scores is missing"),
    "no pair": ({"pair_id": None}, "pair_id is missing"),
    "no task": ({"task": None}, "task is missing"),
    "side": ({"side": "CF"}, "side is 'CF', expected cf or cs"),
    "task": ({"task": "V QA"}, "task is 'V QA', expected mc, qa or another short name of small letters and digits"),
    "image length": ({"image_scores": [0.0]}, "image_scores has 1 values for 2 candidates"),
    "prior length": ({"prior_scores": [0.0] * 3}, "prior_scores has 3 values for 2 candidates"),
    "empty image list": ({"image_scores": []}, "image_scores has 0 values for 2 candidates"),
    "token length": ({"token_counts": [1]}, "token_counts has 1 values for 2 candidates"),
    "image nan": ({"image_scores": [0.0, NAN]}, "image_scores has a value that is not a finite number"),
    "image null": ({"image_scores": [None, 0.0]}, "image_scores has a value that is not a finite number"),
    "prior infinite": ({"prior_scores": [INF, 0.0]}, "prior_scores has a value that is not a finite number"),
    "prior minus infinite": ({"prior_scores": [0.0, -INF]}, "prior_scores has a value that is not a finite number"),
    "view length": ({"views": {"white": [0.0]}}, "view white has 1 values for 2 candidates"),
    "second view length": ({"views": {"text": [0.0, 1.0], "white": []}}, "view white has 0 values for 2 candidates"),
    "view nan": ({"views": {"white": [0.0, NAN]}}, "view white has a value that is not a finite number"),
    "view null": ({"views": {"white": [0.0, None]}}, "view white has a value that is not a finite number"),
    "view without list": ({"views": {"white": None}}, "view white has 0 values for 2 candidates"),
    "original": ({"original": "maybe"}, "original 'maybe' is not one of the candidates"),
    "original by case": ({"original": "Yes"}, "original 'Yes' is not one of the candidates"),
    "answer": ({"answer": "maybe"}, "answer 'maybe' is not one of the candidates"),
    "answer missing": ({"answer": None}, "answer is missing (fitting and evaluation need it)"),
    "token null": ({"token_counts": [None, 1]}, "token_counts has a value that is missing or negative"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_every_problem_is_found_in_its_row_only(case: str) -> None:
    change, reason = PROBLEMS[case]
    found = find_problems(columns(ROW, ROW | change, ROW, ROW | change), require_answers=True)
    assert found == {1: reason, 3: reason}


def test_all_problems_together_stay_in_their_rows() -> None:
    known = PROBLEMS
    rows = [row for change, _ in known.values() for row in (ROW, ROW | change)]
    found = find_problems(columns(*rows), require_answers=True)
    assert found == {2 * index + 1: reason for index, (_, reason) in enumerate(known.values())}


def test_missing_answers_are_fine_where_they_are_not_needed() -> None:
    rows = columns(ROW | {"answer": None}, ROW | {"answer": "maybe"}, ROW)
    assert find_problems(rows, require_answers=False) == {1: "answer 'maybe' is not one of the candidates"}


def test_a_null_original_is_valid_and_a_row_has_one_reason() -> None:
    assert find_problems(columns(ROW | {"original": None}), require_answers=True) == {}
    both = ROW | {"side": "x", "candidates": ["no", "no"], "answer": "maybe"}
    assert find_problems(columns(both), require_answers=True) == {0: "side is 'x', expected cf or cs"}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([1, -5], [1, -5]),
        ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
        ([2**63, 1], [str(2**63), "1"]),
        (["a", "b"], ["a", "b"]),
        ([7, "a"], ["7", "a"]),
    ],
)
def test_pair_ids_stay_numbers_only_if_all_are(ids: list[Any], expected: list[Any]) -> None:
    rows = [ScoreRow.model_validate(ROW | {"pair_id": pair_id}) for pair_id in ids]
    assert rows_to_arrow(rows).column("pair_id").to_pylist() == expected


def test_rows_become_columns_with_everything_they_hold() -> None:
    full = ROW | {
        "model": "m", "benchmark": "b", "category": "c", "subcategory": "s", "split": "dev", "original_text": "Yes!",
        "token_counts": [1, 2], "example_id": "e", "views": {"white": [0.0, 1.0], "black": [2.0, 3.0]},
        "censored": [True, False], "form": "contrastive", "claim_order": "ordinary-first",
        "claims": ["five fingers", "six fingers"], "aliases": ["6"], "sources": ["image", "text"],
        "matched": False,
    }  # fmt: skip
    arrow = rows_to_arrow([ScoreRow.model_validate(full), ScoreRow.model_validate(ROW)])
    first, second = arrow.to_pylist()
    assert first == full | {"views": [("white", [0.0, 1.0]), ("black", [2.0, 3.0])]}
    assert second == {name: ROW.get(name) for name in SCHEMA.names}


def test_offsets_count_null_lists_as_empty_and_start_at_zero_in_a_slice() -> None:
    column = pa.array([["a"], None, ["b", "c"], [], ["d"]])
    assert list_offsets(column).tolist() == [0, 1, 1, 3, 3, 4]
    assert list_offsets(column.slice(2)).tolist() == [0, 2, 2, 3]


def test_position_compares_within_the_row_only() -> None:
    candidates = pa.array([["a", "b"], ["b", "a", "c"], ["c", "d"], None, ["x", "x"]])
    values = pa.array(["b", "c", "a", "a", "x"])
    assert position_in_row(values, candidates).tolist() == [1, 2, -2, -2, 0]
    assert position_in_row(values.slice(1, 2), candidates.slice(1, 2)).tolist() == [2, -2]
