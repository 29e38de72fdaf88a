"""Greedy decoding with several streams, shared by all methods that write their own answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from PIL import Image

from unprior.baselines.activity import GateActivity
from unprior.baselines.method import Method, Pass, Tensor, View
from unprior.baselines.pixels import InseparableError, with_noise
from unprior.baselines.steering import GateCounter
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.forward import Rereader, TokenReader, decode_together
from unprior.engines.transformers.load_errors import told
from unprior.engines.transformers.tokens import PromptTokens


@dataclass(frozen=True, slots=True)
class Question:
    """One example as a decoder needs it."""

    image: Image.Image
    text: str
    """The whole user turn."""
    name: str
    """Decides its random numbers, so that they depend neither on the batch nor on the order."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a method wrote."""

    tokens: list[int]
    activity: GateActivity | None
    """Of a method with a gate on hidden states; None for others, and where the gate is off."""


def decode(engine: TransformersEngine, method: Method, questions: Sequence[Question]) -> list[list[int]]:
    """The tokens that a method writes, for every question of a batch."""
    return [each.tokens for each in decode_observed(engine, method, questions)]


def decode_texts(engine: TransformersEngine, method: Method, questions: Sequence[Question]) -> list[str]:
    """What a method answers to every question of a batch."""
    return [engine.text_of(tokens) for tokens in decode(engine, method, questions)]


def decode_observed(engine: TransformersEngine, method: Method, questions: Sequence[Question]) -> list[Decoded]:
    """The tokens that a method writes, and how active its gate was, for every question of a batch."""
    if engine.level.batches:  # other models read their prompts one at a time
        with suppress(InseparableError):
            return _decode(engine, method, questions)
    return [found for question in questions for found in _decode(engine, method, [question])]


def decode_freely(engine: TransformersEngine, method: Method, question: Question, count: int) -> list[int]:
    """At most so many tokens that a method writes, also behind one that would end its answer."""
    return _decode(engine, method, [question], image_tokens(engine), count)[0].tokens


def _decode(
    engine: TransformersEngine,
    method: Method,
    questions: Sequence[Question],
    stop: Collection[int] | None = None,
    most: int | None = None,
) -> list[Decoded]:
    views = method.views
    reader: TokenReader = engine.reader if engine.level.caches else Rereader(engine.reader)
    memory = engine.reader.memory.open() if engine.level.remembers else nullcontext()
    with memory, method.applied(engine) as edit:
        branches, prompts, read = [], [], [0] * len(views)
        for view in views:
            inputs = view_inputs(engine, view, questions)
            prompts.append(inputs["input_ids"])
            if edit:
                rows, real = range(len(questions)), inputs["attention_mask"] > 0
                edit(Pass(view, inputs["input_ids"], rows, real, from_start=True))
            branches.append(reader.read(inputs))

        def before_pass(stream: int, rows: list[int]) -> None:
            read[stream] += 1
            if edit:
                prompt = prompts[stream][rows]
                total = prompt.shape[1] + read[stream]
                edit(Pass(views[stream], prompt, rows, from_start=isinstance(reader, Rereader), total=total))

        written = decode_together(
            reader,
            branches,
            lambda logits: choose(method, logits),
            engine.stop_tokens if stop is None else set(stop),
            engine.max_new_tokens if most is None else most,
            before_pass,
        )
        activity = edit.activity if isinstance(edit, GateCounter) else {}
    return [Decoded(tokens, activity.get(row)) for row, tokens in enumerate(written)]


def image_tokens(engine: TransformersEngine) -> list[int]:
    """Tokens that may stand for an image; a model cannot read them as a part of its own answer."""
    return engine.encoder.image_tokens(engine.model.config)


def choose(method: Method, streams: list[Tensor]) -> Tensor:
    """The next token of every row: the best combined logit among the plausible tokens."""
    ruled_out = ~torch.stack([torch.isfinite(logits) for logits in streams]).all(dim=0)  # excluded tokens stay out
    plausible = method.plausible(streams[0])
    if plausible is not None:
        ruled_out = ruled_out | ~plausible
    return method.combine(streams).masked_fill(ruled_out, -torch.inf).argmax(dim=-1)


def view_inputs(engine: TransformersEngine, view: View, questions: Sequence[Question]) -> dict[str, Any]:
    """Model inputs of a batch as one view shows it."""
    prompts = [_prompt(engine, view, question) for question in questions]
    try:
        inputs = engine.original_inputs(prompts)
    except Exception as error:  # some processors cannot make one batch of images of different sizes
        if len(prompts) == 1:
            raise
        raise InseparableError(f"the prompts cannot be put into one batch: {told(error)}") from error
    if view.noise is None:
        return inputs
    alone = [engine.original_inputs([prompt]) for prompt in prompts] if len(prompts) > 1 else [inputs]
    return with_noise(engine, view, [question.name for question in questions], inputs, alone)


def _prompt(engine: TransformersEngine, view: View, question: Question) -> PromptTokens:
    image = question.image if view.with_image else None
    prompt = engine.encoder.encode(Query(image, question.text, ()))
    return prompt if view.change_image is None else replace(prompt, image=view.change_image(question.image))
