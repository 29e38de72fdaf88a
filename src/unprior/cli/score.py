"""The command that scores a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.benchmarks import (
    BenchmarkName,
    DataDir,
    Resize,
    VariantName,
    WorldSeed,
    image_side,
    prepare,
    report_missing_images,
)
from unprior.cli.console import AsJson, errors, output, print_json, warn
from unprior.cli.distributed import GpusPerWorker, RayAddress, RayOptions, ShardsFolder, Workers, score_on_cluster
from unprior.cli.estimate import estimate, not_stored, print_estimate
from unprior.cli.model import (
    DEFAULT_CONCURRENCY,
    DEFAULT_NEW_TOKENS,
    ENGINES,
    AllowCensored,
    Attention,
    BaseUrls,
    BatchSize,
    Concurrency,
    Device,
    DeviceMap,
    DType,
    EngineName,
    MaxNewTokens,
    ModelName,
    ModelOptions,
    Revision,
    TensorParallel,
    TrustRemoteCode,
)
from unprior.cli.progress import progress
from unprior.errors import UnpriorError
from unprior.runs.folder import RunRecord

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.engines.protocol import Engine
    from unprior.scores import ScoreTable
    from unprior.scoring.ray.run import DistributedRun
    from unprior.scoring.rows import Failure
    from unprior.scoring.run import ScoringRun, Summary

SHARDS = "shards"


@dataclass(frozen=True)
class Scored:
    """What scoring gave: a summary, and the file of the table if anything could be scored."""

    summary: Summary
    path: Path | None

    def table(self, needed_to: str) -> ScoreTable:
        """The table; without one there is nothing to do."""
        from unprior.scores import read_scores

        if self.path is None:
            raise UnpriorError(f"no example could be scored, so there is nothing to {needed_to}")
        return read_scores(self.path, require_answers=False)


def score(
    model: ModelName,
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option(help="Folder for the store and the score table.")],
    views: Annotated[str, typer.Option(help="Further prior views, separated by commas: white, black, mean.")] = "",
    limit: Annotated[int | None, typer.Option(help="Only the first examples.", min=1)] = None,
    shard: Annotated[str | None, typer.Option(help="Only part i of n, as i/n with i from 1.")] = None,
    variant: VariantName = None,
    seed: WorldSeed = 0,
    data_dir: DataDir = None,
    batch_size: BatchSize = 8,
    resize: Resize = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    engine: EngineName = ENGINES[0],
    base_url: BaseUrls = None,
    concurrency: Concurrency = DEFAULT_CONCURRENCY,
    tensor_parallel: TensorParallel = 1,
    allow_censored: AllowCensored = False,
    max_new_tokens: MaxNewTokens = DEFAULT_NEW_TOKENS,
    ray: RayAddress = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    shards: ShardsFolder = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what it would take: requests to the server, tokens, bytes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a model every question and score its candidate answers with and without the image.

    Results are stored as they come; the same command again computes only what is missing.
    """
    from unprior.benchmarks.pairs import refuse_unsound_questions

    urls = tuple(base_url or ())
    options = ModelOptions(
        model, revision, dtype, device, device_map, attention, engine, urls, concurrency, tensor_parallel,
        most_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code,
    )  # fmt: skip
    options.check()
    if dry_run and (engine != "openai" or ray is not None):
        raise UnpriorError("--dry-run counts requests to a server; use it with --engine openai and without --ray")
    cluster = RayOptions(ray, workers, gpus_per_worker, shards)
    cluster.check()
    record = RunRecord.of(options, benchmark, variant, seed, data_dir, resize, allow_censored=allow_censored)
    whole = prepare(benchmark, out, seed, variant, data_dir)
    refuse_unsound_questions(whole)
    questions = _part(whole, limit, shard)
    report_missing_images(questions)
    chosen = tuple(view.strip() for view in views.split(",") if view.strip())
    if dry_run:
        asked = options.load()
        side = image_side(whole, asked.model_type, resize)
        left = not_stored(asked, whole, questions, out / "store.sqlite", chosen, side)
        cost = estimate(asked, left, views=chosen, resize=side, servers=len(urls))
        print_estimate(cost, len(questions) - len(left), as_json=as_json)
        return
    if ray is None:
        asked = options.load()
        record.write(out)
        side = image_side(whole, asked.model_type, resize)
        scored = score_benchmark(
            asked, whole, questions, out, views=chosen, resize=side, batch_size=batch_size,
            allow_censored=allow_censored,
        )  # fmt: skip
    else:
        record.write(out)
        scored = score_on_cluster(
            options, cluster, whole, questions, out, views=chosen, resize=resize, batch_size=batch_size,
            allow_censored=allow_censored,
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
            verdict = "taken as bounds" if allow_censored else "refused"
            output.print(f"{summary.censored:,} examples with censored candidates: {verdict}", soft_wrap=True)
        print_failures(summary.failures)
    if failures:
        raise typer.Exit(1)


def score_benchmark(
    engine: Engine,
    whole: Benchmark,
    questions: Benchmark,
    out: Path,
    *,
    views: tuple[str, ...] = (),
    resize: int | None = None,
    batch_size: int = 8,
    path: Path | None = None,
    allow_censored: bool = False,
) -> Scored:
    """Score questions, a part of the whole benchmark, and write the table of all that is stored by now.

    The store lies in ``out``, and so does the table unless it has a ``path`` of its own.
    """
    from unprior.scoring.ray.shards import ShardFolder
    from unprior.scoring.run import ScoringRun
    from unprior.scoring.store import ScoreStore

    with ScoreStore(out / "store.sqlite") as store:
        run = ScoringRun(
            engine, questions, store, views=views, resize_to=resize, batch_size=batch_size, whole=whole,
            allow_censored=allow_censored,
        )  # fmt: skip
        ShardFolder(Path(store.info().get(SHARDS, out / SHARDS))).merge_leftovers(store)  # of a job that was killed
        store.set_info(engine.identity)
        return write_run(run, whole, path or out / "scores.parquet", "Scoring")


def write_run(run: ScoringRun | DistributedRun, whole: Benchmark, path: Path, doing: str) -> Scored:
    """Run, and write the table of everything that is stored for the whole benchmark, so that parts add up to one."""
    from unprior.scoring.rows import StoredRows

    everything = len(run.plan.benchmark) == len(whole)
    with writing_table(path) as written:
        try:
            with progress(doing, "scored") as report:
                summary = run.run(report, written.add if everything else None)
        except KeyboardInterrupt:
            errors.print("Stopped. What was scored is stored; the same command goes on from there.", soft_wrap=True)
            raise
        if not everything and len(summary.failures) < summary.examples:
            for part in StoredRows(run.plan.of(whole), run.store, allow_censored=run.rows.allow_censored).parts():
                if table := part.table():
                    written.add(table)
    from unprior.scores.checked import warn_about_cut_off

    warn_about_cut_off(summary.cut_off, summary.examples - len(summary.failures))
    if run.store.damaged:
        warn(f"{run.store.path}: {len(run.store.damaged):,} stored results were damaged and have been computed again")
    return Scored(summary, written.path)


@dataclass
class WrittenTable:
    """A score table on its way to a file."""

    add: Callable[[ScoreTable], None]
    """Takes the next rows."""
    path: Path | None = None
    """The file, when it has rows and is whole."""


@contextmanager
def writing_table(path: Path) -> Iterator[WrittenTable]:
    """Write a table as its parts come; a warning follows if the candidates mean little to the model."""
    import numpy as np

    from unprior.engines.protocol import MIN_MASS
    from unprior.scores.files import writing_scores

    masses: list[Any] = []
    with writing_scores(path) as write:

        def add(table: ScoreTable) -> None:
            masses.append(np.add.reduceat(np.exp(table.image_scores), table.offsets[:-1]))
            write(table)

        written = WrittenTable(add)
        yield written
    if not masses:
        return
    written.path = path
    mass = np.median(np.concatenate(masses))
    if mass < MIN_MASS:  # scores of candidates that the model hardly considers mean little
        warn(
            f"the candidates hold only {mass:.1%} of the model's probability (median): it would rather say "
            f"something else; check the prompt layout and the chat template"
        )


def print_failures(failures: Iterable[Failure]) -> None:
    """Name every example that could not be done, and why."""
    for failure in failures:
        errors.print(f"  failed: {failure.example_id}: {failure.reason}", soft_wrap=True)


def _part(benchmark: Benchmark, limit: int | None, shard: str | None) -> Benchmark:
    examples = list(benchmark)[:limit]
    if shard is not None:
        part, _, parts = shard.partition("/")
        if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
            raise UnpriorError(f"--shard {shard}: give part and number of parts as i/n with i from 1 to n, e.g. 2/4")
        examples = examples[int(part) - 1 :: int(parts)]
        if not examples:
            raise UnpriorError(f"--shard {shard}: there are fewer examples than parts, this part is empty")
    return benchmark.with_examples(examples)
