"""The token that ends an answer of a served model, found out by asking the server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unprior.engines.openai.client import BrokenServerError, HttpClient, UnreachableError, WrongAnswerError
from unprior.engines.openai.replies import NamedModel, WrittenTokens, written_tokens
from unprior.engines.openai.server import CHAT, NUMBERED, Served, question
from unprior.engines.openai.tokens import ServerTokenizer
from unprior.errors import UnpriorError

_QUESTION = "Is this a question?\nAnswer with yes or no."
_ANSWERS = ("Yes", "No")
_MAX_BEHIND = 4  # tokens behind an answer that are looked at
_MAX_CHOICE = 16  # tokens of one word and the end
_FEW = 3  # wrong answers: the server does not know how
_TRIES = 5


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The token that ends an answer."""

    token: int
    ends_beams: bool
    """Whether vLLM's own beam search ends answers there: it knows the tokenizer's end token only, no other at which
    generation stops, such as ``<end_of_turn>`` of Gemma."""


class EndProbe:
    """Finds the token that ends an answer.

    It is the one that the chat template writes behind an assistant's turn, if generation stops there; otherwise the one
    that a server writes where nothing else is allowed any more.
    """

    def __init__(self, client: HttpClient, tokenizer: ServerTokenizer, served: Served, named: NamedModel) -> None:
        """``tokenizer``: told the same about the chat template as in all requests."""
        self._client, self._tokenizer, self._served, self._named = client, tokenizer, served, named

    async def find(self) -> AnswerEnd | None:
        """The end; None where the server cannot be asked about it."""
        if not (self._served.tokenizes and self._served.tells_prompt):  # no numbers of the tokens that were written
            return None
        first, second = [await self._tokenizer.answered(_QUESTION, answer) for answer in _ANSWERS]
        behind = common_end(first, second)[:_MAX_BEHIND] if first and second else []
        for token in behind:
            if (end := await self._as_end(token)) is not None:
                return end
        written = await self._ask({"structured_outputs": {"choice": ["yes"]}, "max_tokens": _MAX_CHOICE})
        if written is None or not written.stopped or not written.tokens:
            return None
        return await self._as_end(written.tokens[-1])

    async def _as_end(self, token: int) -> AnswerEnd | None:
        """Have the model write the token, and nothing else: does it end there?"""
        written = await self._ask({"allowed_token_ids": [token], "max_tokens": 2}, only=token)
        if written is None or not written.stopped or len(written.tokens) != 1:
            return None
        # vLLM names the token that it stopped at, unless it is the tokenizer's end token.
        return AnswerEnd(token, ends_beams=written.stop_reason is None)

    async def _ask(self, settings: dict[str, Any], only: int | None = None) -> WrittenTokens | None:
        asked = question(self._served.model, [{"type": "text", "text": _QUESTION}])
        body, check = asked | self._served.extras | NUMBERED | settings, partial(_checked, only=only)
        try:
            return await self._client.post(CHAT, body, self._named.checking(check), max_wrong=_FEW, attempts=_TRIES)
        except BrokenServerError:  # so some servers say that they cannot do what was asked for
            return None
        except UnreachableError:
            raise
        except UnpriorError:  # refused, or understood otherwise
            return None


def _checked(answer: Any, only: int | None) -> WrittenTokens:
    written = written_tokens(answer)
    if only is not None and set(written.tokens) != {only}:
        raise WrongAnswerError("it has other tokens than the one that was allowed")
    return written


def common_end(first: list[int], second: list[int]) -> list[int]:
    """What two lists have in common at their ends.

    >>> common_end([1, 2, 8, 9], [1, 3, 8, 9])
    [8, 9]
    """
    length = 0
    while length < min(len(first), len(second)) and first[-1 - length] == second[-1 - length]:
        length += 1
    return first[len(first) - length :]
