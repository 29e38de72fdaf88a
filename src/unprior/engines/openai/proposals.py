"""Answers in a served model's own words: the server's beam search, or one over the tokens that it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from unprior.engines.answer_search import MAX_ANSWER_TOKENS, AnswerSearch, is_answer
from unprior.engines.candidate_tree import Beginning, NextTokens, UnreadableCandidateError
from unprior.engines.openai.branches import BranchReader
from unprior.engines.openai.client import WrongAnswerError
from unprior.engines.openai.endings import AnswerEnd
from unprior.engines.openai.replies import WrittenTokens, beams
from unprior.engines.openai.server import NUMBERED
from unprior.engines.openai.tokens import CandidateTokens, Continuation, ServedPrompt, ServerTokenizer

_STEPS = (8, MAX_ANSWER_TOKENS)  # vLLM's search takes all steps that it may, even when every answer has ended
_CONTROL = re.compile(r"<\|?[^<>\s]+\|?>|\[/?[A-Z_]+\]")  # what special tokens look like

Result = TypeVar("Result")


class Post(Protocol):
    """Asks about one prompt and what it is continued by."""

    async def __call__(
        self, continued: Continuation | None, settings: dict[str, Any], check: Callable[[Any], Result]
    ) -> Result:
        """Send the question with further settings, and check the answer."""
        ...


class Proposer:
    """Searches for the most probable whole answers.

    vLLM's own search is one request, with images, too. It ends answers at the tokenizer's end token alone; where a
    model ends them with another one, its distributions are read step by step, as those of candidates are.
    """

    def __init__(
        self, tokenizer: ServerTokenizer, branches: BranchReader, end: AnswerEnd, *, may_keep: Callable[[str], bool]
    ) -> None:
        """``may_keep``: whether a text holds nothing secret."""
        self._tokenizer, self._branches, self._end, self._may_keep = tokenizer, branches, end, may_keep

    async def answers(self, prompt: ServedPrompt, count: int, post: Post, *, with_image: bool) -> list[str]:
        """Texts of up to ``count`` answers, most probable first; no text twice."""
        found: dict[str, Beginning] = {}
        if self._end.ends_beams:
            for beam in await self._served_beams(prompt, count, post):
                text = await self._text(prompt, tuple(beam.tokens))
                if text.strip() == beam.text.strip():  # otherwise the server left special tokens out
                    found.setdefault(text, tuple(beam.tokens))
        else:
            for tokens in await self._own_beams(prompt, count, post, with_image):
                parts = [await self._tokenizer.text_of([token]) for token in tokens]
                if not any(_CONTROL.fullmatch(part.strip()) for part in parts):
                    found.setdefault(await self._text(prompt, tokens), tokens)
        return [text for text in found if await self.can_be_scored(prompt, text, found[text])]

    async def can_be_scored(self, prompt: ServedPrompt, text: str, tokens: Beginning | None = None) -> bool:
        """Whether a text that the model wrote, perhaps with these tokens, can be a candidate."""
        if not is_answer(text) or not self._may_keep(text):
            return False
        try:
            await self._tokenizer.continuation(prompt, text, tokens)
        except UnreadableCandidateError:  # it melts into the prompt
            return False
        return True

    async def _served_beams(self, prompt: ServedPrompt, count: int, post: Post) -> list[WrittenTokens]:
        """The server's own search; answers that did not end are left out."""
        ended: list[WrittenTokens] = []
        for most in _STEPS:
            settings = {"use_beam_search": True, "n": count, "max_tokens": most, "length_penalty": 0.0, **NUMBERED}
            found = await post(None, settings, partial(self._check, count=count, most=most, tail=prompt.tail))
            ended = [beam for beam in found if beam.stopped]
            if len(ended) == len(found):  # nothing that goes on is more probable
                break
        return ended

    def _check(self, answer: Any, count: int, most: int, tail: tuple[int, ...]) -> list[WrittenTokens]:
        found = beams(answer, count, most, tail)
        if any(beam.stopped and beam.stop_reason != self._end.token for beam in found):
            raise WrongAnswerError("a beam did not end with the token that ends answers")
        return found

    async def _own_beams(self, prompt: ServedPrompt, count: int, post: Post, with_image: bool) -> list[Beginning]:
        search, ways = AnswerSearch(count, self._end.token), dict[Beginning, tuple[Continuation, ...]]()
        tokens = CandidateTokens(prompt.tail, (), ways)
        while search.running:
            read: dict[Beginning, NextTokens] = {}
            for beam in search.running:
                if beam:
                    ways[beam] = await self._tokenizer.ways_to(prompt, beam, ways)
                try:
                    read[beam] = await self._branches.top(tokens, beam, post, with_image=with_image)
                except UnreadableCandidateError:  # the chat template does not reproduce this beam: it is given up
                    if not beam:
                        raise
                    read[beam] = NextTokens({})
            search.advance(read)
        return search.answers()

    async def _text(self, prompt: ServedPrompt, tokens: Beginning) -> str:
        whole = await self._tokenizer.text_behind(prompt, tokens)
        return whole.removeprefix(prompt.shown) if whole.startswith(prompt.shown) else ""
