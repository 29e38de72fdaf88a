"""Small random models for a real vLLM, and questions to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.torch import load_file, save_file

import chat_templates
import tiny_models
from unprior.engines.protocol import Query

MODELS = ("qwen3_vl", "llava_next", "idefics3", "gemma3")
NEW_TOKENS = 8
"""Random weights write on and on; a few tokens show as much as many."""
_TOWER, _CLASSIC = "vision_tower.", "vision_tower.vision_model."
_CANDIDATES = ((" yes", " no"), (" A", " B", " C", " D"), (" seventeen zebras", " seventeen", " seven cats", "xyz"))


def build_for_vllm(architecture: str, folder: Path, size: str = "tiny") -> Path:
    """A random model under the names of tensors that vLLM knows; LLaVA-NeXT gets a template that trims, as Gemma's."""
    tiny_models.build(architecture, folder, size=size)
    weights = folder / "model.safetensors"
    tensors = {
        _CLASSIC + name.removeprefix(_TOWER) if name.startswith(_TOWER) else name: tensor
        for name, tensor in load_file(weights).items()
    }
    save_file(tensors, weights, metadata={"format": "pt"})
    if architecture == "llava_next":
        (folder / "chat_template.jinja").write_text(chat_templates.TRIMMING, encoding="utf-8")
    return folder


def queries_for(architecture: str) -> list[Query]:
    """Images of three sizes and none, with short and long candidates; Gemma 3 is asked without images.

    vLLM on CPUs reads its image tokens one after the other, where the model looks both ways.
    """
    generator = np.random.default_rng(0)
    sizes = () if architecture == "gemma3" else ((64, 64), (48, 80), (100, 72))
    images = [Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]
    return [
        Query(image, f"Is the cat of picture {index} {word}?\nAnswer with yes or no.", candidates)
        for index, image in enumerate([*images, None])
        for word, candidates in zip(("blue", "green", "red"), _CANDIDATES, strict=True)
    ]
