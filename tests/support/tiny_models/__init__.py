"""Small random vision-language models, built offline from a config, with tokenizer, processor and chat template.

`build(architecture, folder)` writes a checkpoint that `AutoModelForImageTextToText.from_pretrained(folder)` and
`AutoProcessor.from_pretrained(folder)` load like any other. Building needs no network and no package beside
transformers; some processors need more, see `Architecture.needs`.
"""

from __future__ import annotations

from pathlib import Path

import tiny_models._torchvision  # noqa: F401  # isort: skip  # before transformers is imported
from tiny_models.checkpoint import SHAPES, Shape
from tiny_models.registry import REGISTRY, Architecture

__all__ = ["ARCHITECTURES", "OTHER_PIXELS", "REGISTRY", "SHAPES", "Architecture", "Shape", "build"]

ARCHITECTURES = ("llava", "llava_next", "qwen3_vl", "qwen3_vl_moe", "idefics3")
OTHER_PIXELS = ("mistral3_without_torchvision", "aya_vision")
"""Images of one batch are padded to one size, and tiles of all images stand in one list."""


def build(architecture: str, folder: Path, *, seed: int = 0, size: str = "tiny") -> Path:
    """Write a random model of the architecture, with its processor, to the folder; a seed always gives the same one."""
    if architecture not in REGISTRY:
        raise ValueError(f"unknown architecture {architecture!r}; one of {', '.join(REGISTRY)}")
    REGISTRY[architecture].make(SHAPES[size]).save(folder, seed)
    return folder
