"""Replies of a server: every number is checked before it becomes a score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from unprior.engines.candidate_tree import NextTokens, Token
from unprior.engines.openai.client import WrongAnswerError, WrongPromptError
from unprior.errors import UnpriorError

MAX_NAMED_TOKENS = 128
"""vLLM takes no more in `logprob_token_ids`."""
_ABSENT = -9999.0  # what vLLM writes for minus infinity: the filling of shorter lists in a batch, never a real value
_PREFIX = "token_id:"
_ABOVE_ONE = 1e-2
_APART = 1e-3  # between two mentions of one log-probability, which servers may round
_MAX_TEXT = 2**20  # characters of an answer; no number of tokens that people ask for has more

Checked = TypeVar("Checked")


class ModelChangedError(UnpriorError):
    """A reply names another model than the replies before."""


class NamedModel:
    """The model that replies name, which may be an alias of the one asked for; the first reply fixes it."""

    def __init__(self, mask: Callable[[str], str], name: str = "") -> None:
        """``mask``: takes secrets out of messages; ``name``: what a reply called the model, empty if none did."""
        self.mask, self.name = mask, name
        self.changed: ModelChangedError | None = None
        """Why no further reply can be trusted."""

    def checking(self, check: Callable[[Any], Checked]) -> Callable[[Any], Checked]:
        """The check of a reply's content, and of the model that it names."""

        def checked(answer: Any) -> Checked:
            result, name = check(answer), answer.get("model")
            if not isinstance(name, str) or not name or name == self.name:
                return result
            if self.name:
                names = self.mask(f"as {self.name!r} before and now as {name!r}")
                self.changed = ModelChangedError(
                    f"the server answered {names}; scores of two models must not be mixed: see that one model is "
                    f"served under this name, and run again"
                )
                raise self.changed
            self.name = name
            return result

        return checked


def written_text(answer: Any) -> str:
    """What the model wrote, its thinking included where the server takes that apart."""
    choice = _choice(answer)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise WrongAnswerError("it has no message")
    content, thinking = message.get("content"), message.get("reasoning") or message.get("reasoning_content")
    if not isinstance(content, str | None) or (content is None and not thinking):
        raise WrongAnswerError("it has no text")
    text = content or ""
    if thinking:
        # Without an answer the thinking was cut off, unless the server says that the model stopped by itself.
        ended = bool(text.strip()) or (content is not None and choice.get("finish_reason") == "stop")
        text = f"<think>{thinking}</think>{text}" if ended else f"<think>{thinking}"
    if len(text) > _MAX_TEXT:
        raise WrongAnswerError(f"it has {len(text):,} characters, more than the tokens that were asked for can have")
    return text.encode(errors="replace").decode()  # JSON can spell half of a character, which no file can hold


def named_tokens(
    answer: Any, asked: Sequence[int], tail: Sequence[int] | None = None, first: int | None = None
) -> NextTokens:
    """Log-probabilities of exactly the tokens that were asked for.

    They follow a prompt that ends in ``tail``, and the token ``first``, if the model had to write one.
    """
    _check_prompt(answer, tail)
    entries, written = _entries(answer, first)
    values = {token: value for token, value in _numbered(entries) if value > _ABSENT}
    if missing := [token for token in asked if token not in values]:
        raise WrongAnswerError(f"{len(missing)} of {len(asked)} tokens that were asked for are missing")
    if strange := set(values) - set(asked) - {_number(written)}:
        raise WrongAnswerError(f"{len(strange)} tokens were not asked for")
    _check_total(values.values())
    return NextTokens({token: values[token] for token in asked})


def first_tokens(answer: Any, asked: Sequence[int], tail: Sequence[int] | None = None) -> NextTokens:
    """The same for the first of several tokens that the model wrote."""
    choice = _choice(answer)
    listed = (choice.get("logprobs") or {}).get("content")
    start = {"content": listed[:1]} if isinstance(listed, list) else None
    return named_tokens(answer | {"choices": [choice | {"logprobs": start}]}, asked, tail)


def top_tokens(
    answer: Any, least: int, *, numbered: bool, tail: Sequence[int] | None = None, first: int | None = None
) -> NextTokens:
    """The most probable tokens; a list shorter than usual would hide some in the middle."""
    _check_prompt(answer, tail)
    entries, _ = _entries(answer, first)
    if len(entries) < least:
        raise WrongAnswerError(f"it lists {len(entries)} tokens instead of {least}")
    pairs: list[tuple[Token, float]] = list(_numbered(entries)) if numbered else _texts(entries)
    if not pairs or min(value for _, value in pairs) <= _ABSENT:
        raise WrongAnswerError("a listed token has no probability")
    _check_total([value for _, value in pairs])
    if numbered:
        _check_written(answer, dict(pairs))
    visible: dict[Token, float] = {}
    for token, value in pairs:  # pieces of characters may share a replacement text
        visible[token] = max(value, visible.get(token, value))
    return NextTokens(visible, floor=min(value for _, value in pairs))


def number_of_top_tokens(answer: Any) -> int:
    """How many tokens a server shows."""
    top_tokens(answer, 1, numbered=False)
    return len(_entries(answer)[0])


def token_list(answer: Any) -> list[int]:
    """Tokens of a text."""
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    if not _are_tokens(tokens) or answer.get("count", len(tokens)) != len(tokens):
        raise WrongAnswerError("it is no list of tokens")
    return tokens


@dataclass(frozen=True, slots=True)
class WrittenTokens:
    """Tokens that a model wrote."""

    tokens: list[int]
    text: str
    """As the server tells it: without special tokens."""
    stopped: bool
    """Whether the model ended by itself; otherwise the limit was reached."""
    stop_reason: Any
    """What it ended with, where the server tells."""


def written_tokens(answer: Any) -> WrittenTokens:
    """What the model wrote, and how it ended."""
    return _written(_choice(answer))


def beams(answer: Any, count: int, most: int, tail: Sequence[int] | None = None) -> list[WrittenTokens]:
    """What a server's own beam search found behind a prompt that ends in ``tail``, best first."""
    _check_prompt(answer, tail)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not 1 <= len(choices) <= count:
        raise WrongAnswerError(f"it has not up to {count} choices")
    found = [_written(choice) for choice in choices]
    if any(len(beam.tokens) > most for beam in found):
        raise WrongAnswerError("a beam is longer than what was asked for")
    return found


def prompt_tokens(answer: Any) -> list[int] | None:
    """Tokens of the prompt as the model read them, where the server tells."""
    tokens = answer.get("prompt_token_ids") if isinstance(answer, dict) else None
    return tokens if _are_tokens(tokens) else None


def _check_prompt(answer: Any, tail: Sequence[int] | None) -> None:
    if not tail:
        return
    tokens = prompt_tokens(answer)
    if tokens is None:
        raise WrongAnswerError("it does not repeat the prompt")
    if tokens[-len(tail) :] != list(tail):
        raise WrongPromptError("it belongs to a prompt with another end")


def _are_tokens(tokens: Any) -> TypeGuard[list[int]]:
    return isinstance(tokens, list) and bool(tokens) and all(type(token) is int and token >= 0 for token in tokens)


def _written(choice: Any) -> WrittenTokens:
    if not isinstance(choice, dict) or not isinstance(message := choice.get("message"), dict):
        raise WrongAnswerError("it has no message")
    tokens, text, reason = choice.get("token_ids"), message.get("content"), choice.get("finish_reason")
    if tokens != [] and not _are_tokens(tokens):
        raise WrongAnswerError("it does not tell the tokens that were written")
    if not isinstance(text, str | None) or reason not in {"stop", "length"}:
        raise WrongAnswerError("it does not tell what was written, or how it ended")
    return WrittenTokens(tokens, text or "", reason == "stop", choice.get("stop_reason"))


def _choice(answer: Any) -> dict[str, Any]:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise WrongAnswerError("it has not exactly one choice")
    return choices[0]


def _entries(answer: Any, first: int | None = None) -> tuple[list[dict[str, Any]], Any]:
    """The listed tokens after the prompt and the token ``first``, if there is one, and the one that was written."""
    content = (_choice(answer).get("logprobs") or {}).get("content")
    if not isinstance(content, list) or not content or not all(isinstance(entry, dict) for entry in content):
        raise WrongAnswerError("it has no log-probabilities")
    *before, last = content
    if [_number(entry.get("token")) for entry in before] != ([] if first is None else [first]):
        raise WrongAnswerError("it has log-probabilities of other tokens than the one that was asked for")
    entries = last.get("top_logprobs")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WrongAnswerError("it lists no tokens")
    return entries, last.get("token")


def _numbered(entries: list[dict[str, Any]]) -> list[tuple[int, float]]:
    pairs = [(_number(entry.get("token")), _value(entry)) for entry in entries]
    known = [(token, value) for token, value in pairs if value > _ABSENT]
    if len({token for token, _ in known}) < len(known):
        raise WrongAnswerError("a token is listed twice")
    return pairs


def _texts(entries: list[dict[str, Any]]) -> list[tuple[Token, float]]:
    if not all(isinstance(entry.get("token"), str) for entry in entries):
        raise WrongAnswerError("a token has no text")
    return [(entry["token"], _value(entry)) for entry in entries]


def _number(token: Any) -> int:
    if not isinstance(token, str) or not token.startswith(_PREFIX) or not token[len(_PREFIX) :].isdigit():
        raise WrongAnswerError("a token has no number")
    return int(token[len(_PREFIX) :])


def _value(entry: dict[str, Any]) -> float:
    value = entry.get("logprob")
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise WrongAnswerError("a log-probability is not a finite number")
    return float(value)


def _check_written(answer: Any, listed: dict[Any, float]) -> None:
    """The token that was written is listed with its own value, or it is less probable than all that are listed.

    Numbers that were mixed up in between are found out here: nothing else tells which tokens to expect.
    """
    entry = _choice(answer)["logprobs"]["content"][-1]
    token, value = _number(entry.get("token")), _value(entry)
    if value > listed.get(token, min(listed.values())) + _APART or value < listed.get(token, value) - _APART:
        raise WrongAnswerError("the token that was written is not among those listed, or has another probability there")


def _check_total(values: Any) -> None:
    """Probabilities of different tokens; a server set to give raw logits is found out here."""
    if sum(math.exp(min(value, 1.0)) for value in values) > 1 + _ABOVE_ONE:
        raise WrongAnswerError(
            "the probabilities add up to more than one; vLLM must run with --logprobs-mode raw_logprobs"
        )
