"""What open questions take behind a server: a few of them are asked, and what they take is scaled up.

How many requests an open question needs depends on the tokens of the answers that the model proposes, so it cannot be
counted before. What is asked without the image is measured apart, because all images of a question share it; so are
questions whose candidates are given, because nothing is searched for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from unprior.benchmarks.schema import Example
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.openai.exchanges import Exchange, recording
from unprior.engines.openai.sizes import ANSWER_HEAD, CACHE_BLOCK, REQUEST_HEAD
from unprior.engines.protocol import Query
from unprior.errors import UnpriorError
from unprior.images import open_image
from unprior.images import resize as to_square
from unprior.scoring.cost import KEY_BYTES, RunCost, sample
from unprior.scoring.open_answers import OpenAsker, OpenScores

OPEN_SAMPLE = 4
"""Questions of each kind that are asked: an open question takes many requests."""


@dataclass(frozen=True, slots=True)
class OpenCost:
    """What some open questions take, and what the figure rests on."""

    cost: RunCost
    measured: int
    """Questions that were asked for it."""


def measure_open(engine: HttpEngine, questions: Sequence[Example], resize: int | None = None) -> OpenCost:
    """Ask a few open questions, forget the answers, and scale up what it took: a typical figure, not a bound.

    ``questions`` are all open; what several of them share is counted once, and images are told apart by their paths.
    """
    different = {
        (example.image, example.user_text(engine.layout), example.given): example for example in questions
    }.values()
    free = _measure(engine, [example for example in different if not example.given], resize)
    given = _measure(engine, [example for example in different if example.given], resize)
    cost = replace(free.cost + given.cost, examples=len(questions))
    return OpenCost(cost, free.measured + given.measured)


def _measure(engine: HttpEngine, examples: Sequence[Example], resize: int | None) -> OpenCost:
    """The cost of examples of one kind, which share nothing but questions."""
    queries, layout = [], engine.layout
    for example in sample(examples, OPEN_SAMPLE):
        with suppress(UnpriorError):  # an image that cannot be read fails by itself later
            image = to_square(open_image(example.image), resize)
            queries.append(Query(image, example.user_text(layout), layout.continuations(example.given)))
    if not queries:
        return OpenCost(RunCost(), 0)
    asker, total = OpenAsker(engine), RunCost()
    if not queries[0].candidates:
        texts = list(dict.fromkeys(query.text for query in queries))
        with recording() as recorded:
            asker.search_without_image(texts)
        total += _taken(recorded, len(texts)).scaled(len({example.user_text(layout) for example in examples}))
    with recording() as recorded:
        results = asker.ask(queries)
    stored = sum(_stored(result) for result in results if isinstance(result, OpenScores))
    total += replace(_taken(recorded, len(queries)), stored_bytes=stored).scaled(len(examples))
    return OpenCost(total, len(queries))


def _taken(recorded: Sequence[Exchange], asked: int) -> RunCost:
    """What was sent and received for so many questions."""
    prompts = [each.prompt_tokens for each in recorded]
    if None in prompts:
        raise UnpriorError("an estimate of open questions needs a server that tells how many tokens a prompt has")
    return RunCost(
        asked,
        requests=len(recorded),
        prompt_tokens=sum(filter(None, prompts)),
        cached_tokens=sum(_cached(recorded, asked, with_image=with_image) for with_image in (True, False)),
        generated_tokens=sum(each.generated_tokens for each in recorded),
        sent_bytes=sum(REQUEST_HEAD + each.sent_bytes for each in recorded),
        received_bytes=sum(ANSWER_HEAD + each.received_bytes for each in recorded),
    )


def _cached(recorded: Sequence[Exchange], asked: int, *, with_image: bool) -> float:
    """The first prompt of every question is new; the others repeat it and go on with what one before them has read."""
    prompts = [each.prompt_tokens for each in recorded if each.prompt_tokens and each.with_image == with_image]
    blocks = sum((tokens - 1) // CACHE_BLOCK * CACHE_BLOCK for tokens in prompts)
    return blocks * max(1 - asked / len(prompts), 0) if prompts else 0.0


def _stored(result: OpenScores) -> int:
    return KEY_BYTES + len(json.dumps(result.record(), separators=(",", ":")))
