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
from typing import Any

from PIL import Image

from unprior.engines.protocol import Engine, EngineDescription
from unprior.engines.scoring import JobWorker
from unprior.engines.shards import ShardFolder
from unprior.errors import UnpriorError

LOCAL = "local"
"""The address that starts a Ray of our own on this machine."""
_PATIENCE = 10.0  # seconds
_MOST_BLOCKS = 2000  # one batch each, unless there are more batches

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
class Task:
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
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its notes are not for the users of this command
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UnpriorError(
            f"--ray needs Ray ({error.name} is not installed): pip install 'unprior[ray]', on all machines"
        ) from None
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    cores = max(os.cpu_count() or 1, workers or 1)
    alone: dict[str, Any] = {"address": LOCAL, "num_cpus": cores, "include_dashboard": False}
    try:
        _knock(address)
        try:
            ray.init(**quiet, **(alone if address == LOCAL else {"address": address or "auto"}))
        except ConnectionError:
            if address is not None:
                raise
            ray.init(**quiet, **alone)
    except (OSError, ValueError, RuntimeError) as error:
        raise UnpriorError(
            f"--ray {address or LOCAL}: no Ray cluster can be reached there ({_first_line(error)}); start one with "
            f"`ray start --head`, or give --ray {LOCAL} to use this machine alone"
        ) from None
    with redirect_stdout(sys.stderr):  # Ray tells of dead workers there, also in the end; only results belong there
        try:
            yield
        finally:
            ray.shutdown()


def _knock(address: str | None) -> None:
    """Find out soon whether anybody is there; Ray would try for minutes."""
    host, separator, port = (address or "").rpartition(":")
    if separator and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def cluster_resources() -> dict[str, float]:
    """Cores and GPUs of the cluster as it is now, as ``CPU`` and ``GPU``."""
    import ray

    return dict(ray.cluster_resources())


def describe_remotely(load: Load, pool: Pool) -> EngineDescription:
    """Load the engine where the workers will, and tell what it is; this machine may lack what it needs."""
    import ray

    # The process ends with the call, so that the memory of its GPU is free again.
    ask = ray.remote(num_cpus=pool.cpus, num_gpus=pool.gpus, max_calls=1)(_describe)
    with _explained():
        described: EngineDescription | str = ray.get(ask.remote(load))
    if isinstance(described, str):
        raise UnpriorError(described)
    return described


def finished_shards(task: Task, batches: int, pool: Pool) -> Iterator[str]:
    """Let the workers compute the batches of the queue; names the shard of every batch when it is there.

    Ray Data replaces a worker that dies and gives its batches out again; those whose shards are there are not redone.
    """
    import pyarrow as pa
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # there is one already
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    blocks = min(batches, _MOST_BLOCKS)
    numbers = [pa.table({"batch": range(block, batches, blocks)}) for block in range(blocks)]
    done = ray.data.from_arrow(numbers).map_batches(
        ScoringWorker,
        fn_constructor_args=(task,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(pool.workers, batches)),
        num_cpus=pool.cpus,
        num_gpus=pool.gpus,
    )
    with _explained():
        for rows in done.iter_batches(batch_size=None, batch_format="pyarrow"):
            for row in rows.to_pylist():
                if row["error"]:
                    raise UnpriorError(row["error"])
                yield row["shard"]


class ScoringWorker:
    """An actor that holds an engine, computes batches of the queue and writes their shards."""

    def __init__(self, task: Task) -> None:
        """Load the engine; what is wrong with it is told with the first batch."""
        self.shards, self.error = task.shards, ""
        try:
            engine = task.load()
        except UnpriorError as error:
            self.error = f"{socket.gethostname()}: {error}"
            return
        if engine.fingerprint != task.fingerprint:
            self.error = (
                f"{socket.gethostname()}: the model or a library differs from the one that the job was planned with; "
                f"install the same versions and the same weights on all machines"
            )
        mean = None if task.mean is None else Image.open(io.BytesIO(task.mean)).convert("RGB")
        self.worker = JobWorker(engine, task.resize_to, mean)

    def __call__(self, numbers: dict[str, Any]) -> dict[str, list[str]]:
        """Compute batches, unless their shards are there already."""
        names: list[str] = []
        error = self.error
        for number in numbers["batch"]:
            if error:
                break
            try:
                batch = self.shards.read_batch(int(number))
                if not self.shards.has_shard(batch):
                    self.shards.write_shard(batch, self.worker.compute(batch))
                names.append(self.shards.shard_name(batch))
            except UnpriorError as problem:
                error = str(problem)
        return {"shard": [*names, *([""] if error else [])], "error": [*[""] * len(names), *([error] if error else [])]}


def _describe(load: Load) -> EngineDescription | str:
    try:
        return EngineDescription.of(load())
    except UnpriorError as error:
        return str(error)


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
    return lines[-1] if lines else type(error).__name__
