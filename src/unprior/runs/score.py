"""What `unprior score` does, from a configuration, and what it would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.progress import Report, silent
from unprior.runs.config import RunConfig
from unprior.runs.folder import check_folder, keeping_method
from unprior.runs.questions import load_questions

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.engines.protocol import Engine
    from unprior.scoring.benchmark import Scored
    from unprior.scoring.cost import RunCost
    from unprior.scoring.ray.score import RayOptions


def score_run(
    config: RunConfig,
    *,
    views: Sequence[str] = (),
    limit: int | None = None,
    shard: str | None = None,
    ray: RayOptions | None = None,
    few_threads: bool = False,
    report: Report = silent,
) -> Scored:
    """Score the benchmark of a configuration with its model, here or on a cluster, and note the configuration."""
    from unprior.benchmarks.pairs import refuse_unsound_questions
    from unprior.engines.load import load_engine
    from unprior.scoring.benchmark import check_images, image_side, part_of, score_benchmark

    config.check()
    check_folder(config)
    prior = config.method.prior
    noted = keeping_method(config).with_options(prior=prior)
    benchmark, out = load_questions(config, report), config.output.folder
    refuse_unsound_questions(benchmark)
    questions = part_of(benchmark, limit, shard)
    check_images(questions)
    loading = {**config.loading, "few_threads": few_threads}
    batch_size, allow_censored = config.engine.batch_size, config.engine.allow_censored
    if ray is not None:
        from unprior.scoring.ray.score import score_on_cluster

        noted.write(early=True)
        scored = score_on_cluster(
            loading, ray, benchmark, out, questions=questions, views=views, resize=config.benchmark.resize,
            batch_size=batch_size, allow_censored=allow_censored, prior=prior,
            candidates=config.benchmark.candidates, report=report,
        )  # fmt: skip
        noted.write()
        return scored
    engine = load_engine(**loading, report=report)
    noted.write(early=True)
    side = image_side(benchmark, engine.model_type, config.benchmark.resize)
    scored = score_benchmark(
        engine, benchmark, out, questions=questions, views=views, resize=side, batch_size=batch_size,
        allow_censored=allow_censored, prior=prior,
            candidates=config.benchmark.candidates, report=report,
    )  # fmt: skip
    noted.write()
    return scored


def score_all(config: RunConfig, engine: Engine, benchmark: Benchmark, report: Report) -> tuple[Scored, int | None]:
    """Score all questions with a loaded model; also gives the side of the square that images were brought to."""
    from unprior.scoring.benchmark import image_side, score_benchmark

    side = image_side(benchmark, engine.model_type, config.benchmark.resize)
    scored = score_benchmark(
        engine, benchmark, config.output.folder, resize=side, batch_size=config.engine.batch_size,
        allow_censored=config.engine.allow_censored, prior=config.method.prior,
        candidates=config.benchmark.candidates, report=report,
    )  # fmt: skip
    return scored, side


def write_open(config: RunConfig, engine: Engine, benchmark: Benchmark, side: int | None) -> None:
    """Write the open questions once more, with all that the model proposed: their study compares other candidates."""
    from unprior.scoring.benchmark import score_benchmark
    from unprior.studies.inputs import OPEN_FOLDER

    questions = benchmark.with_examples([example for example in benchmark if example.is_open])
    score_benchmark(
        engine, questions, config.output.folder, resize=side, batch_size=config.engine.batch_size,
        path=config.output.folder / OPEN_FOLDER / "scores.parquet", allow_censored=config.engine.allow_censored,
        all_candidates=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is stored in a run folder, and what the rest will take."""

    stored_results: int
    """Results in the store, of whatever model and benchmark."""
    stored_examples: int | None = None
    """Examples that have all their results; None where only the model could tell."""
    cost: RunCost | None = None
    """What the other examples take, of a model behind a server."""
    open_examples: int = 0
    """Open questions among the other examples."""
    open_measured: int = 0
    """Those that were asked to find out what an open question takes."""


def plan_run(
    config: RunConfig,
    *,
    views: Sequence[str] = (),
    limit: int | None = None,
    shard: str | None = None,
    report: Report = silent,
) -> RunPlan:
    """Look at the store, and at a server; a model in this process is not loaded.

    >>> plan_run(RunConfig.from_options(out="nowhere")).stored_results
    0
    """
    from unprior.scoring.benchmark import STORE, check_images, image_side, part_of
    from unprior.scoring.store import ScoreStore

    config.check()
    path = config.output.folder / STORE
    stored = 0
    if path.exists():
        with ScoreStore(path) as store:
            stored, _ = store.counts()
    if config.engine.name != "openai":
        return RunPlan(stored)
    from unprior.engines.load import load_engine
    from unprior.scoring.estimate import estimate, not_stored

    benchmark = load_questions(config, report)
    questions = part_of(benchmark, limit, shard)
    check_images(questions)
    engine = load_engine(**config.loading, report=report)
    side = image_side(benchmark, engine.model_type, config.benchmark.resize)
    asked: dict[str, Any] = {"views": views, "resize": side, "prior": config.method.prior}
    left = not_stored(engine, benchmark, path, questions=questions, **asked)
    found = estimate(engine, left, servers=len(config.engine.base_urls), full_benchmark=benchmark, **asked)
    return RunPlan(stored, len(questions) - len(left), found.cost, found.open_examples, found.open_measured)
