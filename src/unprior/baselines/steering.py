"""Hidden states of a decoder: read after each layer, or steered after one, by hooks that always go away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import torch

from unprior.baselines.decoder import decoder_layers
from unprior.errors import UnpriorError

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against


@contextmanager
def recorded(model: Any, position: int = -1) -> Iterator[list[Tensor]]:
    """Record the hidden state after each decoder layer at one position, in float32.

    The context gives a list with one tensor (rows, size) per layer, of the latest pass. They are what the layers give,
    before any final normalisation: the place where :func:`steered` acts.
    """
    layers = decoder_layers(model)
    states: list[Tensor] = [None] * len(layers)

    def keeper(number: int) -> Any:
        def keep(_module: Any, _inputs: Any, output: Any) -> None:
            states[number] = _hidden(output)[:, position].detach().float().cpu()

        return keep

    with ExitStack() as hooks:
        for number, layer in enumerate(layers):
            hooks.callback(layer.register_forward_hook(keeper(number)).remove)
        yield states


@contextmanager
def steered(model: Any, *, layer: int, direction: Any, strength: float, threshold: float) -> Iterator[None]:
    """Steer hidden states after one decoder layer; everything is undone at the end.

    At every position where the risk −cos(h, direction) exceeds the threshold, h becomes h + strength·direction.

    Parameters
    ----------
    model
        A transformers model with ``get_decoder().layers``.
    layer
        Decoder layer, counted from 0.
    direction
        Array or tensor (size).
    """
    layers = decoder_layers(model)
    if not 0 <= layer < len(layers):
        raise UnpriorError(f"layer {layer} cannot be steered: the decoder has layers 0 to {len(layers) - 1}")
    vector = torch.as_tensor(direction).float()

    def steer(_module: Any, _inputs: Any, output: Any) -> Any:
        hidden = _hidden(output)
        if hidden.shape[-1] != len(vector):
            raise UnpriorError(
                f"the direction has {len(vector)} numbers, hidden states have {hidden.shape[-1]}: it belongs to "
                f"another model"
            )
        along = vector.to(hidden.device)
        risk = -torch.cosine_similarity(hidden.float(), along, dim=-1)
        moved = torch.where((risk > threshold)[..., None], hidden.float() + strength * along, hidden.float())
        moved = moved.to(hidden.dtype)
        return (moved, *output[1:]) if isinstance(output, tuple) else moved

    hook = layers[layer].register_forward_hook(steer)
    try:
        yield
    finally:
        hook.remove()


def _hidden(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output
