"""Candidates as a tree of tokens: a common beginning is read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unprior.engines.protocol import CandidateScores
from unprior.errors import UnpriorError

Token = int | str
"""A token's number; its text where a server does not tell numbers."""
Beginning = tuple[Token, ...]


class UnreadableCandidateError(UnpriorError):
    """A candidate that cannot be put behind a prompt as it is; another one may be."""


@dataclass(frozen=True, slots=True)
class NextTokens:
    """What is known of the distribution after some beginning."""

    visible: Mapping[Token, float]
    """Log-probabilities."""
    floor: float | None = None
    """No other token is more probable; None when all that were asked for are visible."""


def branch_points(candidates: Sequence[Beginning]) -> dict[Beginning, tuple[Token, ...]]:
    """Beginnings after which a distribution must be read, shortest first, and the tokens that may follow.

    >>> branch_points([(7, 1), (7, 2), (9,)])
    {(): (7, 9), (7,): (1, 2)}
    """
    following: dict[Beginning, dict[Token, None]] = {}
    for tokens in candidates:
        for depth, token in enumerate(tokens):
            following.setdefault(tokens[:depth], {})[token] = None
    return {beginning: tuple(following[beginning]) for beginning in sorted(following, key=len)}


def tokens_after(prompt: list[int], joint: list[int], candidate: str) -> list[int]:
    """Tokens of a candidate, given those of the prompt and of both together.

    >>> tokens_after([1, 2], [1, 2, 7], " A")
    [7]
    """
    if joint[: len(prompt)] != prompt:
        raise UnreadableCandidateError(
            f"candidate {candidate!r} changes how the end of the prompt is tokenised; choose another "
            f"continuation in the prompt layout"
        )
    if len(joint) == len(prompt):
        raise UnreadableCandidateError(f"candidate {candidate!r} tokenises to nothing")
    return joint[len(prompt) :]


def sum_up(candidates: Sequence[Beginning], read: Mapping[Beginning, NextTokens]) -> CandidateScores:
    """Scores of whole candidates; one that leaves the visible tokens has a bound instead, and is marked.

    >>> read = {(): NextTokens({7: -1.0, 9: -2.0}), (7,): NextTokens({1: -0.5}, floor=-3.0)}
    >>> sum_up([(7, 1), (7, 2), (9,)], read)
    CandidateScores(scores=(-1.5, -4.0, -2.0), token_counts=(2, 2, 1), censored=(False, True, False))
    """
    scores, censored = [], []
    for tokens in candidates:
        total, hidden = 0.0, False
        for depth, token in enumerate(tokens):
            step = read[tokens[:depth]]
            if token in step.visible:
                total += step.visible[token]
            else:
                total += _bound(token, step)
                hidden = True
                break  # what follows can only make it less probable
        scores.append(total)
        censored.append(hidden)
    marks = tuple(censored) if any(step.floor is not None for step in read.values()) else None
    start = read[()].visible if () in read else {}
    first = tuple(start[tokens[0]] for tokens in candidates) if all(each[0] in start for each in candidates) else None
    return CandidateScores(tuple(scores), tuple(len(tokens) for tokens in candidates), marks, first)


def leads_to(beginning: Beginning, read: Mapping[Beginning, NextTokens]) -> bool:
    """Whether every token up to here was visible, so that reading on tells something."""
    return all(token in read[beginning[:depth]].visible for depth, token in enumerate(beginning))


def _bound(token: Token, step: NextTokens) -> float:
    """The smallest visible value; a candidate known as text may also begin with a visible shorter token."""
    if step.floor is None:
        raise KeyError(token)
    starts = [value for known, value in step.visible.items() if isinstance(token, str) and token.startswith(str(known))]
    return max([step.floor, *starts])
