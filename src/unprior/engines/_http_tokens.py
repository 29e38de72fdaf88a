"""Tokens of candidates, as the server's own tokenizer makes them behind its own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unprior.engines._candidate_tree import Beginning, branch_points
from unprior.engines._http_answers import token_list
from unprior.engines._http_client import HttpClient, WrongAnswerError
from unprior.errors import UnpriorError

_TAIL = 4  # tokens at the end of the prompt that must be the same for tokens of candidates to be used again
_PROBE = "Yes"
_TRIES = 10


@dataclass(frozen=True, slots=True)
class CandidateTokens:
    """Tokens of candidates behind one prompt."""

    tail: tuple[int, ...]
    """The last tokens of the prompt."""
    candidates: tuple[Beginning, ...]
    contents: dict[Beginning, str]
    """What the assistant must have written so far, for every beginning that is longer than nothing."""


class ServerTokenizer:
    """Asks a vLLM server how it tokenises."""

    def __init__(self, client: HttpClient, model: str, *, adds_start: bool, most_wrong: int | None = None) -> None:
        """``adds_start``: whether a start token is added to what the chat template gives."""
        self.client, self.model, self.adds_start, self.most_wrong = client, model, adds_start, most_wrong

    async def chat(self, text: str, continued: str | None = None) -> list[int]:
        """Tokens of a user's turn and the beginning of the assistant's."""
        body = {
            "model": self.model,
            **conversation([{"type": "text", "text": text}], continued),
            "add_special_tokens": self.adds_start,
        }
        return await self._agreed(body)

    async def raw(self, text: str) -> list[int]:
        """Tokens of a text that is laid out already."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        return await self._agreed(body)

    async def text_of(self, tokens: Sequence[int | str]) -> str:
        """The text of tokens."""
        body = {"model": self.model, "tokens": list(tokens)}
        return await self.client.post("/detokenize", body, _text, most_wrong=self.most_wrong)

    async def encode(self, text: str, candidates: Sequence[str]) -> CandidateTokens:
        """Tokenise candidates together with the prompt they continue."""
        prompt = await self.chat(text)
        shown = await self.text_of(prompt)
        lead = await self._lead(text, shown)
        found = [tuple(await self._continuation(text, prompt, shown, lead, candidate)) for candidate in candidates]
        contents = {
            beginning: (await self.text_of([*prompt, *beginning])).removeprefix(shown).removeprefix(lead or "")
            for beginning in branch_points(found)
            if beginning
        }
        return CandidateTokens(tuple(prompt[-_TAIL:]), tuple(found), contents)

    async def _agreed(self, body: dict[str, Any]) -> list[int]:
        """Tokens that the server gave twice: a single wrong list could not be told from a right one."""
        seen: list[list[int]] = []
        for _ in range(_TRIES):
            tokens = await self.client.post("/tokenize", body, token_list, most_wrong=self.most_wrong)
            if tokens in seen:
                return tokens
            seen.append(tokens)
        raise UnpriorError(f"the server tokenised one text in {_TRIES} different ways; check it")

    async def _lead(self, text: str, shown: str) -> str | None:
        """What the template itself puts before an assistant's words, such as a space; None when it moves them."""
        continued = await self.text_of(await self.chat(text, _PROBE))
        if not (continued.startswith(shown) and continued.endswith(_PROBE)):
            return None
        return continued[len(shown) : -len(_PROBE)]

    async def _continuation(
        self, text: str, prompt: list[int], shown: str, lead: str | None, candidate: str
    ) -> list[int]:
        if not candidate:
            raise UnpriorError("an empty candidate tokenises to nothing")
        joint: list[int] | None = None
        if lead is not None and candidate.startswith(lead) and candidate != lead:
            joint = await self.chat(text, candidate.removeprefix(lead))
            if await self.text_of(joint) != shown + candidate:
                joint = None  # the template trims what the assistant says
        if joint is None:
            if await self.raw(shown) != prompt:
                raise UnpriorError(
                    f"candidate {candidate!r} cannot be put behind the server's chat template; choose another "
                    f"continuation in the prompt layout"
                )
            joint = await self.raw(shown + candidate)
        if joint[: len(prompt)] != prompt:
            raise UnpriorError(
                f"candidate {candidate!r} changes how the end of the prompt is tokenised; choose another "
                f"continuation in the prompt layout"
            )
        if len(joint) == len(prompt):
            raise UnpriorError(f"candidate {candidate!r} tokenises to nothing")
        return joint[len(prompt) :]


def conversation(content: list[dict[str, Any]], continued: str | None) -> dict[str, Any]:
    """One user turn, and the beginning of the assistant's turn where there is one."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if continued is None:
        return {"messages": messages}
    messages.append({"role": "assistant", "content": continued})
    return {"messages": messages, "add_generation_prompt": False, "continue_final_message": True}


def _text(answer: Any) -> str:
    text = answer.get("prompt") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        raise WrongAnswerError("it is no text")
    return text
