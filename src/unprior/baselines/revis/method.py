"""REVIS: steers hidden states back where they drift away from those of images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from unprior.baselines.method import BeforePass, Method
from unprior.baselines.revis.vectors import RevisVectors

if TYPE_CHECKING:
    from unprior.engines.transformers.engine import TransformersEngine

RELEASED_STRENGTH = 2.5
"""α by default in the authors' released code; the paper reports other values for each model."""


@dataclass(frozen=True, slots=True)
class REVIS(Method):
    """h += α·visual at every position of one layer where −cos(h, visual) exceeds a threshold."""

    name: ClassVar[str] = "revis"
    label: ClassVar[str] = "REVIS"
    kind: ClassVar[str] = "edit"

    vectors: RevisVectors
    """What was learned of the model."""

    @classmethod
    def for_trial(cls, engine: TransformersEngine) -> Self:
        """Not learned: shows whether a model can be steered before time is spent on learning."""
        from unprior.baselines.steering import recorded

        with recorded(engine.model) as states:  # layers may pass on several streams, wider than the configuration says
            engine.reader.read(engine.encoder.inputs([engine.encoder.render(False, "?")], [None]))
        return cls(RevisVectors.random(len(states), states[-1].shape[-1]))

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
    def applied(self, engine: TransformersEngine) -> Iterator[BeforePass | None]:
        """Steer the model, and count where; vectors that found no layer leave it alone."""
        with self.vectors.steering(engine.model) as counter:
            yield counter


@dataclass(frozen=True, slots=True)
class ReleasedREVIS(REVIS):
    """REVIS with the strength that its released code has by default."""

    name: ClassVar[str] = "revis-2.5"
    label: ClassVar[str] = "REVIS, α = 2.5"

    @classmethod
    def from_vectors(cls, vectors: RevisVectors) -> Self:
        """The same directions, layer and threshold."""
        return cls(replace(vectors, strength=RELEASED_STRENGTH))
