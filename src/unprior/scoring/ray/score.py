"""Scoring a benchmark on a Ray cluster: where, by how many workers, and the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unprior.benchmarks.schema import Benchmark
from unprior.engines.load import BATCH_SIZE, CANDIDATES, load_engine
from unprior.engines.protocol import EngineInfo, RemoteEngineInfo
from unprior.errors import UnpriorError, format_option, warn
from unprior.progress import Progress, Report, silent
from unprior.scoring.benchmark import SHARDS, STORE, TABLE, Scored, image_side, write_run
from unprior.scoring.ray.cluster import LOCAL, Load, Pool, cluster_resources, connected, describe_remotely
from unprior.scoring.ray.run import DistributedRun
from unprior.scoring.store import ScoreStore


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Where and by how many a benchmark is scored."""

    address: str | None
    """None for no Ray at all, empty for whatever there is."""
    workers: int | None = None
    gpus: float | None = None
    shards: Path | None = None

    def check(self) -> None:
        """Options of workers mean nothing without them."""
        flags = {"workers": "--workers", "gpus": "--gpus-per-worker", "shards": "--shards"}
        given = {name: value for name in flags if (value := getattr(self, name)) is not None}
        if self.address is None and given:
            named = ", ".join(format_option(name, value, flag=flags[name]) for name, value in given.items())
            ray = format_option("address", flag="--ray")
            raise UnpriorError(f"{named}: only with {ray}; add it, or leave the others out")

    def pool(self, loading: Mapping[str, Any]) -> Pool:
        """The workers: as many as asked for, or as there are servers or GPUs."""
        there = cluster_resources()
        if loading["engine"] == "openai":
            pool = Pool(self.workers or len(loading["base_urls"]), self.gpus or 0)
        else:
            wanted = float(loading["tensor_parallel"]) if there.get("GPU") else 0.0
            gpus = wanted if self.gpus is None else self.gpus
            fitting = there.get("GPU", 0) / gpus if gpus else there.get("CPU", 1) / 2
            pool = Pool(self.workers or max(1, int(fitting)), gpus)
        needed = {"GPU": pool.workers * pool.gpus, "CPU": pool.workers * pool.cpus}
        if scarce := [kind for kind, count in needed.items() if count > there.get(kind, 0)]:
            lack = ", ".join(f"{needed[kind]:g} {kind}s where there are {there.get(kind, 0):g}" for kind in scarce)
            workers = "one worker needs" if pool.workers == 1 else f"{pool.workers} workers need"
            if self.address == LOCAL and "GPU" in scarce:
                raise UnpriorError(f"{workers} {lack}; give fewer workers, or fewer GPUs to each")
            warn(f"{workers} {lack}; some will wait until the cluster grows")
        return pool


def score_on_cluster(
    loading: Mapping[str, Any],
    ray: RayOptions,
    benchmark: Benchmark,
    out: Path,
    *,
    questions: Benchmark | None = None,
    views: Sequence[str] = (),
    resize: int | None = None,
    batch_size: int = BATCH_SIZE,
    allow_censored: bool = False,
    prior: str = "plain",
    candidates: int = CANDIDATES,
    report: Report = silent,
) -> Scored:
    """Score a benchmark, or a part of it, on a cluster; see :func:`~unprior.scoring.benchmark.score_benchmark`.

    ``loading`` holds the arguments of :func:`~unprior.engines.load.load_engine` for the workers. ``resize`` is as in
    :func:`~unprior.scoring.benchmark.score`: None follows the paper.
    """
    model = Path(loading["model"])
    # Workers may start in another folder.
    folder = str(model.resolve()) if model.is_dir() else None
    load: Load = partial(load_engine, **loading, folder=folder)
    with ExitStack() as opened:
        report(Progress("Starting Ray" if ray.address in ("", LOCAL) else f"Joining Ray at {ray.address}"))
        opened.enter_context(connected(ray.address or None, ray.workers))
        store = opened.enter_context(ScoreStore(out / STORE))
        pool = ray.pool(loading)
        engine = _describe(load, loading, pool, report)
        side = image_side(benchmark, engine.model_type, resize)
        shards = ray.shards or out / SHARDS
        store.set_info({**engine.identity, SHARDS: str(shards.absolute())})
        run = DistributedRun(
            load, engine, benchmark if questions is None else questions, store, shards, pool, views=views,
            resize_to=side, batch_size=batch_size, full_benchmark=benchmark, allow_censored=allow_censored,
            prior=prior, candidates=candidates,
        )  # fmt: skip
        return write_run(run, benchmark, out / TABLE, report)


def _describe(load: Load, loading: Mapping[str, Any], pool: Pool, report: Report) -> EngineInfo:
    """A server is asked from here; other models are loaded where the workers are."""
    if loading["engine"] == "openai":
        return RemoteEngineInfo.from_engine(load_engine(**loading, report=report))
    report(Progress(f"Loading {loading['model']} on a worker"))
    return describe_remotely(load, pool)
