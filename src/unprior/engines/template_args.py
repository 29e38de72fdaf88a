"""What a chat template is told beside the conversation: read from texts, without the names that are not free."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unprior.errors import UnpriorError, format_option

RESERVED = frozenset({
    # the conversation, and how the prompt ends
    "messages", "conversation", "tools", "documents", "add_generation_prompt", "continue_final_message",
    # what rendering gives back
    "chat_template", "tokenize", "return_assistant_tokens_mask", "return_dict", "return_tensors", "processor_kwargs",
    "load_audio_from_video",
    # what every template may use
    "raise_exception", "strftime_now",
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
})  # fmt: skip
"""Names that this package, transformers or the tokenizer sets."""


def parse_template_args(given: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Arguments of a chat template from texts; a value is read as JSON if it is such, and else as text.

    >>> parse_template_args(["enable_thinking=false", "date=26 Jul 2024"])
    {'enable_thinking': False, 'date': '26 Jul 2024'}
    """
    if isinstance(given, Mapping):
        parsed = dict(given)
    else:
        pairs = list(map(_parse, given))
        names = [name for name, _ in pairs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UnpriorError(f"template argument {twice[0]!r}: this is given twice; give it once")
        parsed = dict(pairs)
    refuse_reserved(parsed)
    return parsed


def refuse_reserved(names: Iterable[str], reserved: Iterable[str] = RESERVED) -> None:
    """Refuse arguments that would take the place of what a prompt is made of.

    >>> refuse_reserved(["messages"])
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: template argument 'messages': this is set when a prompt is rendered, and cannot be \
given; leave it out
    """
    for name in names:
        if name in set(reserved):
            raise UnpriorError(
                f"template argument {name!r}: this is set when a prompt is rendered, and cannot be given; leave it out"
            )


def _parse(text: str) -> tuple[str, Any]:
    name, separator, value = str(text).partition("=")
    if not separator or not name.strip().isidentifier():
        raise UnpriorError(f"{format_option('template_arg', text)}: write NAME=VALUE, e.g. enable_thinking=false")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value
