"""Hidden states of a decoder: read after each layer, or steered after one, by hooks that are always removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import torch

from unprior.baselines.activity import GateActivity
from unprior.baselines.decoder import decoder_layers
from unprior.baselines.method import Pass
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
            state = _hidden(output)[:, position].detach().float().cpu()
            states[number:] = [state] * (len(layers) - number)  # layers that a pass leaves out change nothing

        return keep

    with ExitStack() as hooks:
        for number, layer in enumerate(layers):
            hooks.callback(layer.register_forward_hook(keeper(number)).remove)
        yield states


class GateCounter:
    """Counts where a gate on hidden states opened, question by question; it must be told what every pass reads."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.activity: dict[int, GateActivity] = {}
        """By question of the batch."""
        self._coming: Pass | None = None

    def __call__(self, coming: Pass) -> None:
        """Note what the next pass reads."""
        self._coming = coming

    def add(self, active: Tensor) -> None:
        """Count the gate of a pass, shape (rows, positions); padding does not count. Untold passes are not counted."""
        coming, self._coming = self._coming, None
        if coming is None:
            return
        real = torch.ones_like(active) if coming.real is None else coming.real.to(active.device)
        positions, opened = real.sum(dim=1).tolist(), (active & real).sum(dim=1).tolist()
        for row, count, steered in zip(coming.rows, positions, opened, strict=True):
            before = self.activity.get(row)
            if before is None or coming.from_start:  # a prompt that is read again brings its positions along
                before = GateActivity(0, 0)
            self.activity[row] = GateActivity(before.positions + count, before.active + steered)


@contextmanager
def steered(model: Any, *, layer: int, direction: Any, strength: float, threshold: float) -> Iterator[GateCounter]:
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

    The context gives a counter of the positions that were steered.
    """
    counter = GateCounter()
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
        risky = risk > threshold
        counter.add(risky)
        moved = torch.where(risky[..., None], hidden.float() + strength * along, hidden.float())
        moved = moved.to(hidden.dtype)
        return (moved, *output[1:]) if isinstance(output, tuple) else moved

    hook = layers[layer].register_forward_hook(steer)
    try:
        yield counter
    finally:
        hook.remove()


def _hidden(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output
