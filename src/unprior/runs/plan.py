"""What a run would do and what it has done already, without doing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unprior.progress import Report, silent
from unprior.runs.config import RunConfig

if TYPE_CHECKING:
    from unprior.scoring.cost import RunCost


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is stored in a run folder, and what the rest will take."""

    stored_results: int
    """Results in the store, of whatever model and benchmark."""
    stored_examples: int | None = None
    """Examples that have all their results; None where only the model could tell."""
    cost: RunCost | None = None
    """What the other examples take, of a model behind a server."""


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
    from unprior.runs.questions import load_questions
    from unprior.scoring.estimate import estimate, not_stored

    benchmark = load_questions(config, report)
    questions = part_of(benchmark, limit, shard)
    check_images(questions)
    engine = load_engine(**config.loading, report=report)
    side = image_side(benchmark, engine.model_type, config.benchmark.resize)
    left = not_stored(engine, benchmark, path, questions=questions, views=views, resize=side)
    cost = estimate(engine, left, views=views, resize=side, servers=len(config.engine.base_urls))
    return RunPlan(stored, len(questions) - len(left), cost)
