"""Muon for the hidden matrices, AdamW for the rest, one cosine schedule by step count."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from recipe import Stage


class Optimizer:
    """Two optimisers that step together."""

    def __init__(self, named: Iterable[tuple[str, torch.nn.Parameter]], stage: Stage) -> None:
        """Sort the parameters: matrices inside transformer layers go to Muon."""
        matrices: list[torch.nn.Parameter] = []
        others: list[torch.nn.Parameter] = []
        for name, parameter in named:
            (matrices if parameter.ndim == 2 and ".layers." in name else others).append(parameter)
        self.stage = stage
        self.parameters = matrices + others
        self._parts: list[tuple[torch.optim.Optimizer, float]] = [
            (torch.optim.Muon(matrices, lr=stage.matrix_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
             stage.matrix_rate),
            (torch.optim.AdamW(others, lr=stage.other_rate, betas=(0.9, 0.98), weight_decay=0.01), stage.other_rate),
        ]  # fmt: skip

    def step(self, step: int) -> None:
        """Move the parameters along their gradients and forget these."""
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for optimizer, rate in self._parts:
            for group in optimizer.param_groups:
                group["lr"] = rate * schedule(step, self.stage)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> list[dict[str, Any]]:
        """What a checkpoint must hold."""
        return [optimizer.state_dict() for optimizer, _ in self._parts]

    def load(self, state: list[dict[str, Any]]) -> None:
        """Go on from a checkpoint."""
        for (optimizer, _), part in zip(self._parts, state, strict=True):
            optimizer.load_state_dict(part)


def schedule(step: int, stage: Stage) -> float:
    """Share of the peak rate: a short rise, then half a cosine.

    >>> schedule(0, Stage(10, 1, 1.0, 1.0, warmup=1)), round(schedule(10, Stage(10, 1, 1.0, 1.0)), 2)
    (1.0, 0.02)
    """
    rise = min(1.0, (step + 1) / stage.warmup) if step < stage.warmup else 1.0
    return rise * (stage.final + (1 - stage.final) * 0.5 * (1 + math.cos(math.pi * step / stage.steps)))
