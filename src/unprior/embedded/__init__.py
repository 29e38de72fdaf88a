"""The model that comes with the package: small, trained on the microworld, with a strong prior; and its calibrator.

They are only for trying the method; ``README.md`` beside each is its card.
"""

from __future__ import annotations

from pathlib import Path

NAME = "embedded"
FOLDER = Path(__file__).parent / "model"
"""An ordinary LLaVA checkpoint: configuration, weights, tokenizer, processor, chat template."""
CALIBRATOR = Path(__file__).parent / "calibrator" / "calibrator.json"
"""A calibrator of this model, fitted on a world that is neither for training nor for reporting."""


def model_folder(model: str) -> str:
    """Where a model lies: the name ``embedded`` stands for the one that comes with the package.

    >>> Path(model_folder("embedded")).name, model_folder("some/model")
    ('model', 'some/model')
    """
    return str(FOLDER) if model == NAME else model
