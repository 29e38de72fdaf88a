"""Ways to the same scores, from the fastest to the plainest; which of them a model permits is found out by trying."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from unprior.engines.transformers.forward import (
    Branch,
    Reader,
    Rereader,
    decode_greedily,
    score_after,
)
from unprior.engines.transformers.tokens import PromptEncoder, PromptTokens


@dataclass(frozen=True, slots=True)
class Level:
    """What a way shares."""

    name: str
    about: str
    batches: bool = False
    """Several prompts in one pass."""
    shares: bool = False
    """Both prompts of an example share their beginning."""
    caches: bool = False
    """What follows a prompt is read after its cache; otherwise every pass reads everything."""
    remembers: bool = False
    """The vision tower remembers the image between the prompts of an example."""


LEVELS = (
    Level("shared in batches", "the beginning of both prompts is read once, several examples at a time",
          batches=True, shares=True, caches=True),
    Level("shared", "the beginning of both prompts is read once, one example at a time", shares=True, caches=True),
    Level("whole prompts", "both prompts are read whole; the image is encoded once", caches=True, remembers=True),
    Level("full passes", "every candidate is read with its whole prompt; the image is encoded once", remembers=True),
    Level("plain full passes", "every candidate is read with its whole prompt and image"),
)  # fmt: skip
"""From the fastest to the plainest."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a way gives for one prompt."""

    tokens: list[int]
    """The original answer; empty if it was not asked for."""
    scores: list[float]


class Scorer:
    """Answers and scores by one of the levels."""

    def __init__(self, reader: Reader, encoder: PromptEncoder) -> None:
        """Take what all levels need."""
        self._reader, self._encoder = reader, encoder

    def score(self, level: Level, prompts: Sequence[PromptTokens]) -> list[Result]:
        """Scores of every prompt's candidates, without an original answer."""
        batches = [prompts] if level.batches else [[prompt] for prompt in prompts]
        return [Result([], scores) for batch in batches for scores in self._score(level, batch)]

    def write(self, level: Level, prompt: PromptTokens, stop: set[int], most: int) -> list[int]:
        """The original answer alone: until one of the ``stop`` tokens, or ``most`` tokens."""
        reader = self._reader if level.caches else Rereader(self._reader)
        with self._reader.memory.open() if level.remembers else nullcontext():
            return decode_greedily(reader, reader.read(self._inputs([prompt], scoring=False)), stop, most)[0]

    def answer(self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int) -> list[Result]:
        """Scores, and the original answer: until one of the ``stop`` tokens, or ``most`` tokens."""
        batches = [prompts] if level.batches else [[prompt] for prompt in prompts]
        work = self._share if level.shares else self._read_both
        with self._encoder.remembering_images():
            return [result for batch in batches for result in work(level, batch, stop, most)]

    def _share(self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int) -> list[Result]:
        """Read the common beginning once, and go on from there to both ends."""
        inputs = self._inputs(prompts, scoring=False)
        original, scoring = _rows(inputs), _rows(self._inputs(prompts, scoring=True))
        # Every row gives up the same number of tokens at its end, so that the beginnings end in one column.
        cut = max(len(tokens) - _common(tokens, other) for tokens, other in zip(original, scoring, strict=True))
        if any(cut > min(self._after_image(*row), len(row[1]) - 1) for row in zip(prompts, original, strict=True)):
            return self._read_both(level, prompts, stop, most)  # the image stands too close to the end
        beginning = self._reader.read(self._reader.without_tail(inputs, cut))
        whole = self._reader.follow(beginning, inputs["input_ids"][:, -cut:])
        written = decode_greedily(self._reader, whole, stop, most)
        ends = [other[len(tokens) - cut :] for tokens, other in zip(original, scoring, strict=True)]
        scores = self._score_ends(beginning, ends, [prompt.candidates for prompt in prompts])
        return [Result(tokens, row) for tokens, row in zip(written, scores, strict=True)]

    def _score_ends(
        self, beginning: Branch, ends: list[list[int]], candidates: list[list[list[int]]]
    ) -> list[list[float]]:
        """Scores after the ends of prompts; those of one length together, for padding would stand in the middle."""
        scores: list[list[float]] = [[]] * len(ends)
        for length in {len(end) for end in ends}:
            group = [row for row, end in enumerate(ends) if len(end) == length]
            chosen = torch.tensor(group, device=beginning.ids.device)
            branch = beginning if len(group) == len(ends) else beginning.rows(chosen)
            read = self._reader.follow(branch, torch.tensor([ends[row] for row in group]))
            for row, found in zip(group, score_after(self._reader, read, [candidates[r] for r in group]), strict=True):
                scores[row] = found
        return scores

    def _read_both(self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int) -> list[Result]:
        """Read both prompts of every example whole."""
        reader = self._reader if level.caches else Rereader(self._reader)
        with self._reader.memory.open() if level.remembers or level.shares else nullcontext():
            whole = reader.read(self._inputs(prompts, scoring=False))
            written = decode_greedily(reader, whole, stop, most)
            scores = self._score(level, prompts)
        return [Result(tokens, row) for tokens, row in zip(written, scores, strict=True)]

    def _score(self, level: Level, prompts: Sequence[PromptTokens]) -> list[list[float]]:
        """Scores after whole scoring prompts."""
        inputs = self._inputs(prompts, scoring=True)
        if level.caches:
            return score_after(self._reader, self._reader.read(inputs), [prompt.candidates for prompt in prompts])
        with nullcontext() if self._reader.memory.active or not level.remembers else self._reader.memory.open():
            return [[self._in_full(inputs, tokens) for tokens in prompt.candidates] for prompt in prompts]

    def _in_full(self, inputs: dict[str, Any], tokens: list[int]) -> float:
        """The plain recipe for one candidate of one prompt: a whole pass, no cache."""
        whole = self._reader.with_tail(inputs, torch.tensor([tokens]))
        read = self._reader.read(whole, keep=len(tokens) + 1, cached=False)
        distribution = torch.log_softmax(read.logits[0], dim=-1)
        return sum(float(distribution[step, token]) for step, token in enumerate(tokens))

    def _inputs(self, prompts: Sequence[PromptTokens], *, scoring: bool) -> dict[str, Any]:
        texts = [prompt.scoring_text if scoring else prompt.original_text for prompt in prompts]
        return self._encoder.inputs(texts, [prompt.image for prompt in prompts])

    def _after_image(self, prompt: PromptTokens, tokens: list[int]) -> int:
        """Tokens behind the image: those at the end that the prompt has without the image, too."""
        plain = self._encoder.tokenize_prompt(self._encoder.render(False, prompt.text))
        return _common(tokens[::-1], plain[::-1], last=0)


def _rows(inputs: dict[str, Any]) -> list[list[int]]:
    """Tokens of every prompt without padding."""
    return [ids[mask > 0].tolist() for ids, mask in zip(inputs["input_ids"], inputs["attention_mask"], strict=True)]


def _common(first: list[int], second: list[int], last: int = 1) -> int:
    """How many tokens two lists have in common from the start, if at least ``last`` tokens of each must remain."""
    most = min(len(first), len(second)) - last
    return next((place for place in range(most) if first[place] != second[place]), most)
