from __future__ import annotations

import math
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_files import raw
from unprior import UnpriorError
from unprior.scoring import store as module
from unprior.scoring.store import ScoreStore, StoredResult

BATCH = 40

# One interpreter that has imported everything; a line of its input forks one fresh process per name, so that a process
# to be killed starts in milliseconds. It says "pid" for each, then comes what they say, and "end" when each is gone.
HOST = r"""
import os, sys
from unprior.scoring.store import ScoreStore, StoredResult

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())

def batches(path, name):  # endless batches, each acknowledged after it was put
    store, number = ScoreStore(path), 0
    while True:
        keys = [f"{name}/{number}/{item}" for item in range(BATCH)]
        store.put(StoredResult(key, {"key": key, "filling": "x" * 1000}) for key in keys)
        say("ack", number)
        number += 1

def create(folder, name):  # endless new stores
    number = 0
    while True:
        ScoreStore(f"{folder}/{name}-{number}").close()
        say("ack", number)
        number += 1

def overlap(path, name):  # half of the keys belong to this writer alone, half to all of them
    with ScoreStore(path) as store:
        for start in range(0, 300, 10):
            keys = [f"{owner}/{item}" for owner in ("shared", name) for item in range(start, start + 10)]
            store.put([StoredResult(key, failure=f"{name} failed first") for key in keys])
            store.put([StoredResult(key, [name, key]) for key in keys])

def run(job, path, name):
    try:
        {"batches": batches, "create": create, "overlap": overlap}[job](path, name)
        os._exit(0)
    except BaseException as error:
        say("error", repr(error))
        os._exit(1)

say("ready")
while line := sys.stdin.readline():
    job, path, *names = line.split()
    children = [os.fork() or run(job, path, name) for name in names]
    for child in children:
        say("pid", child)
    for child in children:
        say("end", os.waitpid(child, 0)[1])
""".replace("BATCH", str(BATCH))


class Host:
    """Processes to be run and killed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.input, self.output = process.stdin, process.stdout
        assert self.output.readline() == "ready\n"

    def run(self, job: str, path: Path, *names: str, kill_after: float | None = None) -> list[str]:
        """Return what the processes acknowledged before they ended or were killed."""
        self.input.write(" ".join([job, str(path), *names]) + "\n")
        timers, acknowledged, ended = [], [], 0
        while ended < len(names):
            word, what = self.output.readline().rstrip("\n").split(" ", 1)
            assert word in {"pid", "ack", "end"}, what
            if word == "pid" and kill_after is not None:
                timers.append(threading.Timer(kill_after, os.kill, (int(what), signal.SIGKILL)))
                timers[-1].start()
            elif word == "ack":
                acknowledged.append(what)
            elif word == "end":
                assert int(what) == (0 if kill_after is None else signal.SIGKILL)
                ended += 1
        for timer in timers:
            timer.join()
        return acknowledged


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    command = [sys.executable, "-W", "ignore", "-c", HOST]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield Host(process)


# -- values


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
@settings(max_examples=50)
def test_floats_come_back_bit_for_bit(values: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder, ScoreStore(f"{folder}/s") as store:
        values += [0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308, math.pi]
        store.put([StoredResult("k", values)])
        found = store.get(["k"])["k"].value
        assert found is not None
        assert [bits(value) for value in found] == [bits(value) for value in values]


@pytest.mark.parametrize(
    "value", [0, False, "", [], {}, "null", "naïve 🦆 \ud800 \x00", {"a": [1, None, {"b": [True]}]}, 10**40, [[[]]]]
)
def test_any_json_comes_back(store: ScoreStore, value: Any) -> None:
    store.put([StoredResult("k", value)])
    found = store.get(["k"])["k"].value
    assert found == value
    assert type(found) is type(value)
    assert store.missing(["k"]) == []


@pytest.mark.parametrize(
    "key", ["", "a\x00b", "a\x00", "'; DROP TABLE result; --", "\u00e9", "e\u0301", "🦆", "K", "k", "1", "1.0"]
)
def test_keys_are_exact(store: ScoreStore, key: str) -> None:
    store.put([StoredResult(key, 1)])
    assert store.get([key]) == {key: StoredResult(key, 1)}
    others = ["a", "b", "e", "a\x00c", "1.00"]
    assert store.missing(others) == others


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [math.nan, [1.0, math.inf], {"a": -math.inf}, {1, 2}, b"bytes", object(), circle(), {(1, 2): 3}, [10**5000]],
)
def test_what_json_cannot_hold_is_refused_and_nothing_is_stored(store: ScoreStore, value: Any) -> None:
    with pytest.raises(UnpriorError, match=r"scores\.sqlite: the value of 'bad' cannot be stored"):
        store.put([StoredResult("good", 1), StoredResult("bad", value)])
    assert store.counts() == (0, 0)


@pytest.mark.parametrize("arguments", [(None, None), (1, "failed")])
def test_a_result_is_a_value_or_a_failure(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(UnpriorError, match="'k': give either"):
        StoredResult("k", *arguments)


def test_keys_must_be_valid_text_and_reasons_are_made_so(store: ScoreStore) -> None:
    with pytest.raises(UnpriorError, match="valid text"):
        store.put([StoredResult("fine", 1), StoredResult("\ud800", 1)])
    for ask in (store.get, store.missing):
        with pytest.raises(UnpriorError, match="valid text"):
            ask(["\ud800"])
    assert store.counts() == (0, 0)
    store.put([StoredResult("k", failure="cannot read caf\udce9.png")])
    assert store.get(["k"])["k"].failure == "cannot read caf\\udce9.png"


# -- which result wins

KEYS = st.sampled_from(["a", "b", "c"])
RESULTS = st.one_of(
    st.builds(StoredResult, KEYS, st.integers()), st.builds(StoredResult, KEYS, failure=st.text("xyz", max_size=3))
)


@given(st.lists(st.one_of(st.lists(RESULTS, max_size=5), st.just("reopen"))))
@settings(max_examples=60)
def test_it_behaves_like_a_dictionary_that_keeps_the_first_success(steps: list[Any]) -> None:
    model: dict[str, StoredResult] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = ScoreStore(f"{folder}/s")
        for step in steps:
            if step == "reopen":
                store.close()
                store = ScoreStore(f"{folder}/s")
                continue
            store.put(step)
            for result in step:
                if result.key not in model or model[result.key].value is None:
                    model[result.key] = result
            assert store.get("abcd") == model
            assert store.missing("dcba") == [key for key in "dcba" if key not in model or model[key].value is None]
            failures = sum(result.value is None for result in model.values())
            assert store.counts() == (len(model) - failures, failures)
        store.close()


def test_precedence_between_two_open_stores(path: Path) -> None:
    with ScoreStore(path) as one, ScoreStore(path) as two:
        one.put([StoredResult("k", failure="out of memory")])
        two.put([StoredResult("k", failure="the image is truncated")])
        assert one.get(["k"])["k"].failure == "the image is truncated"
        one.put([StoredResult("k", 1)])
        two.put([StoredResult("k", 2), StoredResult("k", failure="late")])
        two.put([])
        assert two.get(["k"]) == one.get(["k"]) == {"k": StoredResult("k", 1)}
        assert one.counts() == two.counts() == (1, 0)


def test_missing_keeps_the_order_and_names_each_once(store: ScoreStore) -> None:
    store.put([StoredResult("done", 0), StoredResult("failed", failure="")])
    assert store.missing(iter(["z", "failed", "a", "done", "z", "failed"])) == ["z", "failed", "a"]
    assert store.get(iter(["z", "failed", "failed"])) == {"failed": StoredResult("failed", failure="")}
    assert store.missing([]) == []
    assert store.get([]) == {}


def test_many_keys(store: ScoreStore) -> None:
    keys = [f"{number:064x}" for number in range(100_000)]
    start = time.monotonic()
    store.put(StoredResult(key, [-0.1, -2.5]) for key in keys[::2])
    assert store.missing(keys) == keys[1::2]
    assert set(store.get(keys)) == set(keys[::2])
    assert store.counts() == (50_000, 0)
    assert time.monotonic() - start < 15


def test_info_survives_and_is_updated_by_name(path: Path) -> None:
    with ScoreStore(path) as store:
        assert store.info() == {}
        store.set_info({"model": "m", "torch": "1"})
        store.set_info({"torch": "2"})
    with ScoreStore(str(path)) as store:
        assert store.info() == {"model": "m", "torch": "2"}


def test_a_closed_store_is_one_file_in_wal_mode(path: Path) -> None:
    with ScoreStore(path) as store:
        store.put([StoredResult("k", 1)])
    assert [entry.name for entry in path.parent.iterdir()] == ["scores.sqlite"]
    assert raw(path, "PRAGMA journal_mode") == [[("wal",)]]


def test_sqlite_names_are_ordinary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ScoreStore(":memory:") as store:
        store.put([StoredResult("k", 1)])
    with ScoreStore("file:x?mode=memory"):
        pass
    assert {entry.name for entry in tmp_path.iterdir()} == {":memory:", "file:x?mode=memory"}
    with ScoreStore(":memory:") as store:
        assert store.counts() == (1, 0)


# -- many at once


def test_threads_share_a_store(store: ScoreStore) -> None:
    def work(worker: int) -> None:
        for number in range(50):
            store.put([StoredResult(f"{worker}/{number}", number), StoredResult("shared", worker)])
            assert store.missing([f"{worker}/{number}", "shared"]) == []

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert store.counts() == (401, 0)


def test_processes_write_overlapping_keys_at_once(path: Path, host: Host) -> None:
    names = ["one", "two", "three"]
    host.run("overlap", path, *names)  # the file is made by all of them at the same moment, too
    with ScoreStore(path) as store:
        assert store.counts() == (300 * 4, 0)
        for owner in [*names, "shared"]:
            keys = [f"{owner}/{item}" for item in range(300)]
            found: dict[str, Any] = {key: result.value for key, result in store.get(keys).items()}
            assert all(found[key][1] == key for key in keys)
            assert {found[key][0] for key in keys} <= ({owner} if owner in names else set(names))


def test_processes_make_the_same_store_at_once(tmp_path: Path, host: Host) -> None:
    for attempt in range(3):
        host.run("overlap", tmp_path / str(attempt) / "s", "a", "b", "c", "d")


def test_a_reader_sees_whole_batches_while_others_write(path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        with ScoreStore(path) as writer:
            for number in range(10_000):
                if stop.is_set():
                    return
                writer.put([StoredResult(f"{number}/{item}", "x" * 200) for item in range(500)])

    with ScoreStore(path) as reader, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            seen = [reader.counts()[0]]
            while (seen[-1] < 5000 or len(seen) < 20) and not writing.done():
                seen.append(reader.counts()[0])
                known = reader.get(f"{number}/{item}" for number in range(11) for item in range(500))
                assert len(known) % 500 == 0
        finally:
            stop.set()
        writing.result()
    assert seen == sorted(seen)
    assert all(count % 500 == 0 for count in seen)


def test_a_reader_neither_waits_for_nor_sees_an_open_write(store: ScoreStore, path: Path) -> None:
    store.put([StoredResult("old", 1)])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO result VALUES ('new', '2', NULL)")
        assert set(store.get(["old", "new"])) == {"old"}
        assert store.missing(["old", "new"]) == ["new"]
        writer.execute("COMMIT")
    assert store.get(["new"])["new"].value == 2


def test_the_switch_to_wal_waits_for_a_process_that_is_opening_too(tmp_path: Path) -> None:
    """SQLite itself gives up at once here, whatever its timeout."""
    path = tmp_path / "new.sqlite"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("CREATE TABLE t (a)")
        other.execute("BEGIN IMMEDIATE")
        switching = pool.submit(module._switch_to_wal, connection)
        time.sleep(0.2)
        assert not switching.done()
        other.execute("COMMIT")
        assert switching.result() == "wal"


# -- killed


def test_killed_writers_leave_whole_batches_and_lose_none_acknowledged(path: Path, host: Host) -> None:
    chance = random.Random(2024)
    acknowledged = 0
    for run in range(20):
        numbers = host.run("batches", path, f"run{run}", kill_after=chance.uniform(0.0, 0.15))
        assert numbers == [str(number) for number in range(len(numbers))]
        acknowledged += len(numbers)
        with ScoreStore(path) as store:
            # One batch more than acknowledged may be there: killed between the commit and the word of it.
            for number in range(len(numbers) + 2):
                keys = [f"run{run}/{number}/{item}" for item in range(BATCH)]
                found = store.get(keys)
                assert len(found) in ({BATCH} if number < len(numbers) else {0, BATCH})
                assert all(result.value["key"] == key for key, result in found.items() if result.value)
            total, failures = store.counts()
            assert total % BATCH == failures == 0
            assert acknowledged <= total // BATCH <= acknowledged + run + 1
    assert acknowledged > 20
    assert raw(path, "PRAGMA integrity_check") == [[("ok",)]]


def test_two_writers_killed_at_once(path: Path, host: Host) -> None:
    for run in range(4):
        numbers = host.run("batches", path, f"{run}a", f"{run}b", kill_after=0.15)
        with ScoreStore(path) as store:
            assert store.counts()[0] % BATCH == 0
            assert store.counts()[0] >= len(numbers) * BATCH


def test_a_store_whose_making_was_killed_can_be_used(tmp_path: Path, host: Host) -> None:
    chance = random.Random(7)
    for run in range(10):
        made = len(host.run("create", tmp_path, f"run{run}", kill_after=chance.uniform(0.0, 0.1)))
        with ScoreStore(tmp_path / f"run{run}-{made}") as store:
            store.put([StoredResult("k", 1)])
            assert store.counts() == (1, 0)


# -- what can go wrong
