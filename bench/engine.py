"""What the transformers engine saves: shared prefixes and shared priors against the plain recipe, in one run.

Run ``make bench-engine``; it prints the tables and puts them into docs/reference/measurements.md. The model has random
weights and tens of millions of parameters, so that the time is spent in the model.
"""

from __future__ import annotations

import copy
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers
from PIL import Image

import tiny_models
from markdown import markdown, publish
from unprior.engines.protocol import Answered, Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.prompts import PromptLayout

QUESTIONS = (
    "How many fingers does the hand in the picture have?",
    "Look at the animal on the left. How many legs does it have?",
    "What color is the banana that lies on the table?",
    "Which object is larger in this picture, the mouse or the elephant?",
)
OPTIONS = ("five", "six", "seven", "four")
LETTERS = ("A", "B", "C", "D")
ANSWER_TOKENS = 2
"""Tokens of an original answer: a letter and the end of the turn, as instructed models give it."""


@dataclass
class Work:
    """What passed through the model."""

    forwards: int = 0
    tokens: int = 0
    images: int = 0
    seconds: float = 0.0


@contextmanager
def measured(engine: TransformersEngine) -> Iterator[Work]:
    """Count forward calls, tokens and encoded images by hooks in the model."""
    work = Work()
    model: Any = engine.model
    vision = model.get_encoder("image")

    def count_text(_module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids = named["input_ids"] if "input_ids" in named else arguments[0]
        work.forwards += 1
        work.tokens += int(ids.numel())

    def count_images(_module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if "grid_thw" in named:  # patches of all images in one row
            work.images += len(named["grid_thw"])
        else:
            work.images += len(named["pixel_values"] if "pixel_values" in named else arguments[0])

    hooks = [
        model.register_forward_pre_hook(count_text, with_kwargs=True),
        vision.register_forward_pre_hook(count_images, with_kwargs=True),
    ]
    start = time.perf_counter()
    try:
        yield work
    finally:
        work.seconds = time.perf_counter() - start
        for hook in hooks:
            hook.remove()


def make_queries() -> list[Query]:
    """Four questions with two images each, as in matched pairs."""
    generator = np.random.default_rng(0)
    layout = PromptLayout()
    continuations = layout.continuations(LETTERS)
    return [
        Query(
            Image.fromarray(generator.integers(0, 256, (224, 224, 3), dtype=np.uint8)),
            layout.user_text(question, LETTERS, OPTIONS),
            continuations,
        )
        for question in QUESTIONS
        for _side in ("cf", "cs")
    ]


def original_only(engine: TransformersEngine, queries: Sequence[Query]) -> None:
    """The model's own answer and nothing else."""
    for query in queries:
        engine.original_answer(query.image, query.text)


def plain_recipe(engine: TransformersEngine, queries: Sequence[Query]) -> None:
    """Separate generation, one full pass per condition, the prior anew for every image."""
    for query in queries:
        engine.original_answer(query.image, query.text)
        engine.score_candidates(query.image, query.text, query.candidates)
        engine.score_candidates(None, query.text, query.candidates)


def shared(engine: TransformersEngine, queries: Sequence[Query], batch_size: int) -> None:
    """Our way: one reading of what prompts share, one prior per question."""
    for start in range(0, len(queries), batch_size):
        for result in engine.answer_batch(queries[start : start + batch_size]):
            if not isinstance(result, Answered):
                raise SystemExit(result.reason)
    texts = list(dict.fromkeys(query.text for query in queries))
    for start in range(0, len(texts), batch_size):
        engine.score_batch([Query(None, text, queries[0].candidates) for text in texts[start : start + batch_size]])


def best(engine: TransformersEngine, action: Any, repeats: int = 3) -> Work:
    """The least disturbed of several runs."""
    runs = []
    for _ in range(repeats):
        with measured(engine) as work:
            action()
        runs.append(work)
    return min(runs, key=lambda work: work.seconds)


def compare(architecture: str) -> tuple[list[list[str]], list[str], list[str], list[str]]:
    """Rows of the tables: work, throughput, forks, start-up."""
    with tempfile.TemporaryDirectory() as name:
        folder = tiny_models.build(architecture, Path(name), size="bench")
        engine = TransformersEngine(folder, device="cpu")
        started = start_up(architecture, folder)
    engine.max_new_tokens = ANSWER_TOKENS
    if not engine.shares_prefix:
        raise SystemExit(f"{architecture}: the self-test failed")
    parameters = sum(weight.numel() for weight in engine.model.parameters())
    queries = make_queries()
    check_agreement(engine, queries)
    ways = {
        "original answer alone": lambda: original_only(engine, queries),
        "+ SPC scores, plain recipe": lambda: plain_recipe(engine, queries),
        "+ SPC scores, unprior": lambda: shared(engine, queries, 1),
    }
    rounds = [{name: best(engine, action, repeats=1) for name, action in ways.items()} for _ in range(3)]
    fastest = {name: min((each[name] for each in rounds), key=lambda work: work.seconds) for name in ways}
    # Within a round the machine is mostly in one mood, so ratios are taken there.
    ratios = {
        name: statistics.median(each[name].seconds / each["original answer alone"].seconds for each in rounds)
        for name in ways
    }
    lines = []
    for name, work in fastest.items():
        count = len(queries)
        per = [f"{value / count:.1f}" for value in (work.images, work.tokens, work.forwards)]
        label = f"{architecture}, {parameters / 1e6:.0f} M: {name}"
        lines.append([label, *per, f"{1000 * work.seconds / count:.0f} ms", f"{ratios[name]:.2f}×"])
    rates = [architecture]
    for size in (1, 4, 8):
        work = best(engine, lambda: shared(engine, queries, size), repeats=1)  # noqa: B023
        rates.append(f"{len(queries) / work.seconds:.2f}/s")
    return lines, rates, fork_rows(architecture, engine, queries[0]), started


def fork_rows(architecture: str, engine: TransformersEngine, query: Query) -> list[str]:
    """What it costs to fork the cache of one prompt to one row per candidate: ours, and copying it whole."""
    inputs = engine.original_inputs([engine.encoder.encode(query)])
    branch, rows = engine.reader.read(inputs), torch.zeros(len(OPTIONS), dtype=torch.long)
    words = torch.tensor([engine.encoder.tokenizer(" five", add_special_tokens=False)["input_ids"][:1]] * len(rows))

    def ours() -> None:
        engine.reader.follow(branch.rows(rows), words, spend=True)

    def copied() -> None:
        cache = copy.deepcopy(branch.cache)
        cache.reorder_cache(rows)
        engine.reader.follow(replace(branch.rows(rows), cache=cache), words, spend=True)

    with torch.inference_mode():
        seconds = {way: best(engine, way).seconds for way in (ours, copied)}
    tensors = [value for layer in branch.cache.layers for value in vars(layer).values()]
    states = [each for value in tensors for each in (value.values() if isinstance(value, dict) else [value])]
    size = sum(each.numel() * each.element_size() for each in states if isinstance(each, torch.Tensor))
    return [architecture, f"{size / 1e6:.0f} MB", *(f"{1000 * seconds[way]:.0f} ms" for way in (copied, ours))]


def start_up(architecture: str, folder: Path) -> list[str]:
    """Loading without the self-test, for the first time, and once its verdict is known, in turn; the better of two."""
    taken: dict[bool | Literal["again"], list[float]] = {False: [], "again": [], True: []}
    for _ in range(2):
        for tested, runs in taken.items():
            begun = time.perf_counter()
            TransformersEngine(folder, device="cpu", self_test=tested)
            runs.append(time.perf_counter() - begun)
    without, first, later = (min(runs) for runs in taken.values())
    times = [f"{seconds:.2f} s" for seconds in (without, first, later)]
    return [architecture, *times, f"{later / without:.2f}×"]


def check_agreement(engine: TransformersEngine, queries: Sequence[Query]) -> None:
    """A saving counts only if both ways give the same; this also warms up."""
    for query, result in zip(queries[:2], engine.answer_batch(queries[:2]), strict=True):
        plain = engine.score_candidates(query.image, query.text, query.candidates)
        if not isinstance(result, Answered) or not np.allclose(result.scored.scores, plain.scores, atol=1e-3):
            raise SystemExit("the two ways disagree")


def report() -> str:
    lines, rates, forks, starts = zip(*map(compare, ("llava", "qwen3_vl", "gemma3", "qwen3_5")), strict=True)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    header = ["per example", "images encoded", "tokens read", "forward calls", "time", "ratio"]
    return "\n\n".join(
        [
            markdown(header, [line for each in lines for line in each]),
            markdown(["examples per second at batch size", "1", "4", "8"], list(rates)),
            markdown(["cache of one prompt, forked to 4 rows and read on", "size", "copied", "unprior"], list(forks)),
            markdown(["loading", "without self-test", "tested", "tested before", "ratio"], list(starts)),
            f"Measured by `make bench-engine` in one run: 4 questions × 2 images of 676 tokens, 4 candidates, answers "
            f"of {ANSWER_TOKENS} tokens, random weights, float32, {torch.get_num_threads()} threads ({versions}). "
            f"Times are the best of three rounds, ratios the median of those within a round.",
        ]
    )


if __name__ == "__main__":
    publish(report, "bench:engine", __doc__)
