"""The most probable whole answers of a small model, by looking at every token after every beginning."""

from __future__ import annotations

import heapq
from itertools import count as numbers

import torch
from PIL import Image

from embedded_queries import embedded_queries
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.prompts import PromptLayout

QUESTIONS = ("How many fingers does the hand have?", "What is this animal?")


def open_queries(layout: PromptLayout | None = None) -> list[Query]:
    """Questions without options, first with images, then without."""
    layout = layout or PromptLayout()
    images = [query.image for query in embedded_queries()[::3]]
    return [Query(image, layout.user_text(question, (), None), ()) for image in images for question in QUESTIONS]


def most_probable_answers(
    engine: TransformersEngine, image: Image.Image | None, text: str, count: int, end: int
) -> dict[str, float]:
    """The texts and summed log-probabilities of the ``count`` most probable whole answers, exactly: best first."""
    prompt = engine.encoder.encode(Query(image, text, ()))
    order = numbers()
    # Log-probabilities only fall, so what ends first is most probable.
    heap: list[tuple[float, int, tuple[int, ...], bool]] = [(0.0, next(order), (), False)]
    found: dict[str, float] = {}
    while len(found) < count:
        cost, _, tokens, ended = heapq.heappop(heap)
        if ended:
            words = engine.encoder.tokenizer.decode(tokens, skip_special_tokens=True)
            if words.strip():
                found.setdefault(words, -cost)
            continue
        values = _next(engine, prompt.scoring_text, image, tokens)
        for token, value in enumerate(values.tolist()):
            if token == end:
                heapq.heappush(heap, (cost - value, next(order), tokens, True))
            elif cost - value < 15:
                heapq.heappush(heap, (cost - value, next(order), (*tokens, token), False))
    return found


def _next(engine: TransformersEngine, prompt: str, image: Image.Image | None, tokens: tuple[int, ...]) -> torch.Tensor:
    inputs = engine.encoder.inputs([prompt], [image])
    if tokens:
        inputs = engine.reader.with_tail(inputs, torch.tensor([list(tokens)]))
    return torch.log_softmax(engine.reader.read(inputs, keep=1, cached=False).logits[0, -1], dim=-1)
