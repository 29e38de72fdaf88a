"""Fields that clients send to other servers: some may only say what is so here, the others have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unprior.serving.errors import refuse

_NO_THINKING = "decisions are made without thinking, and calibrators were fitted so; leave it out"
_KEYS = ("enable_thinking", "thinking")
_MAX_TOLD, _MAX_NAME = 64, 64

THINKING: dict[str, tuple[str, tuple[Any, ...]]] = {
    "reasoning": (_NO_THINKING, (None,)),
    "reasoning_effort": (_NO_THINKING, (None, "none")),
    "enable_thinking": (_NO_THINKING, (None, False)),
    "thinking": (_NO_THINKING, (None, False, {"type": "disabled"})),
}
"""What a field may say, and why nothing else; for all routes."""

_CANDIDATES = (
    'is not known any more, and other servers ignore it silently; give the candidates as structured_outputs={"choice": '
    '["…", "…"]}, or as a response_format with one enum'
)
_SCORES = "scores come without it, in unprior.answer of the reply; leave it out"
CHAT: dict[str, tuple[str, tuple[Any, ...]]] = THINKING | {
    "stream": ("a decision comes at once; leave it out", (None, False)),
    "n": ("there is one answer; leave it out", (None, 1)),
    "tools": ("decisions call no tools; leave them out", (None, [])),
    "functions": ("decisions call no functions; leave them out", (None, [])),
    "tool_choice": ("decisions call no tools; leave it out", (None, "none", "auto")),
    "guided_choice": (_CANDIDATES, (None,)),
    "logprobs": (_SCORES, (None, False)),
    "top_logprobs": (_SCORES, (None, 0)),
    "prompt_logprobs": (_SCORES, (None,)),
    "logit_bias": ("scores are the model's own; leave it out", (None, {})),
    "modalities": ("answers are texts; leave it out", (None, ["text"])),
    "continue_final_message": ("answers begin anew; leave it out", (None, False)),
}


def check_fields(given: Mapping[str, Any], known: Mapping[str, tuple[str, tuple[Any, ...]]]) -> list[str]:
    """Refuse what asks for something else; names of the fields that have no effect, so that a reply can tell them.

    >>> check_fields({"temperature": 0.7, "stream": False, "seed": None}, CHAT)
    ['temperature']
    """
    for name, (told, allowed) in known.items():
        if name in given and not any(_same(given[name], each) for each in allowed):
            raise refuse(f"{name}: {told}", code="unsupported", param=name)
    settings = given.get("chat_template_kwargs")
    if isinstance(settings, Mapping) and not all(settings.get(key) is None or settings[key] is False for key in _KEYS):
        raise refuse(f"chat_template_kwargs: {_NO_THINKING}", code="unsupported", param="chat_template_kwargs")
    without = (name for name, value in given.items() if name not in known and value is not None)
    return [name for name in without if name.isidentifier() and name.isascii() and len(name) <= _MAX_NAME][:_MAX_TOLD]


def publish_fields(known: Mapping[str, tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
    """The same for the published schema."""
    found: dict[str, Any] = {
        name: {"enum": list(allowed), "description": f"{told[0].upper()}{told[1:]}."}
        for name, (told, allowed) in known.items()
    }
    off = {"enum": [None, False]}
    settings = {"properties": dict.fromkeys(_KEYS, off), "description": "Has no effect; thinking stays off."}
    return found | {"chat_template_kwargs": settings}


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, in which true is not 1."""
    return bool(one == other and isinstance(one, bool) == isinstance(other, bool))
