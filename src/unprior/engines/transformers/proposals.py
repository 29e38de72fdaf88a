"""Answers in the model's own words: what a beam search finds behind the scoring prompt, scored as whole answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from unprior.answer_forms import read_open_answer
from unprior.engines.answer_search import MAX_ANSWER_TOKENS
from unprior.engines.protocol import CandidateScores, Proposed
from unprior.engines.transformers.beam_search import Found, Tokens, Width, search_answers
from unprior.engines.transformers.levels import End
from unprior.engines.transformers.tokens import PromptEncoder, PromptTokens
from unprior.errors import UnpriorError

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against


@dataclass(frozen=True)
class Proposer:
    """Searches for answers at the ends of scoring prompts."""

    encoder: PromptEncoder
    count: int
    """Width of the search, and answers to find."""
    ends: tuple[int, ...]
    """Tokens that end an answer, the encoder's own first."""
    usable: Sequence[bool]
    """For every token whether it may stand in an answer."""

    def __call__(self, end: End, prompts: Sequence[PromptTokens], written: Sequence[list[int]]) -> list[Proposed]:
        """The prompts' own candidates, the original answers and what is found, all of them scored as whole answers."""
        if end.room < MAX_ANSWER_TOKENS and len(prompts) > 1:
            raise UnpriorError("padding takes the room of the answers")  # so each is done alone
        rows = [_Row(self.encoder, *each) for each in zip(prompts, written, strict=True)]
        width = Width(self.count, min(MAX_ANSWER_TOKENS, end.room), self.ends, self._allowed())
        found = search_answers(end.beams(), len(rows), width, lambda row, tokens: rows[row].accept(tokens))
        for row, answers in zip(rows, found, strict=True):
            row.take(answers)
        scores, first = end.score([row.unscored() for row in rows]), end.score_first([row.tokens for row in rows])
        return [row.proposed(*values) for row, values in zip(rows, zip(scores, first, strict=True), strict=True)]

    def _allowed(self) -> Tensor:
        allowed = torch.tensor(self.usable)
        allowed[[end for end in self.ends if end < len(allowed)]] = False
        return allowed


class _Row:
    """The candidates of one prompt."""

    def __init__(self, encoder: PromptEncoder, prompt: PromptTokens, written: list[int]) -> None:
        self._encoder, self._prompt = encoder, prompt
        self._text = None if prompt.image is None else encoder.written(written)
        self._tokens = dict(zip(prompt.strings, prompt.candidates, strict=True))
        original = None if self._text is None else read_open_answer(self._text)
        placed = None if original is None else encoder.whole_answer(prompt, original, written)
        if placed is not None:
            self._tokens.setdefault(*placed)
        self._first = list(self._tokens)
        self._accepted: dict[str, list[int]] = {}
        self._scores: dict[str, float] = {}
        self._found: set[str] = set()

    def accept(self, tokens: Tokens) -> str | None:
        """An ended beam as text; None if it is no candidate."""
        text = self._encoder.tokenizer.decode(tokens, skip_special_tokens=True)
        placed = self._encoder.whole_answer(self._prompt, text, tokens)
        if placed is None:
            return None
        self._accepted[placed[0]] = placed[1]
        return placed[0]

    def take(self, answers: Sequence[Found]) -> None:
        """Add what was found; a beam of a text's usual tokens is scored already."""
        for found in answers:
            self._found.add(found.text)
            tokens = self._tokens.setdefault(found.text, self._accepted[found.text])
            if tuple(tokens[:-1]) == found.tokens:
                self._scores[found.text] = found.score

    def unscored(self) -> list[list[int]]:
        """Tokens of the candidates that no beam has scored."""
        return [tokens for text, tokens in self._tokens.items() if text not in self._scores]

    @property
    def tokens(self) -> list[list[int]]:
        """Tokens of all candidates."""
        return list(self._tokens.values())

    def proposed(self, scores: Sequence[float], first: Sequence[float] | None) -> Proposed:
        """All candidates, given the scores of those that had none, and perhaps those of all first tokens."""
        missing = (text for text in self._tokens if text not in self._scores)
        known = {**self._scores, **dict(zip(missing, scores, strict=True))}
        found = sorted((text for text in self._tokens if text not in self._first), key=lambda text: -known[text])
        texts = (*self._first, *found)
        scores = tuple(known[text] for text in texts)
        begun = None if first is None else dict(zip(self._tokens, first, strict=True))
        counts = tuple(len(self._tokens[text]) for text in texts)
        of_first = None if begun is None else tuple(begun[text] for text in texts)
        by_search = tuple(text in self._found for text in texts)
        return Proposed(self._text, texts, CandidateScores(scores, counts, first_scores=of_first), by_search)
