"""Beam search for whole answers: summed log-probabilities, that of the token that ends an answer included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against

Tokens: TypeAlias = tuple[int, ...]
Accept: TypeAlias = Callable[[int, Tokens], str | None]
"""From a row and the tokens of an ended answer to its text; None drops the answer."""


class Beams(Protocol):
    """What a model says after the beams of all rows; at first there is one beam per row, which is empty."""

    def log_probabilities(self) -> Tensor:
        """Of the next token of every beam; shape (beams, vocabulary)."""
        ...

    def follow(self, parents: list[int], tokens: list[int]) -> None:
        """Read one token after each of some beams, which may be named several times; they replace all others."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """An answer that a search has found."""

    text: str
    tokens: Tokens
    """Without the end token."""
    score: float
    """Summed log-probability of the tokens and of the usual end token."""


@dataclass(frozen=True, slots=True)
class Width:
    """What a search may look at."""

    count: int
    """Beams that go on at every step, and answers to find."""
    most: int
    """Longest answer in tokens, the end token not counted."""
    ends: tuple[int, ...]
    """Tokens that end an answer; scores are told with the first of them."""
    allowed: Tensor
    """For each of the first tokens whether it may stand in an answer; none of the others may."""


def search_answers(beams: Beams, rows: int, width: Width, accept: Accept) -> list[list[Found]]:
    """The most probable answers of every row, best first; fewer than asked for where fewer ended within the limit.

    At every step each beam may end, by any end token, and the best continuations go on. Log-probabilities only fall,
    so a beam that is no better than the last of ``count`` ended answers is given up, and a row without beams costs
    nothing more. Two answers with the same text count as one. Rows do not know of each other.
    """
    searches = [_Search(width) for _ in range(rows)]
    going = list(range(rows))  # rows with beams; theirs stand in this order
    while going:
        distributions = beams.log_probabilities()
        ended = distributions[:, list(width.ends)].tolist()
        usable = distributions[:, : len(width.allowed)]
        usable = usable.masked_fill(~width.allowed[: usable.shape[1]].to(usable.device), -math.inf)
        chosen = usable.topk(min(width.count, usable.shape[1]))
        values, indices = chosen.values.tolist(), chosen.indices.tolist()
        best = [list(zip(*each, strict=True)) for each in zip(values, indices, strict=True)]
        parents: list[int] = []
        tokens: list[int] = []
        start = 0
        for row in going:
            search, stop = searches[row], start + len(searches[row].running)
            search.end(ended[start:stop], partial(accept, row))
            for parent, token in search.extend(best[start:stop]):
                parents.append(start + parent)
                tokens.append(token)
            start = stop
        going = [row for row in going if searches[row].running]
        if going:
            beams.follow(parents, tokens)
    return [search.found() for search in searches]


class _Search:
    """The search of one row."""

    def __init__(self, width: Width) -> None:
        self._width = width
        self.running: list[tuple[Tokens, float]] = [((), 0.0)]
        self._ended: dict[str, tuple[float, Found]] = {}
        """By text: the score with the end token that was best, by which answers are ranked, and the answer."""

    def found(self) -> list[Found]:
        ranked = sorted(self._ended.values(), key=lambda each: (-each[0], each[1].tokens))
        return [found for _, found in ranked[: self._width.count]]

    @property
    def _bound(self) -> float:
        """What an answer must exceed to be among those that are found."""
        ranks = sorted((rank for rank, _ in self._ended.values()), reverse=True)
        return ranks[self._width.count - 1] if len(ranks) >= self._width.count else -math.inf

    def end(self, ended: Sequence[Sequence[float]], accept: Callable[[Tokens], str | None]) -> None:
        """Let every beam end, given the log-probabilities of the end tokens."""
        ranked = [
            (score + max(ends), Found("", tokens, score + ends[0]))
            for (tokens, score), ends in zip(self.running, ended, strict=True)
        ]
        for rank, found in sorted(ranked, key=lambda each: -each[0]):
            if rank <= self._bound:
                break
            text = accept(found.tokens)
            if text is not None and (text not in self._ended or rank > self._ended[text][0]):
                self._ended[text] = rank, Found(text, found.tokens, found.score)

    def extend(self, best: Sequence[Sequence[tuple[float, int]]]) -> list[tuple[int, int]]:
        """Go on with the best tokens after every beam; gives the beam and the token of each that goes on."""
        if len(self.running[0][0]) == self._width.most:
            self.running = []
            return []
        bound = self._bound
        longer = [
            (score + more, parent, token)
            for parent, (_, score) in enumerate(self.running)
            for more, token in best[parent]
            if score + more > bound
        ]
        kept = sorted(longer, key=lambda each: (-each[0], each[1:]))[: self._width.count]
        kept.sort(key=lambda each: each[1:])  # where every beam goes on once, their caches stay in their places
        self.running = [((*self.running[parent][0], token), score) for score, parent, token in kept]
        return [(parent, token) for _, parent, token in kept]
