from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unprior import InvalidScoresError, ScoreTable, UnpriorError
from unprior.errors import RowProblem
from unprior.scores.table import concatenate

NAMES = "abcdef"


def row(pair: int | str = 1, count: int = 2, **changes: Any) -> dict[str, Any]:
    """A valid row whose scores tell which row and candidate they belong to."""
    start = 10.0 * (pair if isinstance(pair, int) else 0)
    base = {
        "pair_id": pair, "side": "cf", "task": "qa", "candidates": list(NAMES[:count]), "original": "a", "answer": "b",
        "image_scores": [start + index for index in range(count)],
        "prior_scores": [-start - index for index in range(count)],
    }  # fmt: skip
    return base | changes


def rows_of(counts: list[int]) -> ScoreTable:
    return ScoreTable.from_rows(
        [row(pair, count, original=None if pair % 3 == 0 else NAMES[pair % count]) for pair, count in enumerate(counts)]
    )


@given(st.lists(st.integers(2, 5), min_size=1, max_size=40), st.integers(1, 7))
def test_blocks_hold_every_row_once_with_its_own_scores(counts: list[int], limit: int) -> None:
    table = rows_of(counts)
    seen = []
    for block in table.blocks(limit):
        assert 1 <= len(block.rows) <= limit
        assert block.image.shape == block.prior.shape == (block.candidate_count, len(block.rows))
        for place, index in enumerate(block.rows.tolist()):
            source = table.arrow.slice(index, 1).to_pylist()[0]
            assert block.candidate_count == counts[index]
            assert block.image[:, place].tolist() == source["image_scores"]
            assert block.prior[:, place].tolist() == source["prior_scores"]
            assert block.original[place] == (-1 if index % 3 == 0 else index % counts[index])
            assert block.answer[place] == 1
        seen += block.rows.tolist()
    assert sorted(seen) == list(range(len(counts)))


def test_blocks_are_as_large_as_allowed() -> None:
    table = rows_of([2, 3] * 10)
    assert [(block.candidate_count, len(block.rows)) for block in table.blocks(4)] == [
        (2, 4), (2, 4), (2, 2), (3, 4), (3, 4), (3, 2),
    ]  # fmt: skip
    assert [block.rows.tolist() for block in table.blocks()] == [list(range(0, 20, 2)), list(range(1, 20, 2))]


def test_numpy_views_of_a_mixed_table() -> None:
    table = ScoreTable.from_rows([row(1, 3, original=None), row(2, 2, side="cs", original="b", answer="a")])
    assert table.candidate_counts.tolist() == [3, 2]
    assert table.offsets.tolist() == [0, 3, 5]
    assert table.image_scores.tolist() == [10.0, 11.0, 12.0, 20.0, 21.0]
    assert table.prior_scores.tolist() == [-10.0, -11.0, -12.0, -20.0, -21.0]
    assert table.original_positions.tolist() == [-1, 1]
    assert table.answer_positions.tolist() == [1, 0]
    assert table.is_cf.tolist() == [True, False]
    assert table.candidate_names(np.array([2, -1])) == ["c", None]
    assert repr(table) == "ScoreTable(2 rows, K in {2, 3})"


@pytest.mark.parametrize(
    ("chosen", "pairs"),
    [
        (np.array([3, 0]), [3, 0]),
        (np.array([1, 1]), [1, 1]),
        (np.array([False, True, False, True]), [1, 3]),
        (np.array([], dtype=np.int64), []),
    ],
)
def test_take_keeps_scores_with_their_rows(chosen: np.ndarray, pairs: list[int]) -> None:
    table = rows_of([2, 3, 4, 2]).take(chosen)
    assert table.column("pair_id") == pairs
    assert [table.image_scores[start] for start in table.offsets[:-1]] == [10.0 * pair for pair in pairs]
    assert table.original_positions.tolist() == [[-1, 1, 2, -1][pair] for pair in pairs]


def test_a_slice_of_columns_is_a_table_of_its_own() -> None:
    arrow = rows_of([2, 3, 4, 2, 3]).arrow
    sliced = ScoreTable.from_arrow(pa.concat_tables([arrow.slice(3, 2), arrow.slice(1, 1)]))
    assert sliced.column("pair_id") == [3, 4, 1]
    assert sliced.offsets.tolist() == [0, 2, 5, 8]
    assert sliced.image_scores.tolist() == [30.0, 31.0, 40.0, 41.0, 42.0, 10.0, 11.0, 12.0]
    assert sliced.original_positions.tolist() == [-1, 1, 1]


SPLITS = [row(1, split="dev"), row(2, split="test", side="cs"), row(3), row(4, split="dev", side="cs", model="m")]


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        ({"split": "dev"}, [1, 4]),
        ({"split": "dev", "side": "cs"}, [4]),
        ({"split": None}, [1, 2, 3, 4]),
        ({"model": "m"}, [4]),
        ({"pair_id": 2}, [2]),
        ({}, [1, 2, 3, 4]),
    ],
)
def test_where_and_mask_choose_the_same_rows(values: dict[str, Any], pairs: list[int]) -> None:
    table = ScoreTable.from_rows(SPLITS)
    assert table.where(**values).column("pair_id") == pairs
    assert (np.flatnonzero(table.mask(**values)) + 1).tolist() == pairs


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"split": "val"}, r"no row has split 'val'; in this table split is one of: dev, test\..*--split all"),
        ({"model": "n"}, r"no row has model 'n'; in this table model is one of: m\.$"),
        ({"benchmark": "x"}, r"no row has benchmark 'x'; in this table benchmark is not set in any row\.$"),
        ({"model": "m", "split": "test"}, r"no row has model 'm' and split 'test'"),
    ],
)
def test_no_such_row_says_what_there_is(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        ScoreTable.from_rows(SPLITS).where(**values)


def test_a_long_list_of_values_is_cut() -> None:
    table = ScoreTable.from_rows([row(index, split=f"fold{index}") for index in range(9)])
    with pytest.raises(UnpriorError, match=r"fold0, fold1, .*, fold7, …"):
        table.mask(split="dev")


def test_a_value_that_cannot_be_in_the_column_is_a_clear_error() -> None:
    with pytest.raises(UnpriorError, match="no row has pair_id 'one'"):
        ScoreTable.from_rows([row()]).mask(pair_id="one")


def test_codes_number_the_groups() -> None:
    table = ScoreTable.from_rows(SPLITS)
    code, labels = table.codes("split", "side")
    assert [labels[number] for number in code] == [("dev", "cf"), ("test", "cs"), (None, "cf"), ("dev", "cs")]
    assert sorted(set(code.tolist())) == list(range(len(labels)))
    code, labels = table.codes("side")
    assert [labels[number] for number in code] == [("cf",), ("cs",), ("cf",), ("cs",)]
    assert len(labels) == 2
    assert table.codes()[1] == [()]


def test_with_columns_sets_every_row_and_leaves_the_source_alone() -> None:
    table = ScoreTable.from_rows(SPLITS)
    changed = table.with_columns(split="dev", model="other")
    assert changed.column("split") == ["dev"] * 4
    assert changed.column("model") == ["other"] * 4
    assert changed.column("pair_id") == [1, 2, 3, 4]
    assert table.column("split") == ["dev", "test", None, "dev"]


def test_with_columns_remembers_what_was_skipped() -> None:
    problem = RowProblem(2, "K is 1")
    table = ScoreTable(ScoreTable.from_rows(SPLITS).arrow, skipped=(problem,))
    assert table.with_columns(split="dev").skipped == (problem,)


def test_concatenate_keeps_order_and_skipped_rows() -> None:
    first = ScoreTable(rows_of([2, 3]).arrow, skipped=(RowProblem(3, "x"),))
    second = ScoreTable(rows_of([4]).arrow, skipped=(RowProblem(1, "y"),))
    merged = concatenate([first, second])
    assert merged.column("pair_id") == [0, 1, 0]
    assert merged.candidate_counts.tolist() == [2, 3, 4]
    assert merged.image_scores.tolist() == [0.0, 1.0, 10.0, 11.0, 12.0, 0.0, 1.0, 2.0, 3.0]
    assert merged.skipped == (RowProblem(3, "x"), RowProblem(1, "y"))


def test_concatenate_makes_mixed_pair_ids_text() -> None:
    merged = concatenate([ScoreTable.from_rows([row(7)]), ScoreTable.from_rows([row("x7", 3)])])
    assert merged.column("pair_id") == ["7", "x7"]
    assert merged.arrow.schema.names == ScoreTable.from_rows([row()]).arrow.schema.names


def test_from_rows_names_every_bad_row() -> None:
    with pytest.raises(InvalidScoresError) as raised:
        ScoreTable.from_rows([row(), row(side="x"), row(), row(task=None)])
    assert [problem.line for problem in raised.value.problems] == [2, 4]
    assert [problem.reason.split(":")[0] for problem in raised.value.problems] == ["side", "task"]
    with pytest.raises(InvalidScoresError) as raised:
        ScoreTable.from_rows([row(), row(answer="z"), row(count=1, answer="a")])
    assert [str(problem) for problem in raised.value.problems] == [
        "line 2: answer 'z' is not one of the candidates",
        "line 3: K is 1, at least 2 candidates are needed",
    ]


def test_from_rows_names_bad_types_and_bad_values_together() -> None:
    with pytest.raises(InvalidScoresError) as raised:
        ScoreTable.from_rows([row(), row(side="x"), row(answer="z")])
    assert [problem.line for problem in raised.value.problems] == [2, 3]


def test_from_rows_without_rows_or_answers() -> None:
    with pytest.raises(UnpriorError, match="no rows"):
        ScoreTable.from_rows([])
    with pytest.raises(InvalidScoresError, match="answer is missing"):
        ScoreTable.from_rows([row(answer=None)])
    assert ScoreTable.from_rows([row(answer=None)], require_answers=False).answer_positions.tolist() == [-1]


def test_a_long_list_of_problems_is_cut_but_complete_in_the_error() -> None:
    with pytest.raises(InvalidScoresError) as raised:
        ScoreTable.from_rows([row(answer="z")] * 60)
    assert len(raised.value.problems) == 60
    assert str(raised.value).startswith("rows: 60 of 60 rows are invalid\n  lines 1, 2, 3, 4, 5, 6, 7, 8 and 52 more: ")
    assert "--skip-invalid" in str(raised.value)
