"""Beam search for whole answers where a model shows only its most probable tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral

from unprior.engines.candidate_tree import Beginning, NextTokens, Token
from unprior.engines.protocol import CandidateScores, Proposed
from unprior.errors import UnpriorError
from unprior.prompts import thinks

MAX_ANSWER_TOKENS = 24
"""Longest answer that is searched for, the end token not counted."""
SHOWN_TOKENS = 20
"""Most probable tokens that vLLM shows unless it is set up otherwise."""


class AnswerSearch:
    """The search for answers to one question.

    At every step each beam may end, and the best continuations go on. Log-probabilities only fall, so a beam that is no
    better than the last of ``count`` ended answers is given up.

    Parameters
    ----------
    count
        Beams that go on at every step, and answers to find.
    end
        The token that ends an answer.
    usable
        Whether a token can stand in an answer; those of images, for example, cannot.

    >>> search = AnswerSearch(2, end=0)
    >>> search.advance({(): NextTokens({5: -0.5, 6: -1.0, 0: -9.0})})
    >>> search.running
    {(5,): -0.5, (6,): -1.0}
    >>> search.advance({(5,): NextTokens({0: -0.1, 5: -3.0}), (6,): NextTokens({0: -0.2})})
    >>> search.running, search.answers()
    ({}, [(5,), (6,)])
    """

    def __init__(self, count: int, end: Token, usable: Callable[[Token], bool] = lambda _: True) -> None:
        """Begin with one empty beam."""
        self._count, self._end, self._usable = count, end, usable
        self.running: dict[Beginning, float] = {(): 0.0}
        """Beams to be read next, and their summed log-probabilities."""
        self._ended: dict[Beginning, float] = {}

    def advance(self, read: Mapping[Beginning, NextTokens]) -> None:
        """Let every beam end or go on, given the most probable tokens after it."""
        longer: dict[Beginning, float] = {}
        for beam, score in self.running.items():
            visible = read[beam].visible
            if beam and self._end in visible:  # an empty answer is none
                self._ended[beam] = score + visible[self._end]
            if len(beam) < MAX_ANSWER_TOKENS:
                going = (token for token in visible if token != self._end and self._usable(token))
                longer |= {(*beam, token): score + visible[token] for token in going}
        ranked = sorted(self._ended.values(), reverse=True)
        bound = ranked[self._count - 1] if len(ranked) >= self._count else -math.inf
        kept = sorted(longer, key=lambda beam: -longer[beam])[: self._count]
        self.running = {beam: longer[beam] for beam in kept if longer[beam] > bound}

    def answers(self) -> list[Beginning]:
        """What was found so far, most probable first, without the end token."""
        return sorted(self._ended, key=lambda beam: -self._ended[beam])[: self._count]


def check_count(count: int, most: int = SHOWN_TOKENS // 2) -> None:
    """Refuse a number of answers that cannot be searched for.

    A search looks at twice as many tokens as it has beams, and servers show 20 of them.

    >>> check_count(0)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: count=0: search for 1 to 10 answers
    """
    whole = isinstance(count, Integral) and not isinstance(count, bool)
    if not whole or not 1 <= count <= most:
        raise UnpriorError(f"count={count!r}: search for 1 to {most} answers")


def is_answer(text: str) -> bool:
    """Whether a text that a model wrote can be an answer: it has words, no thinking, and no part of a character.

    >>> is_answer(" six"), is_answer(" \\n"), is_answer(" \\ufffd"), is_answer("<think>")
    (True, False, False, False)
    """
    return bool(text.strip()) and "\N{REPLACEMENT CHARACTER}" not in text and not thinks([text])


def as_proposed(
    text: str | None, first: int, candidates: Sequence[str], scored: CandidateScores, found: Collection[str]
) -> Proposed:
    """A proposal whose ``first`` candidates were given; the others, which were found, stand behind them by score.

    >>> scored = CandidateScores((-1.0, -3.0, -2.0), (2, 2, 2))
    >>> made = as_proposed(" six", 1, [" six", " 6", " five"], scored, {" 6", " five"})
    >>> made.candidates, made.found
    ((' six', ' five', ' 6'), (False, True, True))
    """
    order = [*range(first), *sorted(range(first, len(candidates)), key=lambda place: -scored.scores[place])]
    counts, hidden, first_scores = scored.token_counts, scored.censored, scored.first_scores
    arranged = CandidateScores(
        tuple(scored.scores[place] for place in order),
        tuple(counts[place] for place in order),
        None if hidden is None else tuple(hidden[place] for place in order),
        None if first_scores is None else tuple(first_scores[place] for place in order),
    )
    arranged_texts = tuple(candidates[place] for place in order)
    return Proposed(text, arranged_texts, arranged, tuple(each in found for each in arranged_texts))
