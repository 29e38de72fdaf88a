"""The command that scores a benchmark."""

from __future__ import annotations

from typing import Annotated

import typer

from unprior.cli.console import AsJson, output, print_json
from unprior.cli.distributed import GpusPerWorker, RayAddress, ShardsFolder, Workers
from unprior.cli.estimate import DryRun, print_plan
from unprior.cli.options import takes_config
from unprior.cli.progress import reporting
from unprior.runs.config import RunConfig


@takes_config(
    "model", "engine", "benchmark", "output",
    needed=("model", "benchmark", "out"),
    defaults={"batch_size": 8},
    texts={"out": "Folder for the store and the score table."},
    examples=(
        "unprior score --model Qwen/Qwen3-VL-8B-Instruct --benchmark cdh-bench --out run",
        "unprior score --model my-model --engine openai --base-url http://localhost:8000 --benchmark mine.jsonl "
        "--out run --dry-run",
    ),
)  # fmt: skip
def score(
    *,
    config: RunConfig,
    views: Annotated[
        str,
        typer.Option(help="Further prior views, separated by commas: white, black, mean.", rich_help_panel="Benchmark"),
    ] = "",
    limit: Annotated[
        int | None, typer.Option(help="Only the first examples.", min=1, rich_help_panel="Benchmark")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="Only part i of n, as i/n with i from 1.", rich_help_panel="Benchmark")
    ] = None,
    ray: RayAddress = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    shards: ShardsFolder = None,
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
    summary, written = scored.summary, scored.path
    failures = [{"example": failure.example_id, "reason": failure.reason} for failure in summary.failures]
    if as_json:
        print_json(
            {
                "examples": summary.examples,
                "computed": summary.computed,
                "reused": summary.reused,
                "failures": failures,
                "censored": summary.censored,
                "cut_off": summary.cut_off,
                "out": None if written is None else str(written),
            }
        )
    else:
        done = summary.examples - len(failures)
        where = "no score table" if written is None else str(written)
        work = f"{summary.computed:,} results computed now, {summary.reused:,} stored before"
        output.print(f"{done:,} of {summary.examples:,} examples scored ({work}) → {where}", soft_wrap=True)
        if summary.censored:
            verdict = "taken as bounds" if config.engine.allow_censored else "refused"
            output.print(f"{summary.censored:,} examples with censored candidates: {verdict}", soft_wrap=True)
    if failures:
        raise typer.Exit(1)
