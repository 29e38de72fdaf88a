"""What a server is and can do, found out by asking it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unprior.engines.candidate_tree import NextTokens
from unprior.engines.openai.client import HttpClient, RefusedError, UnreachableError, WrongAnswerError
from unprior.engines.openai.replies import NamedModel, named_tokens, number_of_top_tokens, prompt_tokens, top_tokens
from unprior.engines.openai.tokens import Continuation, ServerTokenizer, conversation
from unprior.errors import UnpriorError, format_option
from unprior.prompts import opened_block

CHAT = "/v1/chat/completions"
"""Where questions are asked."""
_QUESTION = "Is this a question?\nAnswer with yes or no."
_TOP = (20, 5)
_MAX_WRONG = 3  # answers without what was asked for: the server does not know how
_FIRST_TRIES = 4  # a wrong address should be reported soon
_WITHOUT_THINKING: dict[str, Any] = {"enable_thinking": False, "thinking": False}
NUMBERED = {"return_tokens_as_token_ids": True, "return_token_ids": True}
"""The part of a request that asks for the numbers of tokens."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model behind a server."""

    model: str
    """What requests call it."""
    root: str
    """What it was loaded from, as far as the server tells."""
    software: str
    """What the server calls itself (vLLM: ``vllm``), empty if it does not tell."""
    version: str
    """The server's own version, empty if it does not tell."""
    longest: int | None
    """Tokens that fit."""
    top_k: int | None
    """Only so many of the most probable tokens are visible; None when any token can be named."""
    tokenizes: bool
    """Whether it tells the numbers of tokens."""
    adds_start: bool
    """Whether a start token must be added to what its chat template gives."""
    tells_prompt: bool
    """Whether answers repeat the tokens of the prompt, so that they can be checked."""
    opened_block: str
    """A thinking block that the chat template opens by itself, whatever it is told."""
    thinking: str
    """``left out`` where the chat template writes otherwise when it is told to leave thinking out."""
    served_model: str
    """What replies call the model, perhaps an alias; empty if they do not tell."""
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the user tells the chat template."""

    def refusal(self, address: str) -> str | None:
        """Why scores from this server are of no use, and what to do; None where they are."""
        if self.template_arguments and not self.tokenizes:
            return (
                f"{self.model}: nothing shows that {address} passes template arguments on, because it has no "
                f"/tokenize; leave them out, or set them where the model is served"
            )
        if self.opened_block:
            return (
                f"{self.model}: the chat template opens a thinking block ({self.opened_block}), so "
                f"candidates would be scored as the first words of a thought; give the template the "
                f"argument that switches thinking off (command line: --template-arg), or serve the model with a "
                f"template that opens none (vllm serve --chat-template FILE)"
            )
        return None

    @property
    def extras(self) -> dict[str, Any]:
        """Settings that only such servers know; a penalty from the model's folder would change greedy answers."""
        if not self.tokenizes:
            return {}
        return {"add_special_tokens": self.adds_start, "repetition_penalty": 1.0, **self.template_settings}

    @property
    def template_settings(self) -> dict[str, Any]:
        """What the chat template is told."""
        return _telling((_WITHOUT_THINKING if self.thinking else {}) | dict(self.template_arguments))

    @property
    def showing(self) -> dict[str, Any]:
        """The part of a request that asks for the most probable tokens."""
        return {"logprobs": True, "top_logprobs": self.top_k or _TOP[0], **(NUMBERED if self.tokenizes else {})}

    def read_shown(self, answer: Any, tail: Sequence[int] | None = None, first: int | None = None) -> NextTokens:
        """Check and read an answer to such a request; see :func:`named_tokens`."""
        return top_tokens(answer, self.top_k or 0, numbered=self.tokenizes, tail=tail, first=first)


async def examine(client: HttpClient, model: str, template_arguments: Mapping[str, Any]) -> Served:
    """Ask the servers what they serve, and the first one what it can do."""
    found = {await identify(client, model, server) for server in range(len(client.base_urls))}
    if len(found) > 1:
        described = "; ".join(f"{root or 'unknown'} on version {version or 'unknown'}" for root, _, version, _ in found)
        raise UnpriorError(f"the servers differ for {model}: {described}; give only servers that are alike")
    root, software, version, longest = found.pop()
    without, with_start = (
        ServerTokenizer(client, model, adds_start=adds, settings=_telling(template_arguments), max_wrong=_MAX_WRONG)
        for adds in (False, True)
    )
    tokens, adds_start, opened, thinking = None, False, "", ""
    try:
        plain, started = await without.chat(_QUESTION), await with_start.chat(_QUESTION)
        # A start token is added only where the template has none: two of them would be one too many.
        adds_start = len(started) == len(plain) or started[0] != plain[0]
        tokens = started if adds_start else plain
        settings = _telling(_WITHOUT_THINKING | dict(template_arguments))
        told = ServerTokenizer(client, model, adds_start=adds_start, settings=settings, max_wrong=_MAX_WRONG)
        if (quiet := await told.chat(_QUESTION)) != tokens:  # as in process, where a template is told what it knows
            tokens, thinking = quiet, "left out"
        opened = opened_block((await without.text_of(tokens)).rpartition(_QUESTION.splitlines()[-1])[2])
    except UnreachableError:
        raise
    except UnpriorError:
        tokens = None  # refused, or understood otherwise
    named, top_k = NamedModel(client.mask), None
    tells = None if tokens is None else await _names_tokens(client, model, tokens, named)
    if tells is None:
        top_k, tells = await _visible_tokens(client, model, named, numbered=tokens is not None)
    return Served(
        model,
        root,
        software,
        version,
        longest,
        top_k,
        tokens is not None,
        adds_start,
        tells,
        opened,
        thinking,
        named.name,
        template_arguments,
    )


def _telling(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a request that tells the chat template something."""
    return {"chat_template_kwargs": dict(arguments)} if arguments else {}


async def identify(client: HttpClient, model: str, server: int) -> tuple[str, str, str, int | None]:
    """What one server says that it serves: where it was loaded from, software, version, longest prompt."""

    def check(answer: Any) -> list[dict[str, Any]]:
        entries = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and "id" in entry for entry in entries):
            raise WrongAnswerError("it is no list of models")
        return entries

    served = {
        str(entry["id"]): entry for entry in await client.get("/v1/models", check, server=server, attempts=_FIRST_TRIES)
    }
    if model not in served:
        known = client.mask(", ".join(served)) or "nothing"
        raise UnpriorError(f"{client.base_urls[server]} does not serve {model}; the model must be one of: {known}")
    entry = served[model]
    longest = entry.get("max_model_len")
    try:
        version = await client.get(
            "/version",
            lambda answer: str(answer.get("version", "")) if isinstance(answer, dict) else "",
            server=server,
            attempts=_FIRST_TRIES,
        )
    except RefusedError:
        version = ""
    root, software = (client.mask(str(entry.get(key) or "")) for key in ("root", "owned_by"))
    return root, software, client.mask(version), longest if isinstance(longest, int) else None


async def _names_tokens(client: HttpClient, model: str, tokens: Sequence[int], named: NamedModel) -> bool | None:
    """None if tokens cannot be named; otherwise whether answers repeat the tokens of the prompt."""
    asked = sorted(set(tokens))[:3]
    body = question(model, [{"type": "text", "text": _QUESTION}]) | naming(asked)

    def check(answer: Any) -> bool:
        named_tokens(answer, asked)
        return prompt_tokens(answer) is not None

    try:
        return await client.post(CHAT, body, named.checking(check), max_wrong=_MAX_WRONG)
    except UnreachableError:
        raise
    except UnpriorError:
        return None


async def _visible_tokens(client: HttpClient, model: str, named: NamedModel, *, numbered: bool) -> tuple[int, bool]:
    """How many tokens are shown, and whether answers repeat the tokens of the prompt."""

    def check(answer: Any) -> tuple[int, bool]:
        return number_of_top_tokens(answer), prompt_tokens(answer) is not None

    reason = ""
    for most in _TOP:
        body = question(model, [{"type": "text", "text": _QUESTION}]) | {"logprobs": True, "top_logprobs": most}
        body |= NUMBERED if numbered else {}
        try:
            return await client.post(CHAT, body, named.checking(check), max_wrong=_MAX_WRONG)
        except UnreachableError:
            raise
        except UnpriorError as error:
            reason = str(error)
    raise UnpriorError(
        f"{client.base_urls[0]} gives no log-probabilities for {model}, so candidates cannot be scored ({reason}); "
        f"serve the model with vLLM 0.26 or newer, or use {format_option('engine', 'transformers')}"
    )


def question(model: str, content: list[dict[str, Any]], continued: Continuation | None = None) -> dict[str, Any]:
    """A request for one token, written greedily."""
    return {"model": model, "temperature": 0, "max_tokens": 1, **conversation(content, continued)}


def naming(tokens: Sequence[int]) -> dict[str, Any]:
    """The part of a request that asks for the log-probabilities of named tokens."""
    return {"logprobs": True, "logprob_token_ids": list(tokens), **NUMBERED}
