"""Requests and replies as they are counted: bytes, and tokens as the server tells them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeGuard

_COUNTED = ("prompt_tokens", "completion_tokens", "prompt_tokens_details")
_recorded: ContextVar[list[Exchange] | None] = ContextVar("recorded", default=None)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply.

    >>> Exchange.from_bodies(b'{"prompt": "Blue?"}', b'{"tokens": [7, 9]}', {"tokens": [7, 9]})
    Exchange(sent_bytes=19, received_bytes=18, with_image=False, prompt_tokens=0, generated_tokens=0, cached_tokens=0)
    """

    sent_bytes: int
    """Without the lines that HTTP adds, as those received."""
    received_bytes: int
    with_image: bool
    prompt_tokens: int | None
    """0 where the model is not asked, None where the server does not tell."""
    generated_tokens: int
    cached_tokens: int = 0
    """Tokens of the prompt that the server had read before, where it tells."""

    @classmethod
    def from_bodies(cls, request: bytes, reply: bytes, told: Any) -> Exchange:
        """From what was sent and what was received; ``told`` is what the reply says, None if it is no JSON."""
        prompt: int | None = 0
        generated = cached = 0
        if isinstance(told, dict) and "choices" in told:
            usage = told.get("usage")
            prompt, generated, cached = _counts(usage if isinstance(usage, dict) else {})
            if b'"use_beam_search"' in request:  # all beams take all steps, and only the answers are told
                asked = json.loads(request)
                generated = asked["n"] * asked["max_tokens"]
        return cls(len(request), len(reply), b'"image_url"' in request, prompt, generated, cached)


@contextmanager
def recording() -> Iterator[list[Exchange]]:
    """Record what is sent and received from here on, by whatever is begun here; faults that pass are left out."""
    found: list[Exchange] = []
    token = _recorded.set(found)
    try:
        yield found
    finally:
        _recorded.reset(token)


def record(request: bytes, reply: bytes, told: Any) -> None:
    """Add an exchange to what is being recorded, if anything is."""
    found = _recorded.get()
    if found is not None:
        found.append(Exchange.from_bodies(request, reply, told))


def _counts(usage: dict[str, Any]) -> tuple[int | None, int, int]:
    read, written, details = (usage.get(name) for name in _COUNTED)
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    if not _is_count(read) or not _is_count(written):
        return None, 0, 0
    return read, written, cached if _is_count(cached) else 0


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 0
