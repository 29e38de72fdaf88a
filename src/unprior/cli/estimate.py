"""What a scoring run will take, for `unprior score --dry-run`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from unprior.cli.console import output, print_json
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.engines.protocol import Engine
    from unprior.scoring.cost import Cost

_PICTURES, _TEXTS = 16, 64
_LINES = {
    "requests": "requests",
    "prompt_tokens": "prompt tokens",
    "cached_tokens": "of these in the server's cache",
    "generated_tokens": "generated tokens",
    "sent_bytes": "bytes sent",
    "received_bytes": "bytes received",
    "stored_bytes": "bytes stored",
}


def estimate(
    engine: Engine,
    questions: Benchmark,
    *,
    views: tuple[str, ...] = (),
    resize: int | None = None,
    servers: int = 1,
) -> Cost:
    """Predict the cost of scoring questions, from a few of them."""
    from unprior.engines.openai.engine import HttpEngine
    from unprior.engines.protocol import Query
    from unprior.images import open_image
    from unprior.images import resize as to_square
    from unprior.scoring.cost import Cost, predict, sample

    if not isinstance(engine, HttpEngine):
        raise UnpriorError("only requests to a server can be counted before; use --engine openai")
    if not len(questions):
        return Cost()
    queries = []
    for example in sample(questions, _PICTURES):
        with suppress(UnpriorError):  # a picture that cannot be read fails by itself later
            picture = to_square(open_image(example.image), resize)
            queries.append(
                Query(picture, example.user_text(engine.layout), engine.layout.continuations(example.labels))
            )
    texts = [example.user_text(engine.layout) for example in sample(questions, _TEXTS)]
    sizes = engine.sizes(queries, texts)
    return predict(questions, sizes, layout=engine.layout, views=views, resized=resize is not None, servers=servers)


def not_stored(
    engine: Engine, whole: Benchmark, questions: Benchmark, store: Path, views: tuple[str, ...], resize: int | None
) -> Benchmark:
    """The questions that lack a result; what one of them has already is counted as if it had nothing."""
    from unprior.scoring.plan import ScoringPlan
    from unprior.scoring.store import ScoreStore

    plan = ScoringPlan(engine, questions, views=views, resize_to=resize, whole=whole)
    if not store.exists():
        return questions
    with ScoreStore(store) as opened:
        left = []
        for part in plan.parts():
            missing = set(opened.missing(key for planned in part.examples for key in planned.keys))
            left += [planned.example for planned in part.examples if not missing.isdisjoint(planned.keys)]
    return questions.with_examples(left)


def print_estimate(cost: Cost, stored: int, *, as_json: bool) -> None:
    """Show a prediction; ``stored`` examples have all their results already and are not part of it."""
    if as_json:
        print_json({"stored": stored, **{name: round(value) for name, value in asdict(cost).items()}})
        return
    from unprior.tables.terminal import plain_table

    table = plain_table()
    table.add_column("to do")
    for name in ("in total", "per example"):
        table.add_column(name, justify="right")
    table.add_row("examples", f"{cost.examples:,.0f}", "")
    for name, shown in _LINES.items():
        value = getattr(cost, name)
        table.add_row(shown, f"{value:,.0f}", f"{value / max(cost.examples, 1):,.1f}")
    output.print(table)
    already = "1 example is" if stored == 1 else f"{stored:,} examples are"
    output.print(f"{already} stored already. Nothing was scored now.", soft_wrap=True)
    output.print("Examples that lack anything count in full; cached tokens are for blocks of 16.", soft_wrap=True)
