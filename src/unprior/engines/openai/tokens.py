"""Tokens of candidates, as the server's own tokenizer makes them after its own chat template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from unprior.engines.candidate_tree import Beginning, UnreadableCandidateError, branch_points, tokens_after
from unprior.engines.openai.client import BrokenServerError, HttpClient, UnreachableError, WrongAnswerError
from unprior.engines.openai.replies import token_list
from unprior.errors import UnpriorError

_TAIL = 4  # tokens at the end of the prompt that must be the same for tokens of candidates to be used again
_PROBE = "Yes"
_TRIES = 10
_FEW_TRIES = 3  # of a request that the chat template may not take

Checked = TypeVar("Checked")


@dataclass(frozen=True, slots=True)
class Continuation:
    """How to go on after a user's turn.

    Some templates change what an assistant has written already: they trim it, or leave out a block that they open for a
    new answer. Then the user's turn is what goes on, over its own end and the opening of the answer, as the template
    writes them.
    """

    reply: str | None = None
    """What the assistant has written."""
    appended: str | None = None
    """What goes on after the user's words."""
    written: int | None = None
    """One more token, which the model itself is made to write: white space that every template trims at an end."""

    @property
    def settings(self) -> dict[str, Any]:
        """The part of a request that makes the model write the token; what it tells of probabilities stays as it is."""
        if self.written is None:
            return {}
        return {"max_tokens": 2, "allowed_token_ids": [self.written], "ignore_eos": True}


@dataclass(frozen=True, slots=True)
class CandidateTokens:
    """Tokens of candidates behind one prompt."""

    tail: tuple[int, ...]
    """The last tokens of the prompt."""
    candidates: tuple[Beginning, ...]
    ways: dict[Beginning, tuple[Continuation, ...]]
    """How a prompt is continued by a beginning; nothing for one that the chat template does not reproduce."""


@dataclass(frozen=True, slots=True, eq=False)
class ServedPrompt:
    """A user's turn as a server lays it out and tokenises it."""

    text: str
    """The user's words."""
    tokens: list[int]
    """With what opens the assistant's turn."""
    shown: str
    """The text of these tokens."""
    lead: str | None
    """What the template itself puts before an assistant's words, such as a space; None when it moves them."""
    asked: dict[Continuation, list[int] | None] = field(default_factory=dict)
    """Tokens of what was continued so far, which is asked for once; None where the template does not take it."""
    texts: dict[tuple[int, ...], str] = field(default_factory=dict)
    """Texts of tokens so far, which are asked for once, too."""

    @property
    def tail(self) -> tuple[int, ...]:
        """The last tokens."""
        return tuple(self.tokens[-_TAIL:])


class ServerTokenizer:
    """Asks a vLLM server how it tokenises."""

    def __init__(
        self,
        client: HttpClient,
        model: str,
        *,
        adds_start: bool,
        settings: Mapping[str, Any] | None = None,
        max_wrong: int | None = None,
        only: int | None = None,
    ) -> None:
        """``adds_start``: whether a start token is added to what the chat template gives.

        ``settings`` are passed on to the template; ``only`` names the one server to ask.
        """
        self.client, self.model, self.adds_start = client, model, adds_start
        self.settings, self.max_wrong, self.only = dict(settings or {}), max_wrong, only
        self._known_lead: tuple[str | None] | None = None

    async def chat(self, text: str) -> list[int]:
        """Tokens of a user's turn and what opens the assistant's."""
        return await self._agreed(self._conversation(text, None))

    async def raw(self, text: str) -> list[int]:
        """Tokens of a text that is laid out already."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        return await self._agreed(body)

    async def text_of(self, tokens: Sequence[int | str]) -> str:
        """The text of tokens."""
        body = {"model": self.model, "tokens": list(tokens)}
        return await self._ask("/detokenize", body, _text)

    async def answered(self, text: str, reply: str) -> list[int] | None:
        """Tokens of a user's turn and a whole answer; None where the chat template does not take it."""
        body = self._conversation(text, Continuation(reply=reply))
        return await self._taken(body | {"continue_final_message": False})

    async def prompt(self, text: str) -> ServedPrompt:
        """A user's turn that answers continue."""
        tokens = await self.chat(text)
        shown = await self.text_of(tokens)
        return ServedPrompt(text, tokens, shown, await self._lead(text, shown))

    async def encode(self, prompt: ServedPrompt, candidates: Sequence[str], end: int | None = None) -> CandidateTokens:
        """Tokenise candidates together with the prompt they continue; the token ``end`` stands behind each of them."""
        ending = () if end is None else (end,)
        found = [(*await self.continuation(prompt, candidate), *ending) for candidate in candidates]
        ways: dict[Beginning, tuple[Continuation, ...]] = {}
        for beginning in branch_points(found):
            if beginning:
                ways[beginning] = await self.ways_to(prompt, beginning, ways)
        return CandidateTokens(prompt.tail, tuple(found), ways)

    async def ways_to(
        self,
        prompt: ServedPrompt,
        beginning: Beginning,
        shorter: Mapping[Beginning, tuple[Continuation, ...]],
    ) -> tuple[Continuation, ...]:
        """How a prompt is continued by a beginning, given the ways to shorter ones; nothing if it cannot be."""
        wanted = [*prompt.tokens, *map(int, beginning)]
        written = (await self.text_behind(prompt, beginning)).removeprefix(prompt.shown)
        if ways := await self._ways(prompt, written, wanted):
            return ways
        before = shorter.get(beginning[:-1], (Continuation(),))
        return tuple(replace(way, written=wanted[-1]) for way in before if way.written is None)

    async def text_behind(self, prompt: ServedPrompt, beginning: Beginning) -> str:
        """The text of a prompt and what continues it; tokens alone may lose a space before the first word."""
        return await self._text(prompt, [*prompt.tokens, *map(int, beginning)])

    async def _text(self, prompt: ServedPrompt, tokens: list[int]) -> str:
        key = tuple(tokens)
        if key not in prompt.texts:
            prompt.texts[key] = await self.text_of(tokens)
        return prompt.texts[key]

    async def continues(self, text: str, beginning: str) -> bool:
        """Whether a prompt can be continued at all: whether candidates of several tokens can be scored."""
        prompt = await self.prompt(text)
        wanted = [*prompt.tokens, *await self.continuation(prompt, beginning)]
        return bool(await self._ways(prompt, beginning, wanted))

    async def _ways(self, prompt: ServedPrompt, written: str, wanted: list[int]) -> tuple[Continuation, ...]:
        """Those ways of going on that give the tokens that are wanted."""
        users, shown, lead = prompt.text.strip(), prompt.shown, prompt.lead
        place = shown.rfind(users)
        over = Continuation(appended=shown[place + len(users) :] + written) if place >= 0 else None
        if lead is not None and written.startswith(lead) and written != lead:
            direct = Continuation(reply=written.removeprefix(lead))
            if await self._continued(prompt, direct, wanted) == wanted:
                return (direct,) if over is None else (direct, over)
        if over is not None and await self._continued(prompt, over, wanted) == wanted:
            return (over,)
        return ()

    def _conversation(self, text: str, continued: Continuation | None) -> dict[str, Any]:
        asked = conversation([{"type": "text", "text": text}], continued)
        return {"model": self.model, **asked, "add_special_tokens": self.adds_start, **self.settings}

    async def _continued(
        self, prompt: ServedPrompt, continued: Continuation, expected: list[int] | None = None
    ) -> list[int] | None:
        """Tokens of a prompt that goes on; None where the chat template does not take it."""
        if continued not in prompt.asked:
            prompt.asked[continued] = await self._taken(self._conversation(prompt.text, continued), expected)
        return prompt.asked[continued]

    async def _taken(self, body: dict[str, Any], expected: list[int] | None = None) -> list[int] | None:
        """Tokens of a conversation; None where the chat template does not take it."""
        try:
            return await self._agreed(body, attempts=_FEW_TRIES, expected=expected)
        except BrokenServerError:  # so some servers say that the template failed
            return None
        except UnreachableError:
            raise
        except UnpriorError:
            return None

    async def _agreed(
        self, body: dict[str, Any], attempts: int | None = None, expected: list[int] | None = None
    ) -> list[int]:
        """Tokens that were expected, or that the server gave twice: a wrong list could not be told from a right one."""
        seen: list[list[int]] = [] if expected is None else [expected]
        for _ in range(_TRIES):
            tokens = await self._ask("/tokenize", body, token_list, attempts)
            if tokens in seen:
                return tokens
            seen.append(tokens)
        raise UnpriorError(f"the server tokenised one text in {_TRIES} different ways; check it")

    async def _ask(
        self, path: str, body: dict[str, Any], check: Callable[[Any], Checked], attempts: int | None = None
    ) -> Checked:
        return await self.client.post(path, body, check, max_wrong=self.max_wrong, only=self.only, attempts=attempts)

    async def _lead(self, text: str, shown: str) -> str | None:
        """What the template itself puts before an assistant's words, such as a space; None when it moves them."""
        if self._known_lead is None:  # a property of the template: asked for once
            tokens = await self._taken(self._conversation(text, Continuation(reply=_PROBE)))
            continued = "" if tokens is None else await self.text_of(tokens)
            kept = continued.startswith(shown) and continued.endswith(_PROBE)
            self._known_lead = (continued[len(shown) : -len(_PROBE)] if kept else None,)
        return self._known_lead[0]

    async def continuation(self, prompt: ServedPrompt, candidate: str, expected: Beginning | None = None) -> list[int]:
        """Tokens of a candidate behind a prompt; the model may have written it with the tokens that are expected."""
        if not candidate:
            raise UnreadableCandidateError("an empty candidate tokenises to nothing")
        joint: list[int] | None = None
        lead, shown = prompt.lead, prompt.shown
        if lead is not None and candidate.startswith(lead) and candidate != lead:
            known = None if expected is None else [*prompt.tokens, *map(int, expected)]
            joint = await self._continued(prompt, Continuation(reply=candidate.removeprefix(lead)), known)
            if joint is not None and await self._text(prompt, joint) != shown + candidate:
                joint = None  # the template trims what the assistant says
        if joint is None:
            if await self.raw(shown) != prompt.tokens:
                raise UnreadableCandidateError(
                    f"candidate {candidate!r} cannot be put behind the server's chat template; choose another "
                    f"continuation in the prompt layout"
                )
            joint = await self.raw(shown + candidate)
        return tokens_after(prompt.tokens, joint, candidate)


def conversation(content: list[dict[str, Any]], continued: Continuation | None = None) -> dict[str, Any]:
    """One user turn, whose words are the last part of its content, and how it goes on.

    >>> conversation([{"type": "text", "text": "Red?"}], Continuation(appended="</s>ANSWER: n"))["messages"]
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Red?</s>ANSWER: n'}]}]
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if continued is None or continued.reply is continued.appended is None:
        return {"messages": messages}
    if continued.appended is not None:
        words = content[-1]["text"].rstrip() + continued.appended
        messages = [{"role": "user", "content": [*content[:-1], {"type": "text", "text": words}]}]
    else:
        messages.append({"role": "assistant", "content": continued.reply})
    return {"messages": messages, "add_generation_prompt": False, "continue_final_message": True}


def _text(answer: Any) -> str:
    text = answer.get("prompt") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        raise WrongAnswerError("it is no text")
    return text
