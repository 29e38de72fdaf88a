"""What a scoring run will take, and what of it is stored already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from unprior.benchmarks.schema import Benchmark
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Engine, EngineInfo, Query
from unprior.errors import UnpriorError, format_option
from unprior.images import open_image
from unprior.images import resize as to_square
from unprior.scoring.claims import claim_views
from unprior.scoring.cost import RunCost, predict, sample
from unprior.scoring.open_cost import measure_open
from unprior.scoring.plan import ScoringPlan
from unprior.scoring.store import ScoreStore

_IMAGES, _TEXTS = 16, 64


@dataclass(frozen=True, slots=True)
class Estimate:
    """What questions will take, and how it is known."""

    cost: RunCost
    """Counted for questions with options; scaled up from a few for open ones: a typical figure, not a bound."""
    open_examples: int = 0
    """Open questions among them."""
    open_measured: int = 0
    """Open questions that were asked for it."""


def estimate(
    engine: Engine,
    questions: Benchmark,
    *,
    views: Sequence[str] = (),
    resize: int | None = None,
    servers: int = 1,
    prior: str = "plain",
    full_benchmark: Benchmark | None = None,
) -> Estimate:
    """Predict the cost of scoring questions, from a few of them.

    See :func:`~unprior.scoring.cost.predict` and, for open ones, :func:`~unprior.scoring.open_cost.measure_open`.
    """
    if not isinstance(engine, HttpEngine):
        raise UnpriorError(f"only requests to a server can be counted before; use {format_option('engine', 'openai')}")
    closed = questions.with_examples([example for example in questions if not example.is_open])
    cost = _predict(engine, closed, views, resize, servers, prior, full_benchmark) if len(closed) else RunCost()
    answered = measure_open(engine, [example for example in questions if example.is_open], resize)
    return Estimate(cost + answered.cost, len(questions) - len(closed), answered.measured)


def _predict(
    engine: HttpEngine,
    questions: Benchmark,
    views: Sequence[str],
    resize: int | None,
    servers: int,
    prior: str,
    full_benchmark: Benchmark | None,
) -> RunCost:
    queries = []
    for example in sample(questions, _IMAGES):
        with suppress(UnpriorError):  # an image that cannot be read fails by itself later
            image = to_square(open_image(example.image), resize)
            queries.append(Query(image, example.user_text(engine.layout), engine.layout.continuations(example.labels)))
    queries += _other_candidates(engine, queries, questions, prior)
    texts = [example.user_text(engine.layout) for example in sample(questions, _TEXTS)]
    sizes = engine.sizes(queries, texts)
    return predict(
        questions, sizes, layout=engine.layout, views=views, resized=resize is not None, servers=servers, prior=prior,
        full_benchmark=full_benchmark,
    )  # fmt: skip


def _other_candidates(
    engine: EngineInfo, queries: Sequence[Query], questions: Benchmark, prior: str
) -> Iterator[Query]:
    """A query for candidates that only questions about claims have, so that their tokens are known, too."""
    known = {query.candidates for query in queries}
    example = next((example for example in questions if example.claims is not None), None)
    for view in () if example is None or not queries else claim_views(example, prior, engine.layout):
        candidates = engine.layout.continuations(view.labels)
        if candidates not in known:
            known.add(candidates)
            yield Query(queries[0].image, view.text, candidates)


def not_stored(
    engine: EngineInfo,
    benchmark: Benchmark,
    store: Path,
    *,
    questions: Benchmark | None = None,
    views: Sequence[str] = (),
    resize: int | None = None,
    prior: str = "plain",
) -> Benchmark:
    """The questions that lack a result; what one of them has already is counted as if it had nothing."""
    questions = benchmark if questions is None else questions
    plan = ScoringPlan(engine, questions, views=views, resize_to=resize, full_benchmark=benchmark, prior=prior)
    if not store.exists():
        return questions
    with ScoreStore(store) as opened:
        left = []
        for chunk in plan.chunks():
            missing = set(opened.missing(key for planned in chunk.examples for key in planned.keys))
            left += [planned.example for planned in chunk.examples if not missing.isdisjoint(planned.keys)]
    return questions.with_examples(left)
