"""Ways to the same scores, from the fastest to the plainest; which of them a model permits is found out by trying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import torch

from unprior.engines.transformers.beam_search import Beams
from unprior.engines.transformers.beams import BranchedBeams, RereadBeams
from unprior.engines.transformers.forward import (
    Branch,
    Reader,
    Rereader,
    decode_greedily,
    score_after,
)
from unprior.engines.transformers.tokens import PromptEncoder, PromptTokens

Item = TypeVar("Item")


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


class End(Protocol):
    """The ends of scoring prompts that were read: whatever continues them is read from there."""

    @property
    def room(self) -> int:
        """Tokens that the model can read behind the longest prompt."""
        ...

    def score(self, candidates: Sequence[Sequence[list[int]]]) -> list[list[float]]:
        """Summed log-probabilities of token lists, for every prompt."""
        ...

    def beams(self) -> Beams:
        """One empty beam per prompt; what grows from them leaves this end as it is."""
        ...


Finish: TypeAlias = Callable[[End, Sequence[PromptTokens], Sequence[list[int]]], list[Item]]
"""What is done at the ends of scoring prompts, given the prompts and their original answers: one item per prompt."""


@dataclass(frozen=True, slots=True)
class CachedEnd:
    """The ends of prompts whose cache can be branched."""

    reader: Reader
    branch: Branch

    @property
    def room(self) -> int:
        """Tokens that the model can read behind the longest prompt."""
        return self.reader.room_behind(self.branch.ids)

    def score(self, candidates: Sequence[Sequence[list[int]]]) -> list[list[float]]:
        """Summed log-probabilities of token lists, for every prompt."""
        return score_after(self.reader, self.branch, candidates)

    def beams(self) -> Beams:
        """One empty beam per prompt, in one branch."""
        return BranchedBeams(self.reader, self.branch)


@dataclass(frozen=True, slots=True)
class FullEnd:
    """The end of one prompt that is read again with everything that continues it."""

    reader: Reader
    inputs: dict[str, Any]

    @property
    def room(self) -> int:
        """Tokens that the model can read behind the prompt."""
        return self.reader.room_behind(self.inputs["input_ids"])

    def score(self, candidates: Sequence[Sequence[list[int]]]) -> list[list[float]]:
        """Summed log-probabilities of token lists, by the plain recipe."""
        return [[self._score(tokens) for tokens in lists] for lists in candidates]

    def beams(self) -> Beams:
        """One empty beam; every beam is read with the whole prompt."""
        return RereadBeams(Rereader(self.reader), self.inputs)

    def _score(self, tokens: list[int]) -> float:
        """The plain recipe for one candidate of one prompt: a whole pass, no cache."""
        whole = self.reader.with_tail(self.inputs, torch.tensor([tokens]))
        read = self.reader.read(whole, keep=len(tokens) + 1, cached=False)
        distribution = torch.log_softmax(read.logits[0], dim=-1)
        return sum(float(distribution[step, token]) for step, token in enumerate(tokens))


class Scorer:
    """Answers and scores by one of the levels."""

    def __init__(self, reader: Reader, encoder: PromptEncoder) -> None:
        """Take what all levels need."""
        self._reader, self._encoder = reader, encoder

    def score(self, level: Level, prompts: Sequence[PromptTokens]) -> list[Result]:
        """Scores of every prompt's candidates, without an original answer."""
        return self.finish(level, prompts, _score_candidates)

    def write(self, level: Level, prompt: PromptTokens, stop: set[int], most: int) -> list[int]:
        """The original answer alone: until one of the ``stop`` tokens, or ``most`` tokens."""
        reader = self._reader if level.caches else Rereader(self._reader)
        with self._reader.memory.open() if level.remembers else nullcontext():
            return decode_greedily(reader, reader.read(self._inputs([prompt], scoring=False)), stop, most)[0]

    def answer(self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int) -> list[Result]:
        """Scores, and the original answer: until one of the ``stop`` tokens, or ``most`` tokens."""
        return self.write_and_finish(level, prompts, stop, most, _score_candidates)

    def finish(self, level: Level, prompts: Sequence[PromptTokens], finish: Finish[Item]) -> list[Item]:
        """Read scoring prompts, and do something at their ends; there are no original answers."""
        batches = [prompts] if level.batches else [[prompt] for prompt in prompts]
        nothing: list[int] = []
        return [item for batch in batches for item in self._finish(level, batch, [nothing] * len(batch), finish)]

    def write_and_finish(
        self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int, finish: Finish[Item]
    ) -> list[Item]:
        """Write original answers, and do something at the ends of the scoring prompts; images are encoded once."""
        batches = [prompts] if level.batches else [[prompt] for prompt in prompts]
        work = self._share if level.shares else self._read_both
        with self._encoder.remembering_images():
            return [item for batch in batches for item in work(level, batch, stop, most, finish)]

    def _share(
        self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int, finish: Finish[Item]
    ) -> list[Item]:
        """Read the common beginning once, and go on from there to both ends."""
        inputs = self._inputs(prompts, scoring=False)
        original, scoring = _rows(inputs), _rows(self._inputs(prompts, scoring=True))
        # Every row gives up the same number of tokens at its end, so that the beginnings end in one column.
        cut = max(len(tokens) - _common(tokens, other) for tokens, other in zip(original, scoring, strict=True))
        if any(cut > min(self._after_image(*row), len(row[1]) - 1) for row in zip(prompts, original, strict=True)):
            return self._read_both(level, prompts, stop, most, finish)  # the image stands too close to the end
        beginning = self._reader.read(self._reader.without_tail(inputs, cut))
        whole = self._reader.follow(beginning, inputs["input_ids"][:, -cut:])
        written = decode_greedily(self._reader, whole, stop, most)
        del whole
        ends = [other[len(tokens) - cut :] for tokens, other in zip(original, scoring, strict=True)]
        items: dict[int, Item] = {}
        # Ends of one length together, for padding would stand in the middle.
        for length in {len(end) for end in ends}:
            group = [row for row, end in enumerate(ends) if len(end) == length]
            chosen = torch.tensor(group, device=beginning.ids.device)
            branch = beginning if len(group) == len(ends) else beginning.rows(chosen)
            read = self._reader.follow(branch, torch.tensor([ends[row] for row in group]))
            end = CachedEnd(self._reader, read)
            done = finish(end, [prompts[row] for row in group], [written[row] for row in group])
            items.update(zip(group, done, strict=True))
        return [items[row] for row in range(len(ends))]

    def _read_both(
        self, level: Level, prompts: Sequence[PromptTokens], stop: set[int], most: int, finish: Finish[Item]
    ) -> list[Item]:
        """Read both prompts of every example whole."""
        reader = self._reader if level.caches else Rereader(self._reader)
        with self._reader.memory.open() if level.remembers or level.shares else nullcontext():
            whole = reader.read(self._inputs(prompts, scoring=False))
            written = decode_greedily(reader, whole, stop, most)
            return self._finish(level, prompts, written, finish)

    def _finish(
        self, level: Level, prompts: Sequence[PromptTokens], written: Sequence[list[int]], finish: Finish[Item]
    ) -> list[Item]:
        """Read whole scoring prompts, and do something at their ends."""
        inputs = self._inputs(prompts, scoring=True)
        if level.caches:
            return finish(CachedEnd(self._reader, self._reader.read(inputs)), prompts, written)
        with nullcontext() if self._reader.memory.active or not level.remembers else self._reader.memory.open():
            return finish(FullEnd(self._reader, inputs), prompts, written)

    def _inputs(self, prompts: Sequence[PromptTokens], *, scoring: bool) -> dict[str, Any]:
        texts = [prompt.scoring_text if scoring else prompt.original_text for prompt in prompts]
        return self._encoder.inputs(texts, [prompt.image for prompt in prompts])

    def _after_image(self, prompt: PromptTokens, tokens: list[int]) -> int:
        """Tokens behind the image: those at the end that the prompt has without the image, too."""
        plain = self._encoder.tokenize_prompt(self._encoder.render(False, prompt.text))
        return _common(tokens[::-1], plain[::-1], last=0)


def _score_candidates(end: End, prompts: Sequence[PromptTokens], written: Sequence[list[int]]) -> list[Result]:
    scores = end.score([prompt.candidates for prompt in prompts])
    return [Result(tokens, row) for tokens, row in zip(written, scores, strict=True)]


def _rows(inputs: dict[str, Any]) -> list[list[int]]:
    """Tokens of every prompt without padding."""
    return [ids[mask > 0].tolist() for ids, mask in zip(inputs["input_ids"], inputs["attention_mask"], strict=True)]


def _common(first: list[int], second: list[int], last: int = 1) -> int:
    """How many tokens two lists have in common from the start, if at least ``last`` tokens of each must remain."""
    most = min(len(first), len(second)) - last
    return next((place for place in range(most) if first[place] != second[place]), most)
