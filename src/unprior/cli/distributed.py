"""Scoring on a Ray cluster: its options, and the job."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from unprior.cli.benchmarks import image_side
from unprior.cli.console import errors, warn
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.cli.model import ModelOptions
    from unprior.cli.score import Scored
    from unprior.engines.protocol import EngineInfo
    from unprior.scoring.ray.cluster import Pool

RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Score on a Ray cluster: host:port, local for a new one on this machine; without an address the cluster "
        "that this machine belongs to, or else a new one here.",
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes that hold the engine; by default one per GPU or server.", min=1)
]
GpusPerWorker = Annotated[
    float | None, typer.Option(help="GPUs of each; by default --tensor-parallel, or 1, if there are any.", min=0)
]
ShardsFolder = Annotated[
    Path | None, typer.Option(help="Folder for their results that all machines reach; by default OUT/shards.")
]


class RayCommand(TyperCommand):
    """A command whose ``--ray`` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a lone ``--ray`` an empty address."""
        given: list[str] = []
        for index, argument in enumerate(args):
            given.append(argument)
            following = args[index + 1] if index + 1 < len(args) else "-"
            if argument == "--ray" and following.startswith("-"):
                given.append("")
        return super().parse_args(ctx, given)


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Where and by how many a benchmark is scored."""

    address: str | None
    """None for no Ray at all, empty for whatever there is."""
    workers: int | None
    gpus: float | None
    shards: Path | None

    def check(self) -> None:
        """Options of workers mean nothing without them."""
        given = {"--workers": self.workers, "--gpus-per-worker": self.gpus, "--shards": self.shards}
        if self.address is None and (named := [name for name, value in given.items() if value is not None]):
            raise UnpriorError(f"{', '.join(named)}: only with --ray; add it, or leave the others out")

    def pool(self, model: ModelOptions) -> Pool:
        """The workers: as many as asked for, or as there are servers or GPUs."""
        from unprior.scoring.ray.cluster import LOCAL, Pool, cluster_resources

        there = cluster_resources()
        if model.engine == "openai":
            pool = Pool(self.workers or len(model.base_urls), self.gpus or 0)
        else:
            wanted = float(model.tensor_parallel) if there.get("GPU") else 0.0
            gpus = wanted if self.gpus is None else self.gpus
            fitting = there.get("GPU", 0) / gpus if gpus else there.get("CPU", 1) / 2
            pool = Pool(self.workers or max(1, int(fitting)), gpus)
        needed = {"GPU": pool.workers * pool.gpus, "CPU": pool.workers * pool.cpus}
        if scarce := [kind for kind, count in needed.items() if count > there.get(kind, 0)]:
            lack = ", ".join(f"{needed[kind]:g} {kind}s where there are {there.get(kind, 0):g}" for kind in scarce)
            workers = "one worker needs" if pool.workers == 1 else f"{pool.workers} workers need"
            if self.address == LOCAL and "GPU" in scarce:
                raise UnpriorError(f"{workers} {lack}; give fewer --workers or --gpus-per-worker")
            warn(f"{workers} {lack}; some will wait until the cluster grows")
        return pool


def score_on_cluster(
    model: ModelOptions,
    ray: RayOptions,
    whole: Benchmark,
    questions: Benchmark,
    out: Path,
    *,
    views: tuple[str, ...],
    resize: int | None,
    batch_size: int,
    allow_censored: bool,
) -> Scored:
    """Score questions, a part of the whole benchmark, on a cluster; see :func:`~unprior.cli.score.score_benchmark`."""
    from unprior.cli.score import SHARDS, write_run
    from unprior.scoring.ray.cluster import LOCAL, connected
    from unprior.scoring.ray.run import DistributedRun
    from unprior.scoring.store import ScoreStore

    # Workers may start in another folder.
    elsewhere = replace(model, folder=str(Path(model.model).resolve())) if Path(model.model).is_dir() else model
    with ExitStack() as opened:
        with errors.status("Starting Ray …" if ray.address in ("", LOCAL) else f"Joining Ray at {ray.address} …"):
            opened.enter_context(connected(ray.address or None, ray.workers))
        store = opened.enter_context(ScoreStore(out / "store.sqlite"))
        pool = ray.pool(model)
        engine = _describe(elsewhere, pool)
        side = image_side(whole, engine.model_type, resize)
        folder = ray.shards or out / SHARDS
        store.set_info({**engine.identity, SHARDS: str(folder.absolute())})
        run = DistributedRun(
            elsewhere.load, engine, questions, store, folder, pool, views=views, resize_to=side,
            batch_size=batch_size, whole=whole, allow_censored=allow_censored,
        )  # fmt: skip
        workers = "one worker" if pool.workers == 1 else f"{pool.workers} workers"
        return write_run(run, whole, out / "scores.parquet", f"Scoring with {workers}")


def _describe(model: ModelOptions, pool: Pool) -> EngineInfo:
    """A server is asked from here; other models are loaded where the workers are."""
    from unprior.engines.protocol import RemoteEngineInfo
    from unprior.scoring.ray.cluster import describe_remotely

    if model.engine == "openai":
        return RemoteEngineInfo.from_engine(model.load())
    with errors.status(f"Loading {model.model} on a worker …"):
        return describe_remotely(model.load, pool)
