from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.evaluation.answers import read_final_answers

ROW: dict[str, Any] = {
    "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "image_scores": [-0.3, -1.4],
    "prior_scores": [-0.1, -2.4], "original": "yes", "answer": "no",
}  # fmt: skip
TABLE = ScoreTable.from_rows(
    [
        ROW,
        ROW | {"side": "cs", "original": None},
        ROW | {"pair_id": 2, "task": "mc", "candidates": ["é", "b", "c"], "original": "b", "answer": "c"}
        | {name: [0.0, -1.0, -2.0] for name in ("image_scores", "prior_scores")},
    ]
)  # fmt: skip
DECISIONS: list[dict[str, Any]] = [
    {"pair_id": 1, "side": "cf", "task": "qa", "original": "yes", "final": "no"},
    {"pair_id": 1, "side": "cs", "task": "qa", "original": None, "final": None},
    {"pair_id": 2, "side": "cf", "task": "mc", "original": "b", "final": "é"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def changed(index: int, **values: Any) -> list[dict[str, Any]]:
    return [row | values if index == place else row for place, row in enumerate(DECISIONS)]


@pytest.fixture(params=["jsonl", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"decisions.{request.param}"


def test_final_answers_become_candidate_positions(path: Path) -> None:
    positions = read_final_answers(str(write(path, DECISIONS)), TABLE)
    assert positions.dtype == np.int64
    assert positions.tolist() == [1, -1, 0]


def test_other_columns_and_their_order_do_not_matter(path: Path) -> None:
    rows = [{"note": "x", **dict(reversed(row.items())), "revised": True} for row in DECISIONS]
    assert read_final_answers(write(path, rows), TABLE).tolist() == [1, -1, 0]


@pytest.mark.parametrize("uncertainty", [False, True])
def test_written_decisions_come_back(path: Path, uncertainty: bool) -> None:
    table = synthesize(seed=4)
    decisions = SelectivePriorCalibrator(uncertainty=uncertainty).fit(table).predict(table)
    decisions.write(path, explanations=True)
    np.testing.assert_array_equal(read_final_answers(path, table), decisions.final_positions)
    assert (decisions.final_positions != table.original_positions).any()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (DECISIONS[:2], r": 2 decisions for 3 rows of the score table\. .*run `unprior apply` on this table again"),
        (DECISIONS + DECISIONS[:1], ": 4 decisions for 3 rows of the score table"),
        (changed(1, pair_id=5), r", line 2: pair_id is 5, but row 2 of the score table has 1\. .*unprior apply"),
        (changed(0, side="cs"), ", line 1: side is 'cs', but row 1 of the score table has 'cf'"),
        (changed(2, task="qa"), ", line 3: task is 'qa', but row 3 of the score table has 'mc'"),
        (changed(1, original="no"), ", line 2: original is 'no', but row 2 of the score table has None"),
        (changed(0, original=None), ", line 1: original is None, but row 1 of the score table has 'yes'"),
        (changed(2, final="z"), ", line 3: final answer 'z' is not one of the candidates"),
        (changed(0, final="NO"), ", line 1: final answer 'NO' is not one of the candidates"),
        ([{**row, "final": index} for index, row in enumerate(DECISIONS)], ": every final answer must be a candidate"),
    ],
)
def test_decisions_of_another_table_are_refused(path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UnpriorError, match=f"{path}{message}"):
        read_final_answers(write(path, rows), TABLE)


@pytest.mark.parametrize("name", ["pair_id", "side", "task", "original", "final"])
def test_a_missing_column_is_named(path: Path, name: str) -> None:
    write(path, [{key: value for key, value in row.items() if key != name} for row in DECISIONS])
    with pytest.raises(UnpriorError, match=rf"no (column )?{name}; `unprior apply` writes decisions"):
        read_final_answers(path, TABLE)


@pytest.mark.parametrize(
    "line",
    [
        '{"pair_id": 1, "si', "[1, 2]", "3", "null", '"text"', "\udcff",
        "[" * 100_000,
    ],
    ids=["cut", "list", "number", "null", "text", "not UTF-8", "deep nesting"],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "decisions.jsonl", DECISIONS[:1])
    with path.open("ab") as stream:
        stream.write(line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(UnpriorError, match=r"decisions\.jsonl, line 2: not a JSON object; the file may be truncated"):
        read_final_answers(path, TABLE)


def test_an_answer_that_is_not_text_in_any_encoding(tmp_path: Path) -> None:
    path = write(tmp_path / "decisions.jsonl", changed(0, final="\ud800"))
    with pytest.raises(UnpriorError, match="final answer"):
        read_final_answers(path, TABLE)


def test_blank_lines_are_passed_over_as_in_score_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "decisions.jsonl", DECISIONS)
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert read_final_answers(path, TABLE).tolist() == [1, -1, 0]


def test_missing_empty_and_truncated_files(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="no such file; check the path"):
        read_final_answers(tmp_path / "nothing.jsonl", TABLE)
    with pytest.raises(UnpriorError, match="this is a folder, a file is needed"):
        read_final_answers(tmp_path, TABLE)
    with pytest.raises(UnpriorError, match="0 decisions for 3 rows"):
        read_final_answers(write(tmp_path / "empty.jsonl", []), TABLE)
    path = write(tmp_path / "decisions.parquet", DECISIONS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UnpriorError, match="the Parquet file cannot be read, it may be truncated"):
        read_final_answers(path, TABLE)
