"""The command that scores a benchmark."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from unprior.cli.console import AsJson, flag, output, print_json
from unprior.cli.estimate import DryRun, print_plan
from unprior.cli.lazy import GroupedCommand, examples
from unprior.cli.options import takes_config
from unprior.cli.progress import reporting
from unprior.runs.config import RunConfig

_Ray = Annotated[
    str | None,
    flag(
        "Cluster",
        "Score on a Ray cluster: host:port, local for a new one on this machine; without an address the cluster "
        "that this machine belongs to, or else a new one here.",
        "--ray",
        metavar="[ADDRESS]",
    ),
]
_Workers = Annotated[
    int | None, flag("Cluster", "Processes that hold the engine; by default one per GPU or server.", min=1)
]
_GpusPerWorker = Annotated[
    float | None, flag("Cluster", "GPUs of each; by default --tensor-parallel, or 1, if there are any.", min=0)
]
_Shards = Annotated[
    Path | None, flag("Cluster", "Folder for their results that all machines reach; by default OUT/shards.")
]


class RayCommand(GroupedCommand):
    """A command whose ``--ray`` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a lone ``--ray`` an empty address."""
        given: list[str] = []
        for argument, following in pairwise([*args, "-"]):
            alone = argument == "--ray" and following.startswith("-")
            given += [argument, ""] if alone else [argument]
        return super().parse_args(ctx, given)


@examples(
    "unprior score --model Qwen/Qwen3-VL-8B-Instruct --benchmark cdh-bench --out run",
    "unprior score --model my-model --engine openai --base-url http://localhost:8000 --benchmark mine.jsonl "
    "--out run --dry-run",
)
@takes_config(
    "model", "engine", "prompt", "benchmark", "prior", "output",
    needed=("model", "benchmark", "out"),
    keeps=("batch_size", "prior"),
    texts={"out": "Folder for the store and the score table."},
)  # fmt: skip
def score(
    *,
    config: RunConfig,
    views: Annotated[str, flag("Benchmark", "Further prior views, separated by commas: white, black, mean.")] = "",
    limit: Annotated[int | None, flag("Benchmark", "Only the first examples.", min=1)] = None,
    shard: Annotated[str | None, flag("Benchmark", "Only part i of n, as i/n with i from 1.")] = None,
    ray: _Ray = None,
    workers: _Workers = None,
    gpus_per_worker: _GpusPerWorker = None,
    shards: _Shards = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Ask a model every question and score its candidate answers with and without the image.

    Results are stored as they come; the same command again computes only what is missing.
    """
    from unprior.runs.score import score_run
    from unprior.scoring.ray.score import RayOptions

    config.check()
    cluster = RayOptions(ray, workers, gpus_per_worker, shards)
    cluster.check()
    chosen = tuple(view.strip() for view in views.split(",") if view.strip())
    if dry_run:
        print_plan(config, views=chosen, limit=limit, shard=shard, as_json=as_json)
        return
    with reporting() as report:
        scored = score_run(
            config, views=chosen, limit=limit, shard=shard, ray=None if ray is None else cluster, few_threads=True,
            report=report,
        )  # fmt: skip
    summary, written = scored.summary, None if scored.path is None else str(scored.path)
    failures = [{"example": failure.example_id, "reason": failure.reason} for failure in summary.failures]
    if as_json:
        print_json(asdict(summary) | {"failures": failures, "out": written})
    else:
        done = summary.examples - len(failures)
        where = written or "no score table"
        work = f"{summary.computed:,} results computed now, {summary.reused:,} stored before"
        output.print(f"{done:,} of {summary.examples:,} examples scored ({work}) → {where}", soft_wrap=True)
        if config.method.prior != "plain":
            passes = f"{summary.image_passes:.1f} with the image, {summary.text_passes:.1f} without"
            output.print(
                f"Passes per question ({config.method.prior} prior): {passes}, before any are shared", soft_wrap=True
            )
        if summary.censored:
            verdict = "taken as bounds" if config.engine.allow_censored else "refused"
            output.print(f"{summary.censored:,} examples with censored candidates: {verdict}", soft_wrap=True)
    if failures:
        raise typer.Exit(1)
