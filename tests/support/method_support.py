"""Which methods a model can run: what stands in the support matrix, and what the tests expect of it."""

from __future__ import annotations

import tiny_models
from unprior.baselines.method import Method
from unprior.baselines.names import DECODED
from unprior.baselines.revis.method import REVIS, ReleasedREVIS
from unprior.baselines.suite import try_methods
from unprior.engines.transformers.engine import TransformersEngine

ENCODER_DECODERS = ("florence2", "t5gemma2")
SCORED = tuple(
    name
    for name, architecture in tiny_models.REGISTRY.items()
    if architecture.reads_text_alone and name not in ENCODER_DECODERS
)
"""Architectures that the engine does not refuse."""


def method_support(engine: TransformersEngine) -> dict[str, str | None]:
    """For every method None if it runs on the model, otherwise the reason why it is left out."""

    def revis(name: str) -> Method:
        kind = ReleasedREVIS if name == ReleasedREVIS.name else REVIS
        return kind.for_trial(engine)

    found = try_methods(engine, tuple(DECODED), revis)
    return {name: found.left_out.get(name) for name in DECODED}
