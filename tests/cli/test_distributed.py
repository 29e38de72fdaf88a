"""`unprior score --ray`: real jobs on a local Ray, with workers and drivers that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from faulty_server import FaultyServer
from hand_questions import write_benchmark
from replayed_vllm import MODEL, ReplayedVllm
from unprior import read_scores
from unprior.engines.transformers.engine import TransformersEngine

PAIRS = 40
RESULTS = 6 * PAIRS
PATIENCE = 240.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("llava"))


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path, pairs=PAIRS)


def command(questions: Path, *more: str) -> list[str]:
    unprior = Path(sys.executable).with_name("unprior")
    return [str(unprior), "score", "--benchmark", str(questions), "--out", "scored", "--json", *more]


@contextmanager
def started(folder: Path, questions: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A job, which does not outlive the test."""
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command(questions, *more), cwd=folder, **piped) as job:
        try:
            yield job
        finally:
            job.kill()


def finish(job: subprocess.Popen[str]) -> Any:
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    assert "Traceback" not in err
    return json.loads(out)


def done(folder: Path, questions: Path, *more: str) -> Any:
    with started(folder, questions, *more) as job:
        return finish(job)


def refused(folder: Path, questions: Path, *more: str) -> str:
    with started(folder, questions, *more) as job:
        _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 2, err
    assert "Traceback" not in err
    return err


def workers_of(driver: int) -> list[int]:
    """Processes of the job's Ray that hold an engine."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                title = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::") and b"ScoringWorker" in title and driver in _ancestors(int(process.name)):
                found.append(int(process.name))
    return found


def _ancestors(process: int) -> set[int]:
    known: set[int] = set()
    while process > 1:
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        known.add(process)
    return known


def wait_for_shards(job: subprocess.Popen[str], folder: Path, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while len(shards_of(folder)) < count:
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def shards_of(folder: Path) -> dict[Path, int]:
    found = {}
    for path in (folder / "scored" / "shards").glob("*.parquet"):
        with suppress(FileNotFoundError):  # merged meanwhile
            found[path] = path.stat().st_mtime_ns
    return found


@pytest.mark.slow
def test_a_worker_that_dies_in_the_middle_is_replaced_and_nothing_is_lost_or_redone(
    model: Path, questions: Path, tmp_path: Path
) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    assert done(alone, questions, "--model", str(model))["computed"] == RESULTS
    two = ("--model", str(model), "--batch-size", "1", "--ray", "local", "--workers", "2")
    with started(together, questions, *two) as job:
        wait_for_shards(job, together, 6)
        while len(workers := workers_of(job.pid)) < 2:
            time.sleep(0.01)
        before = shards_of(together)
        assert len(before) < RESULTS  # in the middle
        os.kill(workers[0], signal.SIGKILL)
        while job.poll() is None:
            after = shards_of(together)
            # What was done before is not done again.
            assert all(after.get(path, made) == made for path, made in before.items())
            time.sleep(0.05)
        summary = finish(job)
    assert (summary["computed"], summary["reused"], summary["failures"]) == (RESULTS, 0, [])
    assert shards_of(together) == {}  # merged
    first, second = (read_scores(folder / "scored" / "scores.parquet") for folder in (alone, together))
    assert first.column("example_id") == second.column("example_id")
    assert first.column("original_text") == second.column("original_text")
    np.testing.assert_allclose(first.image_scores, second.image_scores, atol=1e-4)
    np.testing.assert_allclose(first.prior_scores, second.prior_scores, atol=1e-4)


@pytest.mark.slow
def test_a_job_whose_driver_was_killed_goes_on_with_other_workers(model: Path, questions: Path, tmp_path: Path) -> None:
    two = ("--model", str(model), "--batch-size", "1", "--ray", "local", "--workers", "2")
    with started(tmp_path, questions, *two) as job:
        wait_for_shards(job, tmp_path, 12)
        job.kill()
    written = len(shards_of(tmp_path))
    assert 12 <= written < RESULTS
    other = ("--model", str(model), "--batch-size", "3", "--ray", "local", "--workers", "1")
    summary = done(tmp_path, questions, *other)
    assert summary["failures"] == []
    assert summary["computed"] + summary["reused"] == RESULTS
    assert summary["reused"] >= written  # a shard held one result
    assert done(tmp_path, questions, "--model", str(model))["computed"] == 0  # nor without Ray
    assert len(read_scores(tmp_path / "scored" / "scores.parquet")) == 4 * PAIRS


@pytest.mark.slow
def test_workers_share_several_servers(model: Path, questions: Path, tmp_path: Path) -> None:
    engine = TransformersEngine(model, device="cpu")
    with FaultyServer(ReplayedVllm(engine)) as first, FaultyServer(ReplayedVllm(engine)) as second:
        served = ("--engine", "openai", "--base-url", first.url, "--base-url", second.url, "--model", MODEL)
        summary = done(tmp_path, questions, *served, "--ray", "local", "--concurrency", "2")
        assert (summary["computed"], summary["failures"]) == (RESULTS, [])
        assert min(first.requests, second.requests) > PAIRS
        assert done(tmp_path, questions, *served)["computed"] == 0  # the same keys without Ray
    assert len(read_scores(tmp_path / "scored" / "scores.parquet")) == 4 * PAIRS


@pytest.mark.slow
def test_what_is_wrong_on_a_worker_is_told_here(questions: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty" in refused(tmp_path, questions, "--model", "empty", "--ray", "local")


def test_an_address_without_a_cluster_is_refused_soon(questions: Path, tmp_path: Path) -> None:
    err = refused(tmp_path, questions, "--model", "embedded", "--ray", "127.0.0.1:1")
    assert "no Ray cluster can be reached at 127.0.0.1:1" in err


def test_options_of_workers_need_ray(run: Callable, questions: Path) -> None:
    needed = ("score", "--model", "embedded", "--benchmark", str(questions), "--out", "scored")
    run(*needed, "--workers", "2", "--shards", "there").refused("--workers 2, --shards there: only with --ray")


def test_without_ray_installed_the_command_says_what_to_do(
    run: Callable, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    needed = ("score", "--model", "embedded", "--benchmark", str(questions), "--out", "scored")
    for address in ((), ("local",)):
        run(*needed, "--ray", *address).refused("a cluster needs Ray", "pip install 'unprior[ray]'")
    run("score", "--ray", *needed[1:]).refused("a cluster needs Ray")
