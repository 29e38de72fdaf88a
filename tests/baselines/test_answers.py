from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from small_tables import example
from unprior import ScoreTable, UnpriorError, synthesize
from unprior.baselines.activity import GateActivity
from unprior.baselines.answers import (
    Cost,
    MethodInfo,
    read_answers,
    read_references,
    write_answers,
)

Row = dict[str, Any]
VCD = MethodInfo("vcd", "VCD", "decoder", {"alpha": 1.0, "seed": 3}, Cost(2.0, 12.5, 0.31, 20))
PROMPT = MethodInfo("focus", "Focus on Vision", "prompt", {}, None)
SCORES, NO_IDS = [-0.1, -2.0, -3.0], {"example_id": None}
ROWS = [
    example(pair, side, SCORES, SCORES, "A", "B", example_id=f"{pair}-{side}")
    for pair in (1, 2)
    for side in ("cf", "cs")
]


def answer(row: Row, method: str, given: str | None, **more: Any) -> Row:
    identity = {name: row[name] for name in ("model", "benchmark", "example_id", "pair_id", "side", "task")}
    return identity | {"method": method, "text": f"It is {given}.", "answer": given} | more


def write(path: Path, rows: list[Row], infos: tuple[MethodInfo, ...] = (VCD, PROMPT), **more: Any) -> Path:
    write_answers(path / "baselines.parquet", infos, rows, **more)
    return path / "baselines.parquet"


@pytest.fixture
def answers() -> list[Row]:
    vcd = [
        answer(
            row, "vcd", given, matched_text="?" if given == "C" else "A", matched_answer=None if given == "C" else "A"
        )
        for row, given in zip(ROWS, ["B", None, "C", "A"], strict=True)
    ]
    return vcd + [answer(row, "focus", "C") for row in ROWS]


def test_answers_are_joined_to_the_rows_of_the_table(answers: list[Row], tmp_path: Path) -> None:
    costs = {"original": Cost(1.0, 3.0, 0.1, 20), "spc": Cost(1.0, 5.0, 0.2, 20)}
    path = write(tmp_path, answers[::-1], references=costs)
    vcd, focus = read_answers(path, ScoreTable.from_rows(ROWS))
    assert (vcd.info, focus.info) == (VCD, PROMPT)
    assert vcd.answers.tolist() == [1, -1, 2, 0]
    assert vcd.matched is not None
    assert vcd.matched.tolist() == [0, 0, -1, 0]
    assert focus.answers.tolist() == [2, 2, 2, 2]
    assert focus.matched is None
    assert read_references(path) == costs


def test_a_part_of_the_benchmark_in_another_order_is_enough(answers: list[Row], tmp_path: Path) -> None:
    vcd, _ = read_answers(write(tmp_path, answers), ScoreTable.from_rows([ROWS[2], ROWS[0]]))
    assert vcd.answers.tolist() == [2, 1]


def test_without_example_ids_pair_side_and_task_identify(answers: list[Row], tmp_path: Path) -> None:
    path = write(tmp_path, [row | NO_IDS for row in answers])
    vcd, _ = read_answers(path, ScoreTable.from_rows([row | NO_IDS for row in ROWS]))
    assert vcd.answers.tolist() == [1, -1, 2, 0]
    with pytest.raises(UnpriorError, match=r"VCD has no answer to 4 of 4 rows .*example 1-cf"):
        read_answers(path, ScoreTable.from_rows(ROWS))


def test_candidates_of_different_length_keep_their_places(tmp_path: Path) -> None:
    table = synthesize(seed=0)
    rows = table.arrow.to_pylist()
    given = [row["candidates"][-1] for row in rows]
    path = write(tmp_path, [answer(row, "vcd", name) for row, name in zip(rows, given, strict=True)], (VCD,))
    (vcd,) = read_answers(path, table)
    assert table.candidate_names(vcd.answers) == given


def test_missing_answers_are_counted_and_the_command_named(answers: list[Row], tmp_path: Path) -> None:
    path = write(tmp_path, [row for row in answers if (row["method"], row["pair_id"]) != ("focus", 2)])
    with pytest.raises(
        UnpriorError, match=r"Focus on Vision has no answer to 2 of 4 rows .*first: example 2-cf.*`unprior baseline`"
    ):
        read_answers(path, ScoreTable.from_rows(ROWS))


def test_a_matched_decoder_that_stopped_half_way_is_refused(answers: list[Row], tmp_path: Path) -> None:
    answers[3] |= {"matched_text": None, "matched_answer": None}
    with pytest.raises(UnpriorError, match=r"VCD with its correction switched off has no answer to 1 of 4 .*2-cs"):
        read_answers(write(tmp_path, answers), ScoreTable.from_rows(ROWS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "D"}, r"VCD answers 'D' to example 1-cf, which is none of its candidates \(A, B, C\)"),
        ({"matched_answer": "yes"}, r"VCD answers 'yes' to example 1-cf"),
        ({"example_id": "1-cs"}, r"VCD answers example 1-cs twice"),
    ],
)
def test_what_does_not_fit_the_questions_is_refused(
    answers: list[Row], tmp_path: Path, change: Row, message: str
) -> None:
    answers[0] |= change
    with pytest.raises(UnpriorError, match=message):
        read_answers(write(tmp_path, answers), ScoreTable.from_rows(ROWS))


@pytest.mark.parametrize("name", ["model", "benchmark"])
def test_another_model_or_benchmark_is_refused(answers: list[Row], tmp_path: Path, name: str) -> None:
    path = write(tmp_path, answers)
    table = ScoreTable.from_rows(ROWS).with_columns(**{name: "llava"})
    with pytest.raises(
        UnpriorError, match=rf"belong to {name} (by hand|small), the scores to llava; .*unprior baseline"
    ):
        read_answers(path, table)


def test_an_undescribed_method_and_other_files_are_refused(answers: list[Row], tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="answers of focus, which is not described"):
        write(tmp_path, answers, (VCD,))
    assert list(tmp_path.iterdir()) == []
    table = ScoreTable.from_rows(ROWS)
    table.write(tmp_path / "scores.parquet")
    with pytest.raises(UnpriorError, match="not a file of answers; `unprior baseline` writes one"):
        read_answers(tmp_path / "scores.parquet", table)
    with pytest.raises(UnpriorError, match="no such file"):
        read_answers(tmp_path / "nowhere.parquet", table)
    whole = write(tmp_path, answers).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    with pytest.raises(UnpriorError, match="may be truncated"):
        read_answers(tmp_path / "cut.parquet", table)


def test_a_later_version_is_named(answers: list[Row], tmp_path: Path) -> None:
    path = write(tmp_path, answers)
    arrow = pq.read_table(path)
    about = arrow.schema.metadata[b"unprior.baselines"].replace(b'"version": 1', b'"version": 2')
    pq.write_table(arrow.replace_schema_metadata({b"unprior.baselines": about}), path)
    with pytest.raises(UnpriorError, match="answers in version 2, this unprior reads version 1"):
        read_references(path)


def test_files_without_counts_of_positions_are_read(answers: list[Row], tmp_path: Path) -> None:
    """As 0.1.0 wrote them; and a count that some rows lack is none."""
    counted = [row | {"positions": 9, "active_positions": 4} for row in answers]
    path = write(tmp_path, counted)
    table = ScoreTable.from_rows(ROWS)
    assert [each.activity for each in read_answers(path, table)] == [(GateActivity(9, 4),) * 4] * 2
    whole = pq.read_table(path)
    pq.write_table(whole.drop_columns(["positions", "active_positions"]), path)
    assert [each.activity for each in read_answers(path, table)] == [None, None]
    write(tmp_path, [counted[0] | {"positions": None}, *counted[1:]])
    assert [each.activity is None for each in read_answers(path, table)] == [True, False]
