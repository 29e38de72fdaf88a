"""REVIS end to end: read hidden states, extract directions, choose a layer and a threshold.

Captions stand as the assistant's turn after “Describe the image.”, with and without the image; their hidden states are
read at the last token. Presence questions are asked like any yes/no question; their hidden states are read at the last
token of the prompt, the one that decides the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unprior.baselines.revis.data import PresenceExample, RevisData, loaded_image
from unprior.baselines.revis.directions import CaptionStates, choose_layer, directions, risk, separation
from unprior.baselines.revis.vectors import RevisVectors
from unprior.engines.batches import work_in_parts
from unprior.engines.protocol import Query, QueryFailure
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO, parse_answer, thinks

if TYPE_CHECKING:
    from unprior.engines.transformers.engine import TransformersEngine
    from unprior.engines.transformers.tokens import PromptTokens

REQUEST = "Describe the image."
UNKNOWN = "No image is given."
QWEN_STRENGTH = 1.6
OTHER_STRENGTH = 1.1
BATCH_SIZE = 8

States = NDArray[np.float32]
"""Shape (layers, rows, size)."""
Item = TypeVar("Item")
Report = Callable[[int, int], None]


def default_strength(model_type: str | None) -> float:
    """The paper's: 1.6 for Qwen, 1.1 for LLaVA, which other models get too.

    >>> default_strength("qwen3_vl_moe"), default_strength("llava_next")
    (1.6, 1.1)
    """
    return QWEN_STRENGTH if (model_type or "").startswith("qwen") else OTHER_STRENGTH


def fit_revis(
    engine: TransformersEngine,
    data: RevisData,
    *,
    strength: float | None = None,
    batch_size: int = BATCH_SIZE,
    report: Report | None = None,
) -> RevisVectors:
    """Learn where and when to steer a model.

    Parameters
    ----------
    engine
        The model.
    data
        Captions and presence questions.
    strength
        How much of the visual direction is added; by default what the paper reports for the model's family.
    batch_size
        Prompts read in one pass.
    report
        Told how many prompts were read, of how many.
    """
    fitting = _Fitting(engine, batch_size, 4 * len(data.captions) + 1 + len(data.questions), report)
    visual, prior, apart = [], [], []
    for states in fitting.caption_states(data):
        along, away = directions(states)
        visual.append(along)
        prior.append(away)
        apart.append(separation(states, along))
    wrong, right = fitting.answer_states(data.questions)
    choice = choose_layer(_risks(wrong, visual), _risks(right, visual))
    return RevisVectors(
        np.stack(visual).astype(np.float32),
        np.stack(prior).astype(np.float32),
        tuple(apart),
        choice,
        default_strength(engine.model_type) if strength is None else strength,
        {
            "captions": len(data.captions),
            "questions": len(data.questions),
            "false_positives": wrong.shape[1],
            "factual": right.shape[1],
        },
        {
            "model": engine.name,
            "fingerprint": engine.fingerprint,
            "identity": engine.identity,
            "data": data.source,
            "data_digest": data.digest,
            "request": REQUEST,
            "unknown": UNKNOWN,
        },
    )


class _Fitting:
    """Reads prompts in batches and says how far it has come."""

    def __init__(self, engine: TransformersEngine, batch_size: int, total: int, report: Report | None) -> None:
        self.engine = engine
        self.batch_size = batch_size if engine.level.batches else 1
        self.total = total
        self.report = report
        self.done = 0

    def caption_states(self, data: RevisData) -> Iterator[CaptionStates]:
        """Layer by layer, first to last."""
        images = [example.image for example in data.captions]
        captions = [example.caption for example in data.captions]
        hallucinated = [example.hallucinated for example in data.captions]
        seen, seen_hallucinated = self._told(captions, images), self._told(hallucinated, images)
        blind, blind_hallucinated = self._told(captions), self._told(hallucinated)
        unknown = np.broadcast_to(self._told([UNKNOWN]), blind.shape)
        for layer in zip(seen, seen_hallucinated, blind, blind_hallucinated, unknown, strict=True):
            yield CaptionStates(*layer)

    def answer_states(self, questions: Sequence[PresenceExample]) -> tuple[States, States]:
        """States of false positives (“yes” where the truth is no) and of right answers."""
        states, texts = [], []
        for batch in self._batches(questions):
            queries = [
                Query(loaded_image(one.image), self.engine.layout.user_text(one.question, YES_NO, None), ())
                for one in batch
            ]
            prompts = [self.engine.encoder.encode(query) for query in queries]
            results = work_in_parts(prompts, self._answer)
            for query, result in zip(queries, results, strict=True):
                if isinstance(result, QueryFailure):
                    raise UnpriorError(f"{query.text!r} could not be asked: {result.reason}")
                state, text = result
                states.append(state)
                texts.append(text or self.engine.original_answer(query.image, query.text))
        thinking = thinks(texts)
        answers = [parse_answer(text, YES_NO, thinking=thinking) for text in texts]
        truth = np.array([question.answer for question in questions])
        given = np.array([answer or "" for answer in answers])
        every = np.stack(states, axis=1)
        return every[:, (given == "yes") & (truth == "no")], every[:, given == truth]

    def _told(self, texts: Sequence[str], images: Sequence[Any] | None = None) -> States:
        """States at the last tokens of assistant's turns."""
        pairs = list(zip(texts, images or [None] * len(texts), strict=True))
        states = []
        for batch in self._batches(pairs):
            for state in work_in_parts(list(batch), self._read_turns):
                if isinstance(state, QueryFailure):
                    raise UnpriorError(f"REVIS could not read a caption: {state.reason}")
                states.append(state)
        return np.stack(states, axis=1)

    def _read_turns(self, pairs: list[tuple[str, Any]]) -> list[States]:
        """For every caption the states (layers, size) at its last token."""
        images = [loaded_image(image) for _, image in pairs if image is not None]
        states = _last_states(self.engine, self._turns([text for text, _ in pairs], images))
        return list(np.moveaxis(states, 1, 0))

    def _turns(self, texts: Sequence[str], images: Sequence[Image.Image]) -> dict[str, Any]:
        encoder = self.engine.encoder
        asked = encoder.render(bool(images), REQUEST)
        rendered = [f"{asked} {text}" for text in texts]
        for text in texts:
            if encoder.placeholder_text is not None and encoder.placeholder_text in text:
                raise UnpriorError(f"caption {text!r} contains the model's own image placeholder; write it differently")
        return encoder.inputs(rendered, images or [None] * len(texts))

    def _answer(self, prompts: list[PromptTokens]) -> list[tuple[States, str]]:
        """For every prompt the states (layers, size) at its last token, and the answer if the cache can be trusted."""
        from unprior.baselines.steering import recorded
        from unprior.engines.transformers.forward import decode_greedily

        engine = self.engine
        with recorded(engine.model) as layers:
            branch = engine.reader.read(engine.original_inputs(prompts))
        states = np.stack([layer.numpy() for layer in layers], axis=1)
        if not engine.level.caches:
            return [(state, "") for state in states]
        written = decode_greedily(engine.reader, branch, engine.stop_tokens, engine.max_new_tokens)
        return list(zip(states, map(engine.text_of, written), strict=True))

    def _batches(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        for start in range(0, len(items), self.batch_size):
            batch = items[start : start + self.batch_size]
            yield batch
            self.done += len(batch)
            if self.report:
                self.report(self.done, self.total)


def _last_states(engine: TransformersEngine, inputs: dict[str, Any]) -> States:
    from unprior.baselines.steering import recorded

    with recorded(engine.model) as layers:
        engine.reader.read(inputs)
    return np.stack([layer.numpy() for layer in layers])


def _risks(states: States, visual: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.stack([risk(layer, direction) for layer, direction in zip(states, visual, strict=True)])
