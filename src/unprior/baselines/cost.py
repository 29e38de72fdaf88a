"""What a method costs: counted and timed on the same examples, one after another, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from PIL import Image

from unprior.baselines.answers import Cost
from unprior.baselines.decoding import Question, decode_texts
from unprior.baselines.method import Method
from unprior.benchmarks.schema import Benchmark, Example
from unprior.engines.protocol import Engine, Proposed, ProposingEngine, Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.load_errors import told
from unprior.errors import UnpriorError, warn
from unprior.images import open_image, resize
from unprior.progress import Progress, Report, silent

COSTED_EXAMPLES = 16
_PROPOSED = 4
"""Answers that are searched for with the image."""


def measure_costs(
    engine: TransformersEngine,
    benchmark: Benchmark,
    methods: Sequence[Method],
    *,
    examples: int = COSTED_EXAMPLES,
    resize_to: int | None = None,
    report: Report = silent,
) -> dict[str, Cost]:
    """Costs per example by name: ``original`` (the answer alone), ``spc`` (answer and scores), and every method.

    The methods take turns on each example, so that a machine that slows down slows all of them down; the first example
    is done once beforehand, untimed. A method that fails on an example has no cost.
    """
    step = max(1, len(benchmark) // examples)
    chosen = list(benchmark)[::step][:examples]
    work: dict[str, Callable[[Image.Image, Example], object]] = {
        "original": lambda image, example: engine.original_answer(image, example.user_text(engine.layout)),
        "spc": partial(_answer_and_score, engine),
    }
    work |= {method.name: partial(_decode, engine, method) for method in methods}
    spent = {name: [0, 0, 0.0] for name in work}
    for number, example in enumerate([chosen[0], *chosen]):
        image = resize(open_image(example.image), resize_to)
        for name, do in list(work.items()):
            images, passes, start = engine.encoded_images, engine.reader.passes, time.perf_counter()
            try:
                do(image, example)
            except Exception as error:  # memory may run out where it did not before
                warn(f"the cost of {name} could not be measured ({told(error)})")
                del work[name]
                continue
            if number:
                for place, value in enumerate(
                    (engine.encoded_images - images, engine.reader.passes - passes, time.perf_counter() - start)
                ):
                    spent[name][place] += value
        report(Progress("Measuring costs", number, len(chosen)))
    count = len(chosen)
    return {
        name: Cost(images=images / count, passes=passes / count, seconds=seconds / count, examples=count)
        for name, (images, passes, seconds) in spent.items()
        if name in work
    }


def _answer_and_score(engine: TransformersEngine, image: Image.Image, example: Example) -> None:
    text, candidates = example.user_text(engine.layout), engine.layout.continuations(example.labels)
    if example.is_open:
        _propose_and_score(engine, image, text)
        return
    engine.answer_batch([Query(image, text, candidates)])
    engine.score_batch([Query(None, text, candidates)])


def _propose_and_score(engine: Engine, image: Image.Image, text: str) -> None:
    """What an open question takes: the answer of the text alone, those with the image, and the prior of all of them."""
    if not isinstance(engine, ProposingEngine):
        raise UnpriorError("this engine does not propose answers to open questions")
    (alone,) = engine.propose_batch([Query(None, text, ())], 1)
    own = alone.candidates if isinstance(alone, Proposed) else ()
    (seen,) = engine.propose_batch([Query(image, text, own)], _PROPOSED)
    engine.score_batch([Query(None, text, seen.candidates if isinstance(seen, Proposed) else own, whole=True)])


def _decode(engine: TransformersEngine, method: Method, image: Image.Image, example: Example) -> None:
    text = example.user_text(method.layout(engine.layout))
    decode_texts(engine, method, [Question(image, text, example.example_id)])
