"""Ray, as far as we need it: joining a cluster, and a Ray Data job whose actors hold an engine."""

from __future__ import annotations

import io
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from unprior.engines.protocol import Engine, EngineInfo, RemoteEngineInfo
from unprior.errors import UnpriorError, format_option
from unprior.scoring.run import JobWorker
from unprior.scoring.shards import ShardFolder

LOCAL = "local"
"""The address that starts a Ray of our own on this machine."""
_NOBODY = "Could not find any running Ray instance"
_PATIENCE = 10.0  # seconds
_MAX_BLOCKS = 2000  # one batch each, unless there are more batches

Load = Callable[[], Engine]


@dataclass(frozen=True, slots=True)
class Pool:
    """The workers of a job."""

    workers: int
    """Processes that hold an engine, anywhere in the cluster."""
    gpus: float = 0
    """GPUs of each."""
    cpus: float = 1
    """Processor cores of each."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What every worker of a job has to know."""

    load: Load
    """Loads the engine."""
    shards: ShardFolder
    """Where the queue is, and where results go."""
    fingerprint: str
    """What the engine must be: keys were made for it."""
    resize_to: int | None
    """Side of the square that images are brought to."""
    mean: bytes | None
    """The mean image as PNG."""


@contextmanager
def connected(address: str | None, workers: int | None = None) -> Iterator[None]:
    """Join the Ray cluster at an address, or start one on this machine and stop it in the end.

    None joins the cluster that this machine belongs to, if it does, and starts one otherwise.
    """
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its notes are not for users of this command
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UnpriorError(
            f"scoring on a cluster needs Ray ({error.name} is not installed): pip install 'unprior[ray]', on all "
            f"machines"
        ) from None
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    cores = max(os.cpu_count() or 1, workers or 1)
    alone: dict[str, Any] = {"address": LOCAL, "num_cpus": cores, "include_dashboard": False}
    try:
        _probe_port(address)
        with _silenced():
            try:
                ray.init(**quiet, **(alone if address == LOCAL else {"address": address or "auto"}))
            except ConnectionError as error:
                if address is not None or _NOBODY not in str(error):  # a cluster that refuses us is not ours to ignore
                    raise
                ray.init(**quiet, **alone)
    except (OSError, ValueError, RuntimeError) as error:
        raise UnpriorError(
            f"no Ray cluster can be reached at {address or 'this machine'} ({_first_line(error)}); start one with "
            f"`ray start --head`, set RAY_AUTH_MODE=token if it wants its token, or give "
            f"{format_option('address', LOCAL, flag='--ray')} to use this machine alone"
        ) from None
    with redirect_stdout(_Notices()):  # Ray tells of dead workers there, also in the end; only results belong there
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep what Ray's compiled part writes while it starts off the terminal; errors come as exceptions, too."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _probe_port(address: str | None) -> None:
    """Find out soon whether anybody is there; Ray would try for minutes."""
    host, separator, port = (address or "").rpartition(":")
    if separator and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def cluster_resources() -> dict[str, float]:
    """Cores and GPUs of the cluster as it is now, as ``CPU`` and ``GPU``."""
    import ray

    return dict(ray.cluster_resources())


def describe_remotely(load: Load, pool: Pool) -> EngineInfo:
    """Load the engine where the workers will, and tell what it is; this machine may lack what it needs."""
    import ray

    # The process ends with the call, so that the memory of its GPU is free again.
    ask = ray.remote(num_cpus=pool.cpus, num_gpus=pool.gpus, max_calls=1)(_describe)
    with _explained():
        described: EngineInfo | str = ray.get(ask.remote(load))
    if isinstance(described, str):
        raise UnpriorError(described)
    return described


def finished_shards(spec: WorkerSpec, batches: int, pool: Pool) -> Iterator[str]:
    """Let the workers compute the batches of the queue; names the shard of every batch when it is there.

    Ray Data replaces a worker that dies and gives its batches out again; those whose shards are there are not redone.
    """
    import pyarrow as pa
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # there is one already
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    blocks = min(batches, _MAX_BLOCKS)
    numbers = [pa.table({"batch": range(block, batches, blocks)}) for block in range(blocks)]
    done = ray.data.from_arrow(numbers).map_batches(
        ScoringWorker,
        fn_constructor_args=(spec,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(pool.workers, batches)),
        num_cpus=pool.cpus,
        num_gpus=pool.gpus,
    )
    with _explained():
        for rows in done.iter_batches(batch_size=None, batch_format="pyarrow"):
            for row in rows.to_pylist():
                if row["error"]:
                    raise UnpriorError(f"{row['error']} (what was scored so far is stored; run again to go on)")
                yield row["shard"]


class ScoringWorker:
    """An actor that holds an engine, computes batches of the queue and writes their shards."""

    def __init__(self, spec: WorkerSpec) -> None:
        """Load the engine; what is wrong with it is told with the first batch."""
        self.shards, self.error = spec.shards, ""
        try:
            engine = spec.load()
            if engine.fingerprint != spec.fingerprint:
                raise UnpriorError(
                    "the model or a library differs from the one that the job was planned with; install the same "
                    "versions and the same weights on all machines"
                )
            mean = None if spec.mean is None else Image.open(io.BytesIO(spec.mean)).convert("RGB")
            self.worker = JobWorker(engine, spec.resize_to, mean)
        except Exception as error:  # whatever it is, the person who started the job should read it
            self.error = _told(error)

    def __call__(self, numbers: dict[str, Any]) -> dict[str, list[str]]:
        """Compute batches, unless their shards are there already."""
        names, error = [], self.error
        for number in numbers["batch"]:
            if error:
                break
            try:
                names.append(self.shards.compute(self.shards.read_batch(int(number)), self.worker.compute))
            except Exception as problem:
                error = _told(problem)
        if error:
            return {"shard": [*names, ""], "error": [*[""] * len(names), error]}
        return {"shard": names, "error": [""] * len(names)}


def _describe(load: Load) -> EngineInfo | str:
    try:
        return RemoteEngineInfo.from_engine(load())
    except Exception as error:
        return _told(error)


class _Notices(io.TextIOBase):
    """Takes what Ray prints, screens of it for every worker that dies, and passes on the fact."""

    def write(self, text: str) -> int:
        """Take some text."""
        if "worker died" in text:
            print("A worker died; Ray replaces it, and its batches are done again.", file=sys.stderr, flush=True)
        return len(text)


def _told(error: Exception) -> str:
    """What went wrong, and where."""
    what = str(error) if isinstance(error, UnpriorError) else f"{type(error).__name__}: {error}"
    return f"{socket.gethostname()}: {what}"


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what Ray says into a word about the job."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        raise UnpriorError(
            f"the Ray job ended early ({_first_line(error)}); what was scored so far is stored, run again to go on"
        ) from None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
