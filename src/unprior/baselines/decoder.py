"""Where the text decoder of a vision-language model is."""

from __future__ import annotations

from typing import Any

from unprior.errors import UnpriorError


def find_decoder(model: Any) -> Any:
    """The text decoder with its ``layers``: what ``get_decoder()`` gives, or the first part of it that has them.

    Some models give a whole language model, with its head, or a model that holds the vision tower, too.
    """
    name = type(model).__name__
    if not callable(getattr(model, "get_decoder", None)):
        raise UnpriorError(f"{name} cannot be edited: it has no get_decoder()")
    found = model.get_decoder()
    tower = model.get_encoder("image") if callable(getattr(model, "get_encoder", None)) else None
    parts = [found]
    for part in parts:  # the nearest ones first; the list grows
        if _has_layers(part):
            return part
        parts += [child for child in part.children() if child is not tower]
    raise UnpriorError(f"{name} cannot be edited: its decoder {type(found).__name__} has no layers")


def decoder_layers(model: Any) -> list[Any]:
    """The layers of the text decoder, first to last."""
    return list(find_decoder(model).layers)


def _has_layers(part: Any) -> bool:
    try:
        return len(part.layers) > 0
    except (AttributeError, TypeError):
        return False
