"""Progress lines and checkpoints, so that a stopped training goes on where it was."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from optimizer import Optimizer


class Checkpoints:
    """One file per stage; it holds the step, the weights and the optimiser's state."""

    def __init__(self, folder: Path, every: int = 200) -> None:
        """Keep the files in a folder."""
        self.folder, self.every = folder, every
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, stage: str, module: torch.nn.Module, optimizer: Optimizer | None = None) -> int:
        """Put a stage's weights into the module; returns the step to go on from."""
        path = self.folder / f"{stage}.pt"
        if not path.exists():
            return 0
        saved: dict[str, Any] = torch.load(path, weights_only=True)
        module.load_state_dict(saved["weights"])
        if optimizer is not None and saved["optimizer"] is not None:
            optimizer.load(saved["optimizer"])
        return int(saved["step"])

    def save(
        self, stage: str, step: int, steps: int, module: torch.nn.Module, optimizer: Optimizer | None = None
    ) -> None:
        """Save now and then, and at the end, where the optimiser is no longer needed."""
        if step % self.every and step != steps:
            return
        temporary = self.folder / f"{stage}.tmp"
        state = None if step == steps or optimizer is None else optimizer.state()
        torch.save({"step": step, "weights": module.state_dict(), "optimizer": state}, temporary)
        temporary.replace(self.folder / f"{stage}.pt")


class Reporter:
    """A line every few seconds: stage, step, loss, rate and time left in the stage."""

    def __init__(self, name: str, seconds: float = 20.0) -> None:
        """Lines start with the name, because two trainings may run side by side."""
        self.name, self.seconds = name, seconds
        self._stage, self._start, self._first, self._said, self._losses = "", 0.0, 0, 0.0, [0.0]
        self.seconds_by_stage: dict[str, float] = {}
        """Time spent in each stage so far, in this run."""

    def __call__(self, stage: str, step: int, steps: int, loss: float) -> None:
        """Take note of a step and perhaps say so."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._start, self._first, self._said, self._losses = stage, now, step, now, []
        self._losses.append(loss)
        self.seconds_by_stage[stage] = now - self._start
        if now - self._said >= self.seconds or step == steps:
            mean = sum(self._losses[-100:]) / len(self._losses[-100:])
            rate = (step - self._first + 1) / max(now - self._start, 1e-9)
            left = (steps - step) / max(rate, 1e-9)
            print(
                f"{self.name} {stage} {step}/{steps} loss {mean:.3f} {rate:.1f} steps/s {left:.0f} s left", flush=True
            )
            self._said = now
