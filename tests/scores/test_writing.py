"""Writing score files: everything survives, and a failed write loses nothing."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_files import FORMATS, FULL, ROW, without, write_jsonl, write_parquet
from unprior import ScoreTable, UnpriorError, read_scores
from unprior.scores import SCHEMA, write_scores
from unprior.scores.files import write_records


@pytest.mark.parametrize("text_ids", [False, True])
@pytest.mark.parametrize(("first", "second"), [("jsonl", "parquet"), ("parquet", "jsonl")])
def test_round_trip_keeps_everything(tmp_path: Path, first: str, second: str, text_ids: bool) -> None:
    rows = [row | {"pair_id": f"p{row['pair_id']}"} for row in FULL] if text_ids else FULL
    table = ScoreTable.from_rows(rows)
    table.write(tmp_path / f"a.{first}")
    ScoreTable.read(tmp_path / f"a.{first}").write(tmp_path / f"b.{second}")
    back = read_scores(tmp_path / f"b.{second}")
    assert back.arrow.equals(table.arrow)
    assert back.column("pair_id") == [row["pair_id"] for row in rows]
    assert back.column("original") == ["yes", None, "x"]
    assert dict(back.column("views")[0]) == FULL[0]["views"]
    assert back.column("claims")[0] == FULL[0]["claims"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_without_claims_is_read_as_before(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"old.{kind}"
    old = ScoreTable.from_rows(FULL).arrow.drop_columns(["claims"])
    write_records(path, old, [{**row, "views": dict(row["views"] or ())} for row in old.to_pylist()])
    back = read_scores(path)
    assert back.arrow.column_names == SCHEMA.names
    assert back.column("claims") == [None] * len(FULL)
    assert back.column("image_scores") == old.column("image_scores").to_pylist()


def test_jsonl_is_readable_and_leaves_out_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    write_scores(ScoreTable.from_rows([without("answer") | {"original": None}], require_answers=False), path)
    assert json.loads(path.read_text(encoding="utf-8")) == without("answer") | {"original": None}
    write_scores(ScoreTable.from_rows(FULL[:1]), path)
    assert "基准" in path.read_text(encoding="utf-8")


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Valid rows with any K, any text and any finite scores."""
    short = st.none() | st.text(max_size=5)
    ids = draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.text(max_size=5)]))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        candidates = draw(st.lists(st.text(max_size=4), min_size=2, max_size=4, unique=True))
        size = len(candidates)
        scores = st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size)
        counts = st.lists(st.integers(0, 2**31), min_size=size, max_size=size)
        optional = dict.fromkeys(("model", "benchmark", "category", "split", "original_text", "example_id"), short)
        required = {
            "pair_id": ids, "side": st.sampled_from(["cf", "cs"]), "task": st.sampled_from(["mc", "qa"]),
            "candidates": st.just(candidates), "image_scores": scores, "prior_scores": scores,
            "original": st.none() | st.sampled_from(candidates), "answer": st.sampled_from(candidates),
            "token_counts": st.none() | counts,
            "views": st.none() | st.dictionaries(st.text(max_size=4), scores, max_size=2),
        }  # fmt: skip
        rows.append(draw(st.fixed_dictionaries(required | optional)))
    return rows


@settings(max_examples=60)
@given(rows=tables(), order=st.permutations(FORMATS))
def test_any_table_survives_both_formats(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], order: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    table = ScoreTable.from_rows(rows)
    back = table
    for kind in order:
        back.write(folder / f"scores.{kind}")
        back = read_scores(folder / f"scores.{kind}")
    assert back.arrow.equals(table.arrow)
    for row, found in zip(rows, back.arrow.to_pylist(), strict=True):
        views = None if found["views"] is None else dict(found["views"])
        assert found | {"views": views} == {name: row.get(name) for name in SCHEMA.names}


def failing_rows(error: BaseException) -> Iterator[dict[str, Any]]:
    yield {"a": 1}
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("bad"), OSError(errno.ENOSPC, "No space left")])
def test_a_failed_write_leaves_the_old_jsonl_file(tmp_path: Path, error: BaseException) -> None:
    path = write_jsonl(tmp_path / "scores.jsonl", ROW)
    before = path.read_bytes()
    expected = UnpriorError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as raised:
        write_records(path, pa.table({}), failing_rows(error))
    if isinstance(error, OSError):
        assert str(raised.value) == f"{path}: cannot be written (No space left); choose another path"
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), OSError("No space left")])
def test_a_failed_write_leaves_the_old_parquet_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    path = write_parquet(tmp_path / "scores.parquet", ROW)
    before = path.read_bytes()

    def fail(_: pa.Table, where: Path) -> None:
        Path(where).write_bytes(b"half")
        raise error

    monkeypatch.setattr("unprior.scores.files.pq.write_table", fail)
    with pytest.raises(UnpriorError) as raised:
        ScoreTable.from_rows(FULL).write(path)
    assert str(raised.value) == f"{path}: cannot be written (No space left); choose another path"
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_written_file_replaces_the_old_one_with_ordinary_rights(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "new" / "folder" / f"scores.{kind}"
    ScoreTable.from_rows(FULL).write(path)
    ScoreTable.from_rows(FULL[:2]).write(path)
    assert len(read_scores(path)) == 2
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("name", ["scores.csv", "scores", "scores.json", "jsonl", "scores.parquet.gz"])
def test_an_unknown_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnpriorError, match=r"cannot tell the format; the name must end in \.jsonl or \.parquet"):
        ScoreTable.from_rows(FULL).write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    file, folder = write_jsonl(tmp_path / "file.jsonl", ROW), tmp_path / "folder.jsonl"
    folder.mkdir()
    for path in (file / "scores.jsonl", folder):
        with pytest.raises(UnpriorError, match=f"{path}: cannot be written"):
            ScoreTable.from_rows(FULL).write(path)
    assert sorted(tmp_path.iterdir()) == [file, folder]
    assert list(folder.iterdir()) == []
