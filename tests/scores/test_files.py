from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from score_files import FORMATS, INF, NAN, ROW, WRITERS, without, write_jsonl, write_parquet
from unprior import InvalidScoresError, ScoreTable, UnpriorError, read_scores
from unprior.scores import SCHEMA, write_scores
from unprior.scores.files import finite_or_none

# What is wrong, the reason in JSONL, and the reason in Parquet if it is another one.
INVALID: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "K=1": ({"candidates": ["no"], "image_scores": [0.0], "prior_scores": [0.0], "original": None}, "K is 1", None),
    "K=0": (
        {"candidates": [], "image_scores": [], "prior_scores": [], "original": None, "answer": None},
        "K is 0", None,
    ),
    "duplicate": ({"candidates": ["no", "no"], "original": "no"}, "candidate 'no' appears twice", None),
    "NaN": ({"image_scores": [NAN, 0.0]}, "image_scores has a value that is not a finite number", None),
    "Infinity": ({"image_scores": [0.0, INF]}, "image_scores has a value that is not a finite number", None),
    "-Infinity": ({"prior_scores": [0.0, -INF]}, "prior_scores has a value that is not a finite number", None),
    "null image": ({"image_scores": [None, 0.0]}, "image_scores.0: ", "image_scores has a value that is not a finite"),
    "null prior": ({"prior_scores": [0.0, None]}, "prior_scores.1: ", "prior_scores has a value that is not a finite"),
    "null candidate": ({"candidates": ["yes", None], "answer": "yes"}, "candidates.1: ", "a candidate is null"),
    "image length": ({"image_scores": [0.0]}, "image_scores has 1 values for 2 candidates", None),
    "prior length": ({"prior_scores": [0.0] * 3}, "prior_scores has 3 values for 2 candidates", None),
    "token length": ({"token_counts": [4, 2, 1]}, "token_counts has 3 values for 2 candidates", None),
    "view length": ({"views": {"white": [0.0]}}, "view white has 1 values for 2 candidates", None),
    "view NaN": ({"views": {"text": [0.0, 0.0], "mean": [NAN, 0.0]}}, "view mean has a value that", None),
    "view null": ({"views": {"mean": [None, 0.0]}}, "views.mean.0: ", "view mean has a value that is not a finite"),
    "answer": ({"answer": "maybe"}, "answer 'maybe' is not one of the candidates", None),
    "no answer": ({"answer": None}, "answer is missing", None),
    "original": ({"original": "maybe"}, "original 'maybe' is not one of the candidates", None),
    "side": ({"side": "Left"}, "side: must be 'cf' or 'cs'", "side is 'Left', expected cf or cs"),
    "task": ({"task": "V QA"}, "task:", "task is 'V QA', expected mc, qa or another short name"),
    "three claims": ({"claims": ["a", "b", "c"]}, "claims has 3 texts, two are needed", None),
    "no claims": ({"claims": []}, "claims has 0 texts, two are needed", None),
    "empty claim": ({"claims": ["a", " "]}, "a claim is empty", None),
    "null claim": ({"claims": [None, "a"]}, "claims.0: ", "a claim is empty"),
    "same claims": ({"claims": ["a", "a"]}, "both claims are 'a'", None),
    "claims of letters": (
        {"claims": ["a", "b"], "candidates": ["A", "B"], "original": "A", "answer": "B"},
        "claims are for the candidates yes and no, in this order, not ['A', 'B']", None,
    ),
    "claims of no and yes": (
        {"claims": ["a", "b"], "candidates": ["no", "yes"]}, "claims are for the candidates yes and no", None,
    ),
    "null pair": ({"pair_id": None}, "pair_id: ", "pair_id is missing"),
    "null candidates": ({"candidates": None}, "candidates: ", "candidates is missing"),
    "null scores": ({"prior_scores": None}, "prior_scores: ", "prior_scores is missing"),
}  # fmt: skip

INVALID_LINES: dict[str, tuple[dict[str, Any] | str | bytes, str]] = {
    "text as score": (ROW | {"image_scores": ["a", "b"]}, "image_scores.0: must be a number"),
    "boolean as score": (ROW | {"image_scores": [True, False]}, "image_scores.0: must be a number"),
    "text as candidates": (ROW | {"candidates": "yes"}, "candidates: must be a list"),
    "number as side": (ROW | {"side": 1}, "side: must be 'cf' or 'cs'"),
    "fraction as pair": (ROW | {"pair_id": 1.5}, "pair_id: must be"),
    "fraction as token count": (ROW | {"token_counts": [1, 1.5]}, "token_counts.1: must be a whole number"),
    "number as model": (ROW | {"model": 7}, "model: must be text"),
    "no original": (without("original"), "original: missing"),
    "no pair": (without("pair_id"), "pair_id: missing"),
    "no scores": (without("image_scores"), "image_scores: missing"),
    "empty object": ("{}", "missing"),
    "overflowing score": (json.dumps(ROW).replace("-0.3", "-1e999"), "image_scores has a value that is not a finite"),
    "huge integer score": (ROW | {"image_scores": [10**400, 0]}, "image_scores.0: must be a number"),
    "cut": (json.dumps(ROW)[:40], "not a JSON object (Invalid control character at"),
    "two objects": (json.dumps(ROW) * 2, "not a JSON object (Extra data at column"),
    "single quotes": (str(ROW), "not a JSON object (Expecting property name"),
    "list": ("[1, 2]", "not a JSON object but list"),
    "number": ("3", "not a JSON object but int"),
    "null": ("null", "not a JSON object but NoneType"),
    "not UTF-8": (b'{"model": "caf\xe9"}', "'utf-8' codec can't decode byte 0xe9"),
    "huge token count": (ROW | {"token_counts": [2**70, 1]}, "token_counts"),
    "lone surrogate": (ROW | {"candidates": ["no", "\ud800"], "original": None}, "candidates"),
    "deep nesting": ("[" * 100_000, "not a JSON object"),
    "number of 5000 digits": ('{"pair_id": ' + "1" * 5000 + "}", "not a JSON object"),
}


def assert_one_problem(path: Path, line: int, reason: str) -> None:
    with pytest.raises(InvalidScoresError) as raised:
        read_scores(path)
    (problem,) = raised.value.problems
    assert problem.line == line
    assert reason in problem.reason
    assert str(raised.value).startswith(f"{path}: 1 of 3 rows is invalid\n  line {line}: ")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_row_is_refused_with_file_line_and_reason(tmp_path: Path, case: str, kind: str) -> None:
    change, in_jsonl, in_parquet = INVALID[case]
    path = WRITERS[kind](tmp_path / f"scores.{kind}", ROW, ROW | change, ROW)
    assert_one_problem(path, 2, in_parquet or in_jsonl if kind == "parquet" else in_jsonl)


@pytest.mark.parametrize("case", INVALID_LINES)
def test_an_invalid_line_is_refused_with_file_line_and_reason(tmp_path: Path, case: str) -> None:
    line, reason = INVALID_LINES[case]
    assert_one_problem(write_jsonl(tmp_path / "scores.jsonl", ROW, ROW, line), 3, reason)


@pytest.mark.parametrize("kind", FORMATS)
def test_skip_invalid_lists_exactly_the_invalid_rows(tmp_path: Path, kind: str) -> None:
    rows: list[Any] = []
    for index, (change, _, _) in enumerate(INVALID.values()):
        rows += [ROW | {"pair_id": index}, ROW | {"pair_id": 1000 + index} | change]
    path = WRITERS[kind](tmp_path / f"scores.{kind}", *rows)
    table = read_scores(path, skip_invalid=True)
    assert table.column("pair_id") == list(range(len(INVALID)))
    assert [problem.line for problem in table.skipped] == list(range(2, 2 * len(INVALID) + 1, 2))
    for problem, (_, in_jsonl, in_parquet) in zip(table.skipped, INVALID.values(), strict=True):
        assert (in_parquet or in_jsonl if kind == "parquet" else in_jsonl) in problem.reason
    with pytest.raises(InvalidScoresError) as raised:
        read_scores(path)
    assert raised.value.problems == table.skipped


def test_skip_invalid_lists_broken_lines_too(tmp_path: Path) -> None:
    lines = [line for line, _ in INVALID_LINES.values()]
    path = write_jsonl(tmp_path / "scores.jsonl", *(part for line in lines for part in (line, ROW)))
    table = read_scores(path, skip_invalid=True)
    assert len(table) == len(lines)
    assert [problem.line for problem in table.skipped] == list(range(1, 2 * len(lines), 2))


def test_blank_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "scores.jsonl", "", ROW, "  \t", ROW | {"side": "x"}, "", "broken", ROW)
    table = read_scores(path, skip_invalid=True)
    assert len(table) == 2
    assert [problem.line for problem in table.skipped] == [4, 6]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROW),
        json.dumps(ROW) + "\r\n" + json.dumps(ROW) + "\r\n",
        "\ufeff" + json.dumps(ROW) + "\n",
        json.dumps(ROW | {"original_text": "a\u2028b\u0085c"}, ensure_ascii=False) + "\n",
    ],
    ids=["no final newline", "carriage returns", "byte order mark", "unicode line separators"],
)
def test_harmless_variants_of_jsonl(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_bytes(text.encode())
    assert set(read_scores(path).column("answer")) == {"no"}


def test_answers_may_be_missing_where_they_are_not_needed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "scores.jsonl", ROW, without("answer"), ROW | {"answer": None})
    assert read_scores(path, require_answers=False).answer_positions.tolist() == [1, -1, -1]
    assert [problem.line for problem in read_scores(path, skip_invalid=True).skipped] == [2, 3]
    write_jsonl(path, ROW | {"answer": "maybe"})
    with pytest.raises(InvalidScoresError, match="answer 'maybe' is not one of the candidates"):
        read_scores(path, require_answers=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows; there is nothing to work on"),
        (b"\n \n", "no rows; there is nothing to work on"),
        (b"PAR1", "Parquet file cannot be read, it may be truncated"),
        (b"PAR1" + b"x" * 100, "Parquet file cannot be read, it may be truncated"),
    ],
)
def test_a_file_with_nothing_in_it(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_bytes(content)
    with pytest.raises(UnpriorError, match=message) as raised:
        read_scores(path)
    assert str(path) in str(raised.value)


def test_a_parquet_file_without_rows(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="no rows; there is nothing to work on"):
        read_scores(write_parquet(tmp_path / "scores.parquet"))


def test_only_invalid_rows(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "scores.jsonl", "{}", ROW | {"side": "x"})
    with pytest.raises(UnpriorError, match="no valid rows; there is nothing to work on"):
        read_scores(path, skip_invalid=True)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_a_truncated_parquet_file(tmp_path: Path, share: float) -> None:
    path = write_parquet(tmp_path / "scores.parquet", *[ROW] * 50)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(UnpriorError, match=r"scores\.parquet: the Parquet file cannot be read, it may be truncated"):
        read_scores(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"nothing\.jsonl: no such file; check the path"):
        read_scores(tmp_path / "nothing.jsonl")
    with pytest.raises(UnpriorError, match="this is a folder, a file is needed"):
        read_scores(str(tmp_path))
    with pytest.raises(UnpriorError, match="cannot be read"):
        read_scores(write_jsonl(tmp_path / "scores.jsonl", ROW) / "below")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_file_that_opens_but_cannot_be_read() -> None:
    with pytest.raises(UnpriorError, match="/proc/self/mem: cannot be read"):
        read_scores("/proc/self/mem")


def test_a_pipe_loses_nothing(tmp_path: Path) -> None:
    content = write_jsonl(tmp_path / "scores.jsonl", *[ROW] * 20).read_bytes()
    reader, writer = os.pipe()
    os.write(writer, content)  # fits the pipe's buffer
    os.close(writer)
    try:
        assert len(read_scores(f"/dev/fd/{reader}", skip_invalid=True)) == 20
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("image_scores", "a", pa.string()),
        ("candidates", "yes", pa.string()),
        ("views", {"white": [0.0, 1.0]}, pa.struct([("white", pa.list_(pa.float64()))])),
        ("token_counts", [1.5, 2.0], pa.list_(pa.float64())),
        ("prior_scores", ["a", "b"], pa.list_(pa.string())),
        ("original_text", b"\xff", pa.binary()),
        ("pair_id", 2**63 + 5, pa.uint64()),
        ("pair_id", True, pa.bool_()),
        ("pair_id", 0, pa.timestamp("s")),
        ("pair_id", 1.5, pa.float64()),
    ],
)
def test_a_parquet_column_of_a_wrong_type(tmp_path: Path, name: str, value: Any, kind: pa.DataType) -> None:
    path = write_parquet(tmp_path / "scores.parquet", ROW | {name: value}, types={name: kind})
    with pytest.raises(UnpriorError, match=rf"scores\.parquet: column {name} is "):
        read_scores(path)


@pytest.mark.parametrize(
    "types",
    [
        {"candidates": pa.large_list(pa.large_string()), "side": pa.large_string()},
        {"candidates": pa.list_(pa.string(), 2), "image_scores": pa.list_(pa.float64(), 2)},
        {"side": pa.dictionary(pa.int32(), pa.string()), "original": pa.dictionary(pa.int8(), pa.string())},
        {"pair_id": pa.int32(), "views": pa.null(), "model": pa.null(), "token_counts": pa.list_(pa.int32())},
        {"pair_id": pa.uint8()},
    ],
)
def test_other_writers_of_parquet_choose_other_types(tmp_path: Path, types: dict[str, pa.DataType]) -> None:
    rows = [ROW | {"token_counts": [1, 2]}, ROW | {"pair_id": 2, "original": None}]
    expected = ScoreTable.from_rows(rows).arrow
    assert read_scores(write_parquet(tmp_path / "scores.parquet", *rows, types=types)).arrow.equals(expected)


def test_parquet_columns_in_any_order_some_absent_some_strange(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    columns = {name: pa.array([value]) for name, value in reversed(ROW.items()) if name != "answer"}
    pq.write_table(pa.table(columns | {"note": pa.array(["x"])}), path)
    table = read_scores(path, require_answers=False)
    assert table.arrow.schema.names == SCHEMA.names
    assert table.arrow.to_pylist() == [{name: without("answer").get(name) for name in SCHEMA.names}]
    with pytest.raises(InvalidScoresError, match="line 1: answer is missing"):
        read_scores(path)


def test_absent_parquet_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"pair_id": [1], "side": ["cf"], "task": ["qa"], "original": ["x"]}), path)
    with pytest.raises(UnpriorError, match="no column candidates, image_scores, prior_scores; a score table needs"):
        read_scores(path)


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0.0), (-1.5, -1.5), (NAN, None), (INF, None), (-INF, None)])
def test_finite_or_none(value: float, expected: float | None) -> None:
    assert finite_or_none(value) == expected


@pytest.mark.parametrize("ending", FORMATS)
def test_marks_of_bounds_come_back_and_old_files_have_none(tmp_path: Path, ending: str) -> None:
    marked = ROW | {"censored": [False, True]}
    write_scores(ScoreTable.from_rows([marked, ROW, ROW | {"censored": [False, False]}]), tmp_path / f"new.{ending}")
    table = read_scores(tmp_path / f"new.{ending}")
    assert table.column("censored") == [[False, True], None, [False, False]]
    assert table.is_bounded.tolist() == [True, False, False]
    old = table.arrow.drop_columns("censored")
    pq.write_table(old, tmp_path / "old.parquet")
    assert read_scores(tmp_path / "old.parquet").is_bounded.tolist() == [False] * 3


@pytest.mark.parametrize(
    ("marks", "reason"),
    [([True], "censored has 1 values for 2 candidates"), ([True, None], "censored")],
)
def test_wrong_marks_of_bounds_are_refused(tmp_path: Path, marks: list[Any], reason: str) -> None:
    for path in (
        write_jsonl(tmp_path / "scores.jsonl", ROW | {"censored": marks}),
        write_parquet(tmp_path / "scores.parquet", ROW | {"censored": marks}),
    ):
        with pytest.raises(InvalidScoresError, match=reason):
            read_scores(path)


@pytest.mark.parametrize("name", ["model", "answer", "candidates"])
def test_text_that_is_not_utf8_is_refused(tmp_path: Path, name: str) -> None:
    path = write_parquet(tmp_path / "scores.parquet", ROW)
    table = pq.read_table(path)
    # Arrow does not look at text that it takes over from elsewhere.
    ends = np.array([0, 2], dtype=np.int32)
    damaged = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(b"\xff\xfe")])
    if name == "candidates":
        damaged = pa.ListArray.from_arrays([0, 2], pa.concat_arrays([damaged, pa.array(["no"])]))
    one = table.set_column(table.column_names.index(name), name, pa.chunked_array([damaged]))
    pq.write_table(one, path)
    with pytest.raises(UnpriorError, match="UTF"):
        read_scores(path)
    with pytest.raises(UnpriorError, match=f"column {name} is not whole or not UTF-8"):
        ScoreTable.from_arrow(one)


def test_numbers_are_answers_as_they_are_written(tmp_path: Path) -> None:
    row = ROW | {"candidates": [4, "5"], "original": 4, "answer": 5, "example_id": 7}
    table = read_scores(write_jsonl(tmp_path / "scores.jsonl", row))
    assert (table.column("candidates"), table.column("answer")) == ([["4", "5"]], ["5"])
    assert (table.original_positions.tolist(), table.answer_positions.tolist()) == ([0], [1])


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are those of POSIX")
def test_parquet_from_a_pipe_is_explained(tmp_path: Path) -> None:
    content = write_parquet(tmp_path / "scores.parquet", ROW).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeding = threading.Thread(target=pipe.write_bytes, args=(content,))
    feeding.start()
    with pytest.raises(UnpriorError, match="which a pipe does not have; give the file itself"):
        read_scores(pipe)
    feeding.join()
