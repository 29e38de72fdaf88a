"""Queue and shards of a distributed job, as files."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from unprior import UnpriorError
from unprior.scoring.plan import Job
from unprior.scoring.shards import ShardFolder
from unprior.scoring.store import ScoreStore, StoredResult


def job(key: str, view: str | None = None) -> Job:
    return Job(key, f"Is it {key}?", ("yes", "no"), Path("picture.png"), view)


def test_a_batch_is_read_as_it_was_queued_with_a_path_that_holds_anywhere(tmp_path: Path) -> None:
    shards = ShardFolder(tmp_path)
    assert shards.write_queue([[job("a"), job("b")], [job("c", "text")]]) == 2
    assert shards.read_batch(1) == [Job("c", "Is it c?", ("yes", "no"), Path("picture.png").absolute(), "text")]
    assert [read.key for read in shards.read_batch(0)] == ["a", "b"]


def test_shards_merge_into_the_store_and_are_gone(tmp_path: Path) -> None:
    shards = ShardFolder(tmp_path / "shards")
    with ScoreStore(tmp_path / "store.sqlite") as store, shards.locked():
        store.put([StoredResult("a", {"scores": [-1.0]})])
        shards.write_shard(
            [job("a"), job("b")], [StoredResult("a", {"scores": [-9.0]}), StoredResult("b", failure="f")]
        )
        shards.write_shard([job("c")], [StoredResult("c", {"scores": [0.1 + 0.2]})])
        assert shards.has_shard([job("c")])
        assert shards.merge(store) == 2
        assert not shards.has_shard([job("c")])
        stored = store.get(["a", "b", "c"])
        assert store.missing(["a", "b", "c"]) == ["b"]
    assert stored["a"].value == {"scores": [-1.0]}  # what was stored first stays
    assert stored["b"].failure == "f"
    assert stored["c"].value == {"scores": [0.1 + 0.2]}


def test_two_jobs_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with (
        ScoreStore(tmp_path / "store.sqlite") as store,
        ShardFolder(tmp_path).locked(),
        pytest.raises(UnpriorError, match=r"another job is working here.*--shards"),
        ShardFolder(tmp_path).locked(),
    ):
        pass
    with ScoreStore(tmp_path / "store.sqlite") as store, ShardFolder(tmp_path).locked():
        ShardFolder(tmp_path).write_shard([job("a")], [StoredResult("a", 1)])
        assert ShardFolder(tmp_path).merge_leftovers(store) == 0  # they belong to the job that is working
    with ScoreStore(tmp_path / "store.sqlite") as store:
        assert ShardFolder(tmp_path).merge_leftovers(store) == 1
        assert ShardFolder(tmp_path / "nowhere").merge_leftovers(store) == 0


def test_a_folder_that_a_machine_does_not_reach_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"nowhere is not there on one of the machines.*--shards"):
        ShardFolder(tmp_path / "nowhere").read_batch(0)


def test_a_broken_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 but not really")
    with ScoreStore(tmp_path / "store.sqlite") as store, pytest.raises(UnpriorError, match=r"x\.parquet: not a shard"):
        ShardFolder(tmp_path).merge(store)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "shards").write_text("", encoding="utf-8")
    with pytest.raises(UnpriorError, match=r"shards: cannot be written"), ShardFolder(tmp_path / "shards").locked():
        pass


def test_a_job_that_kills_its_worker_fails_alone_after_a_while(tmp_path: Path) -> None:
    shards = ShardFolder(tmp_path)
    batch = [job("a"), job("deadly"), job("b")]
    asked: list[list[str]] = []

    def work(jobs: Sequence[Job]) -> list[StoredResult]:
        asked.append([each.key for each in jobs])
        if any(each.key == "deadly" for each in jobs):
            raise SystemExit  # as if the process had died
        return [StoredResult(each.key, 1) for each in jobs]

    for _ in range(3):
        with pytest.raises(SystemExit):
            shards.compute(batch, work)
    name = shards.compute(batch, work)
    assert asked == [["a", "deadly", "b"], ["a"], ["deadly"], ["a"], ["deadly"], ["a"], ["b"]]
    assert shards.compute(batch, work) == name  # done already
    assert len(asked) == 7
    with ScoreStore(tmp_path / "store.sqlite") as store:
        assert shards.ingest(name, store) == (3, 1)
        assert "the worker crashed on it" in str(store.get(["deadly"])["deadly"].failure)
        shards.merge(store)
    assert {path.name for path in tmp_path.iterdir()} == {"store.sqlite"}


def test_a_worker_that_outlives_its_job_does_not_read_the_next_queue(tmp_path: Path) -> None:
    before, after = ShardFolder(tmp_path), ShardFolder(tmp_path)
    before.write_queue([[job("old")]])
    after.write_queue([[job("new")]])
    assert [read.key for read in before.read_batch(0)] == ["old"]
    with ScoreStore(tmp_path / "store.sqlite") as store:
        before.merge(store)
    with pytest.raises(UnpriorError, match="is not there"):
        before.read_batch(0)


def test_a_folder_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with (
        pytest.raises(UnpriorError, match=r"cannot be locked there.*another file system"),
        ShardFolder(tmp_path).locked(),
    ):
        pass


def test_a_system_without_fcntl_has_the_other_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(number: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None  # what Windows says

    monkeypatch.setattr("unprior._locks.fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=lock, LK_NBLCK=2))
    with (
        ShardFolder(tmp_path).locked(),
        pytest.raises(UnpriorError, match="another job is working here"),
        ShardFolder(tmp_path).locked(),
    ):
        pass
    with ShardFolder(tmp_path).locked():
        pass


def test_a_system_without_fcntl_can_load_the_engines() -> None:
    program = "import sys; sys.modules['fcntl'] = None; import unprior.scoring.shards, unprior.scoring.ray.run"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
