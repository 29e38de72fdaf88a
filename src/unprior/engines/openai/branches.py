"""Reading a served model's distributions at every branch of the candidates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from unprior.engines.candidate_tree import (
    Beginning,
    NextTokens,
    Token,
    UnreadableCandidateError,
    branch_points,
    leads_to,
    sum_up,
)
from unprior.engines.openai.client import OtherPromptError
from unprior.engines.openai.replies import MAX_NAMED_TOKENS, named_tokens
from unprior.engines.openai.server import Served, naming
from unprior.engines.openai.tokens import CandidateTokens, Continuation
from unprior.engines.protocol import CandidateScores

_UNREADABLE = NextTokens({}, floor=0.0)  # any token may follow for certain: what came before is the bound
_START = Continuation()


class Post(Protocol):
    """Asks about one prompt and what it is continued by."""

    def __call__(
        self, continued: Continuation, settings: dict[str, Any], check: Callable[[Any], NextTokens]
    ) -> Awaitable[NextTokens]:
        """Send the question with further settings, and check the answer."""
        ...


class BranchReader:
    """Reads the distribution at every branch of candidates, what begins alike once.

    A beginning that the chat template does not reproduce in any way cannot be read: behind a server with exact scores
    the query fails, behind one that shows the top tokens the candidate is censored.
    """

    def __init__(self, served: Served) -> None:
        """``served``: what the server can do."""
        self.served = served
        self._way = {False: 0, True: 0}  # by whether there is an image: which way of continuing holds

    async def scores(self, tokens: CandidateTokens, post: Post, *, with_image: bool) -> CandidateScores:
        """Scores of the candidates behind one prompt."""
        read: dict[Beginning, NextTokens] = {}
        for beginning, following in branch_points(tokens.candidates).items():
            if leads_to(beginning, read):
                ask = partial(self._read, post, (*tokens.tail, *beginning), following)
                read[beginning] = await (
                    self._continued(tokens, beginning, ask, with_image) if beginning else ask(_START)
                )
        return sum_up(tokens.candidates, read)

    async def top(self, tokens: CandidateTokens, beginning: Beginning, post: Post, *, with_image: bool) -> NextTokens:
        """The most probable tokens after a beginning, as many as the server shows."""
        ask = partial(self._read, post, (*tokens.tail, *beginning), ())
        return await (self._continued(tokens, beginning, ask, with_image) if beginning else ask(_START))

    async def _continued(
        self,
        tokens: CandidateTokens,
        beginning: Beginning,
        ask: Callable[[Continuation], Awaitable[NextTokens]],
        with_image: bool,
    ) -> NextTokens:
        ways = tokens.ways.get(beginning, ())
        for number, way in enumerate(ways):
            if number < self._way[with_image] and len(ways) > 1:
                continue
            try:
                return await ask(way)
            except OtherPromptError:  # with an image, a template may do something else than without, as it was tried
                self._way[with_image] = number + 1
        if self.served.top_k is not None:
            return _UNREADABLE
        raise UnreadableCandidateError(
            "the chat template does not reproduce the beginning of a candidate of several tokens; use candidates of "
            "one token, another continuation in the prompt layout, or serve the model with a template that leaves "
            "words as they are"
        )

    async def _read(
        self, post: Post, tail: tuple[Token, ...], following: tuple[Token, ...], continued: Continuation
    ) -> NextTokens:
        served, first, wanted = self.served, continued.written, list(following)
        if first is not None:
            tail = tail[:-1]
            # One that the model may not write: it has a probability only if the server tells those before such rules.
            wanted += [token for token in tail if token != first and token not in wanted][:1]
        end = [token for token in tail if isinstance(token, int)] if served.tells_prompt else None
        if served.top_k is not None or not following:
            check = partial(served.read_shown, tail=end, first=first)
            return await post(continued, served.showing | continued.settings, check)
        visible: dict[Token, float] = {}
        for start in range(0, len(wanted), MAX_NAMED_TOKENS):
            asked = [token for token in wanted[start : start + MAX_NAMED_TOKENS] if isinstance(token, int)]
            check = partial(named_tokens, asked=asked, tail=end, first=first)
            visible |= (await post(continued, naming(asked) | continued.settings, check)).visible
        return NextTokens(visible)
