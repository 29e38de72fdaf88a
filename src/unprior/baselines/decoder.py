"""Where the text decoder of a vision-language model is."""

from __future__ import annotations

from typing import Any

from unprior.errors import UnpriorError

_KNOWN = "models such as LLaVA, LLaVA-NeXT, Qwen3-VL and Idefics3 have it"


def find_decoder(model: Any) -> Any:
    """The text decoder: what ``get_decoder()`` gives, with its ``layers``."""
    name = type(model).__name__
    if not callable(getattr(model, "get_decoder", None)):
        raise UnpriorError(f"{name} cannot be edited: it has no get_decoder() ({_KNOWN})")
    decoder = model.get_decoder()
    try:
        count = len(decoder.layers)
    except (AttributeError, TypeError):
        count = 0
    if not count:
        raise UnpriorError(f"{name} cannot be edited: its decoder {type(decoder).__name__} has no layers ({_KNOWN})")
    return decoder


def decoder_layers(model: Any) -> list[Any]:
    """The layers of the text decoder, first to last."""
    return list(find_decoder(model).layers)
