"""One question to a served model: its answer, the scores of candidates, or the answers that it would give."""

from __future__ import annotations

import asyncio
import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from unprior.answer_forms import read_open_answer
from unprior.engines.answer_search import as_proposed
from unprior.engines.candidate_tree import NextTokens, branch_points, sum_up
from unprior.engines.openai.branches import BranchReader
from unprior.engines.openai.client import HttpClient
from unprior.engines.openai.endings import AnswerEnd
from unprior.engines.openai.images import Shown, user_content
from unprior.engines.openai.proposals import Proposer
from unprior.engines.openai.replies import MAX_NAMED_TOKENS, NamedModel, first_tokens, written_text
from unprior.engines.openai.server import CHAT, Served, naming, question
from unprior.engines.openai.sizes import SAME_END
from unprior.engines.openai.tokens import CandidateTokens, Continuation, ServedPrompt, ServerTokenizer
from unprior.engines.protocol import Answered, CandidateScores, Proposed, Query, QueryFailure
from unprior.errors import UnpriorError, format_option
from unprior.prompts import PromptLayout, opens_block

_MAX_ENDS = 1000  # ends whose tokens are kept; nearly always there are a few

Result = TypeVar("Result")


def longest_wait(seconds: float) -> float:
    """How long to wait for something that usually takes as long as what took so many seconds.

    >>> longest_wait(0.5)
    7.0
    """
    return 2.0 + 10.0 * seconds


@dataclass
class Asking:
    """Asks about an image that one server is shown, or about none."""

    client: HttpClient
    tokenizer: ServerTokenizer
    served: Served
    named: NamedModel
    end: AnswerEnd | None
    """What whole answers end with; None if the server does not tell."""
    layout: PromptLayout
    max_new_tokens: int
    """Longest original answer."""
    _encoded: dict[tuple[str, tuple[str, ...], bool], CandidateTokens] = field(default_factory=dict)
    _encoding: weakref.WeakValueDictionary[Any, asyncio.Lock] = field(default_factory=weakref.WeakValueDictionary)

    def __post_init__(self) -> None:
        """Find out with the first questions how prompts are continued."""
        self._branches = BranchReader(self.served)

    async def original(self, shown: Shown, text: str) -> str:
        """The greedy answer."""
        return self._as_told(await self.post(shown, text, None, self._length, written_text))

    async def answer(self, query: Query, shown: Shown) -> Answered:
        """The greedy answer and the scores, one after the other: servers keep what they have read of the image."""
        if (tokens := await self._same_prompt(query)) is not None:
            return await self._both(query, shown, tokens)
        return Answered(await self.original(shown, query.text), await self.score(query, shown))

    async def answer_soon(
        self, query: Query, shown: Shown, patience: float
    ) -> tuple[str, CandidateScores | QueryFailure] | QueryFailure:
        """Both together, for whoever waits; scores that take more than so many seconds are given up."""
        try:
            if (tokens := await self._same_prompt(query)) is not None:
                return await self._both_or_answer(query, shown, tokens)
            clock = asyncio.get_running_loop().time
            scoring, started = asyncio.ensure_future(self._score_within(patience, query, shown)), clock()
            try:
                text = await self.original(shown, query.text)
                try:
                    async with asyncio.timeout(longest_wait(clock() - started)):
                        return text, await scoring
                except TimeoutError:
                    return text, QueryFailure("the scores take much longer than the answer")
            finally:
                scoring.cancel()
        except UnpriorError as error:
            return QueryFailure(str(error))

    async def score(self, query: Query, shown: Shown, prompt: ServedPrompt | None = None) -> CandidateScores:
        """Scores of the candidates."""
        if self.served.tokenizes or query.whole:
            tokens = await self.tokens(query, prompt)
        else:
            tokens = CandidateTokens((), tuple((candidate,) for candidate in query.candidates), {})
        post = partial(self.post, shown, query.text + self.layout.scoring_suffix)
        return await self._branches.scores(tokens, post, with_image=shown.image is not None)

    async def propose(self, query: Query, shown: Shown, count: int) -> Proposed:
        """The most probable whole answers, scored beside the query's candidates and the original answer."""
        with_image = shown.image is not None
        original = await self.original(shown, query.text) if with_image else None
        text = query.text + self.layout.scoring_suffix
        prompt = await self.tokenizer.prompt(text)
        hides = self.client.mask.in_answer
        proposer = Proposer(
            self.tokenizer, self._branches, self.require_end(), may_keep=lambda found: hides(found) == found
        )
        found = await proposer.answers(prompt, count, partial(self.post, shown, text), with_image=with_image)
        first = list(dict.fromkeys(query.candidates))
        answer = None if original is None else read_open_answer(original)
        if answer is not None and answer not in first and await proposer.can_be_scored(prompt, answer):
            first.append(answer)
        # All are scored in one way, however they were found.
        whole = Query(query.image, query.text, tuple(dict.fromkeys([*first, *found])), whole=True)
        scored = await self.score(whole, shown, prompt)
        return as_proposed(original, len(first), whole.candidates, scored, found)

    def require_end(self) -> AnswerEnd:
        """What whole answers end with, or why that is not known."""
        if self.end is None:
            raise UnpriorError(
                f"{self.client.base_urls[0]} does not tell which token ends an answer of {self.served.model}, so "
                f"whole answers can be neither searched for nor scored; serve the model with vLLM 0.26 or newer, or "
                f"use {format_option('engine', 'transformers')}"
            )
        return self.end

    async def post(
        self,
        shown: Shown,
        text: str,
        continued: Continuation | None,
        settings: dict[str, Any],
        check: Callable[[Any], Result],
    ) -> Result:
        """Send a question with further settings, and check the answer."""
        body = question(self.served.model, user_content(shown.image, text), continued) | self.served.extras | settings
        if shown.in_full:  # vLLM finds only prompts with the same salt in its cache
            body["cache_salt"] = secrets.token_hex()
        checking = self.named.checking(check)
        return await self.client.post(CHAT, body, checking, image=shown.image, server=shown.server)

    async def tokens(self, query: Query, prompt: ServedPrompt | None = None) -> CandidateTokens:
        """Tokens of the candidates; they are the same behind every prompt with the same end, which answers repeat."""
        text, end = query.text + self.layout.scoring_suffix, self.require_end().token if query.whole else None

        async def encode() -> CandidateTokens:
            return await self.tokenizer.encode(prompt or await self.tokenizer.prompt(text), query.candidates, end)

        if not self.served.tells_prompt:
            return await encode()
        key = (text[-SAME_END:], query.candidates, query.whole)
        async with self._encoding.setdefault(key, asyncio.Lock()):  # others with this end wait for the first one
            if key not in self._encoded:
                encoded = await encode()
                if len(self._encoded) >= _MAX_ENDS:
                    self._encoded.clear()
                self._encoded[key] = encoded
            return self._encoded[key]

    @property
    def _length(self) -> dict[str, Any]:
        return {"max_tokens": self.max_new_tokens}

    def _as_told(self, written: str) -> str:
        written = self.client.mask.in_answer(written)
        return written if opens_block(written) else self.served.opened_block + written

    async def _score_within(self, patience: float, query: Query, shown: Shown) -> CandidateScores | QueryFailure:
        try:
            async with asyncio.timeout(patience):
                return await self.score(query, shown)
        except UnpriorError as error:
            return QueryFailure(str(error))
        except TimeoutError:
            return QueryFailure(f"no scores within {patience:g} seconds")

    async def _same_prompt(self, query: Query) -> CandidateTokens | None:
        """Tokens of the candidates where one request gives answer and scores; None where it takes more.

        It does where both are asked for with the same words, and candidates are one token each.
        """
        served = self.served
        if self.layout.scoring_suffix or served.top_k is not None or served.opened_block or query.whole:
            return None
        tokens = await self.tokens(query)
        (first, *further) = branch_points(tokens.candidates).values()
        return None if further or len(first) > MAX_NAMED_TOKENS else tokens

    async def _both(self, query: Query, shown: Shown, tokens: CandidateTokens) -> Answered:
        asked = [token for (token,) in tokens.candidates if isinstance(token, int)]
        tail = [token for token in tokens.tail if isinstance(token, int)] if self.served.tells_prompt else None

        def check(reply: Any) -> tuple[str, NextTokens]:
            return written_text(reply), first_tokens(reply, asked, tail)

        written, visible = await self.post(shown, query.text, None, self._length | naming(asked), check)
        return Answered(self._as_told(written), sum_up(tokens.candidates, {(): visible}))

    async def _both_or_answer(
        self, query: Query, shown: Shown, tokens: CandidateTokens
    ) -> tuple[str, CandidateScores | QueryFailure]:
        try:
            found = await self._both(query, shown, tokens)
        except UnpriorError as error:  # without scores, the answer may still be had
            return await self.original(shown, query.text), QueryFailure(str(error))
        return found.text, found.scored
