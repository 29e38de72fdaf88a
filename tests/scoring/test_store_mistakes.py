"""Files that are no store, damaged stores, full disks and locks: each is explained, nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from store_files import raw
from unprior import UnpriorError
from unprior.scoring import store as module
from unprior.scoring.store import ScoreStore, StoredResult

# -- values


def refused(path: Path, message: str) -> None:
    with pytest.raises(UnpriorError, match=message) as caught:
        ScoreStore(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"xy", b'{"a": 1}\n' * 1000, b"\x00" * 5000, b"PAR1" + bytes(range(256)) * 40])
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_bytes(content)
    refused(path, "not a score store; choose another path")
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("statement", ["CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path, mode: str, statement: str) -> None:
    path = tmp_path / "browser.sqlite"
    raw(path, f"PRAGMA journal_mode = {mode}", statement)
    content = path.read_bytes()
    refused(path, "not a score store; choose another path")
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_format_is_refused(path: Path) -> None:
    ScoreStore(path).close()
    raw(path, "PRAGMA user_version = 2")
    refused(path, "newer version of unprior; upgrade unprior")


@pytest.mark.parametrize("value", ["'{\"scores\": [-0.1'", "''", "'null'", "CAST(x'ff22' AS TEXT)", "x'00'"])
def test_a_damaged_value_is_missing_and_gives_way(path: Path, value: str) -> None:
    with ScoreStore(path) as store:
        store.put([StoredResult("a", [1]), StoredResult("b", [2]), StoredResult("c", failure="broken")])
    raw(path, f"UPDATE result SET value = {value} WHERE key = 'b'")
    with ScoreStore(path) as store:
        assert store.missing(["a", "b", "c"]) == ["b", "c"]
        found = store.get(["a", "b", "c"])
        assert found["a"].value == [1]
        assert found["b"].failure == "the stored result is damaged; the same command computes it again"
        assert store.damaged == {"b"}
        store.put([StoredResult("a", [7]), StoredResult("b", [3])])
        assert [found.value for found in store.get(["a", "b"]).values()] == [[1], [3]]
    with ScoreStore(path) as store:
        assert store.missing(["a", "b"]) == []


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with ScoreStore(path) as store:
        assert store.counts() == (0, 0)


@pytest.fixture
def filled(path: Path) -> Path:
    with ScoreStore(path) as store:
        store.put([StoredResult(f"{number:05d}", "x" * 300) for number in range(2000)])
    return path


@pytest.mark.parametrize("keep", [0.01, 0.3, 0.7, 0.999])
def test_a_truncated_store_is_refused(filled: Path, keep: float) -> None:
    os.truncate(filled, int(filled.stat().st_size * keep))
    refused(filled, "damaged; move it away|not a score store")


@pytest.mark.parametrize("at", [100, 4096, 0.3, 0.6, 0.9])
def test_an_overwritten_store_is_refused(filled: Path, at: float) -> None:
    size = filled.stat().st_size
    start = int(at if at >= 1 else size * at) // 4096 * 4096 + (100 if at == 100 else 0)
    with filled.open("r+b") as stream:
        stream.seek(start)
        stream.write(b"\xa5" * 8192)
    refused(filled, "damaged; move it away")


def test_lost_tables_are_named(path: Path, store: ScoreStore) -> None:
    raw(path, "DROP TABLE result")
    for ask in (lambda: store.get(["k"]), lambda: store.put([StoredResult("k", 1)]), store.counts):
        with pytest.raises(UnpriorError, match=r"scores\.sqlite: .*damaged"):
            ask()


def test_a_folder_or_device_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(tmp_path, "a file .* is needed, not a folder")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        refused(path, "not a folder or a device")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnpriorError, match="not a folder or a device"):
        ScoreStore("")


def test_unwritable_places_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused(tmp_path / "file" / "scores.sqlite", "cannot be opened for writing; check the rights")
    refused(tmp_path / "file" / "deeper" / "scores.sqlite", "cannot be opened for writing")
    refused(Path("/proc/unprior.sqlite"), "cannot be opened for writing")
    refused(tmp_path / ("x" * 300), "cannot be opened for writing")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "scores.sqlite")
    refused(tmp_path / "dangling", "cannot be opened for writing")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_missing_rights_are_refused(filled: Path) -> None:
    filled.chmod(0o444)
    refused(filled, "the right to write is needed")
    filled.chmod(0o644)
    filled.parent.chmod(0o555)
    refused(filled, "cannot be opened for writing")
    refused(filled.parent / "other.sqlite", "cannot be opened for writing")
    filled.parent.chmod(0o755)


def test_a_lock_that_stays_is_explained(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with ScoreStore(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store.put([StoredResult("k", failure="first")])
        other.execute("BEGIN IMMEDIATE")
        for ask in (lambda: store.put([StoredResult("k", 1)]), lambda: store.set_info({"a": "b"})):
            with pytest.raises(
                UnpriorError, match=r"scores\.sqlite: another process .* run again when it has finished"
            ):
                ask()
        refused(path, "another process")
        assert store.counts() == (0, 1)
        other.execute("ROLLBACK")
        store.put([StoredResult("k", 1)])
        assert store.counts() == (1, 0)


def test_writers_wait_for_each_other(store: ScoreStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN IMMEDIATE")
        waiting = pool.submit(store.put, [StoredResult("k", 1)])
        time.sleep(0.3)
        assert not waiting.done()
        other.execute("COMMIT")
        waiting.result()
    assert store.counts() == (1, 0)


def test_a_full_disk_is_explained_and_what_was_stored_is_safe(store: ScoreStore) -> None:
    store.put([StoredResult("before", 1)])
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")  # SQLite reports it as it does a full disk
    with pytest.raises(UnpriorError, match=r"scores\.sqlite: the disk is full; make room"):
        store.put([StoredResult(f"{number}", "x" * 5000) for number in range(10)])
    assert store.counts() == (1, 0)
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.put([StoredResult("after", 1)])
    assert store.missing(["before", "after"]) == []


def test_a_closed_store_says_so(path: Path) -> None:
    store = ScoreStore(path)
    store.close()
    store.close()
    for ask in (lambda: store.get(["k"]), lambda: store.put([StoredResult("k", 1)]), store.counts, store.info):
        with pytest.raises(UnpriorError, match="closed"):
            ask()


def test_a_forked_store_is_refused(store: ScoreStore, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(UnpriorError, match="before a fork; open it again"):
            store.counts()
    assert store.counts() == (0, 0)


def test_an_interrupted_write_leaves_the_store_usable(store: ScoreStore) -> None:
    def results() -> Iterator[StoredResult]:
        yield StoredResult("a", 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.put(results())

    def write() -> None:
        with store._transaction("IMMEDIATE") as connection:
            connection.execute("INSERT INTO result VALUES ('a', '1', NULL)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert store.counts() == (0, 0)
    store.put([StoredResult("a", 1)])
