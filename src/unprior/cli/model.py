"""Options about models that several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import errors, warn

if TYPE_CHECKING:
    from unprior.engines.transformers import TransformersEngine

ModelName = Annotated[
    str, typer.Option("--model", help="embedded (comes with the package), or a folder or hub id of a model.")
]
BatchSize = Annotated[int, typer.Option(help="Questions in one pass; results do not depend on it.", min=1)]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")]
DType = Annotated[str, typer.Option(help="auto (as stored), float32, bfloat16 or float16; never quantised.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, …; by default the first accelerator there is.")]
DeviceMap = Annotated[str | None, typer.Option(help="Spread the model over devices, e.g. auto (needs accelerate).")]
Attention = Annotated[str | None, typer.Option(help="Attention implementation, e.g. sdpa or eager.")]

_SMALL_MODEL = 20_000_000


@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded."""

    model: str
    revision: str | None
    dtype: str
    device: str | None
    device_map: str | None
    attention: str | None

    def load(self) -> TransformersEngine:
        """Load the model, with a word about what is going on."""
        from unprior.embedded import model_folder
        from unprior.engines.transformers import TransformersEngine

        with errors.status(f"Loading {self.model} …"):
            engine = TransformersEngine(
                model_folder(self.model),
                name=self.model,
                revision=self.revision,
                dtype=self.dtype,
                device=self.device,
                device_map=self.device_map,
                attention=self.attention,
            )
        _use_few_threads(engine)
        if not engine.shares_prefix:
            warn(
                f"{self.model}: reusing the read part of a prompt does not give the same scores as reading it whole, "
                f"so every prompt is read whole; results are right but slower"
            )
        return engine


def _use_few_threads(engine: TransformersEngine) -> None:
    """A small model on a CPU gains little from more threads, and loses much when they wait for a busy core."""
    import torch

    if engine.device_type == "cpu" and engine.parameter_count < _SMALL_MODEL and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
