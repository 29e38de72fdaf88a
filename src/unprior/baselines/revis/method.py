"""REVIS: where hidden states drift away from what images look like inside the model, push them back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from unprior.baselines.method import Method
from unprior.baselines.revis.vectors import RevisVectors

if TYPE_CHECKING:
    from unprior.engines.transformers import TransformersEngine


@dataclass(frozen=True, slots=True)
class REVIS(Method):
    """h += α·visual at every position of one layer where −cos(h, visual) exceeds a threshold."""

    name: ClassVar[str] = "revis"
    label: ClassVar[str] = "REVIS"
    kind: ClassVar[str] = "edit"

    vectors: RevisVectors
    """What was learned of the model."""

    def settings(self) -> dict[str, Any]:
        """Layer, threshold and strength, and what tells one direction from another."""
        choice = self.vectors.choice
        return {
            "strength": self.vectors.strength,
            "layer": choice.layer,
            "threshold": choice.threshold,
            "visual": hashlib.sha256(self.vectors.visual.tobytes()).hexdigest()[:12],
        }

    def matched(self) -> Self:
        """Nothing is added: α = 0."""
        return replace(self, vectors=replace(self.vectors, strength=0.0))

    @contextmanager
    def applied(self, engine: TransformersEngine) -> Iterator[None]:
        """Steer the model; vectors that found no layer leave it alone."""
        with self.vectors.steering(engine.model):
            yield None
