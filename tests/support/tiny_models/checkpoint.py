"""What every random model is made of: its sizes, its parts, its weights, and how they are written to a folder."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForImageTextToText,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
)


@dataclass(frozen=True)
class Shape:
    """Sizes of the text decoder and of the vision encoder."""

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    vision_hidden: int
    vision_layers: int
    vision_heads: int
    grid: int  # patches along the edge of a square tile; for Qwen, image tokens along the edge of the largest image
    window: int  # tokens that a sliding window holds
    least: float = 0.5  # for Qwen, the area of the smallest image as a part of the largest


SHAPES = {
    # head_dim 32 is the smallest that vLLM's CPU attention takes.
    "tiny": Shape(64, 2, 4, 2, 32, 128, 32, 2, 2, 4, 64),
    "deep": Shape(64, 4, 4, 2, 32, 128, 32, 2, 2, 4, 64),
    "bench": Shape(512, 8, 8, 8, 64, 2048, 384, 6, 6, 26, 512, 1.0),
}


@dataclass(frozen=True)
class Checkpoint:
    """The parts of a model as they are published: what stands in ``config.json``, and what the processor is.

    ``processor`` is the content of ``processor_config.json``. It is written as it is, so that building a model needs
    no package that only its processor needs.
    """

    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerFast
    processor: dict[str, Any]
    chat_template: str | None
    gains: dict[str, float] = field(default_factory=dict)
    """Weights, by a part of their name, that need another scale than `initialise` gives."""
    other_tokenizers: dict[str, PreTrainedTokenizerFast] = field(default_factory=dict)
    """Tokenizers of parts of the model, by the folder they are in."""

    def model(self) -> torch.nn.Module:
        """The model with the library's weights."""
        with torch.random.fork_rng():  # the library's own initialisation must not move the caller's random state
            return AutoModelForImageTextToText.from_config(self.config, dtype=torch.float32)

    def save(self, folder: Path, seed: int) -> None:
        """Write a model with random weights, and all that belongs to it."""
        model: Any = self.model()
        initialise(model, seed, self.gains)
        tokenizer = self.tokenizer
        model.generation_config = GenerationConfig(
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            decoder_start_token_id=tokenizer.bos_token_id if self.config.is_encoder_decoder else None,
            do_sample=False,
        )
        model.save_pretrained(folder)
        self.save_processor(folder)

    def save_processor(self, folder: Path) -> None:
        """Write everything but the model."""
        for name, tokenizer in {"": self.tokenizer, **self.other_tokenizers}.items():
            tokenizer.save_pretrained(folder / name)
        (folder / "processor_config.json").write_text(json.dumps(self.processor, indent=2) + "\n", encoding="utf-8")
        if self.chat_template is not None:
            (folder / "chat_template.jinja").write_text(self.chat_template, encoding="utf-8")


def initialise(model: torch.nn.Module, seed: int, gains: dict[str, float]) -> None:
    """Draw every weight anew, at scales that keep activations of order one whatever the width.

    The usual 0.02 makes a small model's outputs almost uniform and blind to the image, which would hide errors from a
    test that compares scores.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            scale = math.prod(gain for part, gain in gains.items() if part in name)
            if name.endswith("bias"):
                parameter.copy_(0.1 * scale * noise)
            elif "norm" in name.lower() and parameter.ndim == 1:
                parameter.copy_(scale * (1 + 0.1 * noise))
            elif "embed_tokens" in name or "position_embedding" in name or "pos_embed" in name or parameter.ndim <= 1:
                parameter.copy_(scale * noise)
            else:
                # Experts are stacked (expert, out, in); convolutions are (out, in, …).
                fan_in = parameter.shape[-1] if parameter.ndim <= 3 else math.prod(parameter.shape[1:])
                gain = 2.0 if "lm_head" in name or "q_proj" in name else 1.2
                parameter.copy_(scale * gain / math.sqrt(fan_in) * noise)


def text_config(shape: Shape, tokenizer: PreTrainedTokenizerFast, **others: Any) -> dict[str, Any]:
    """Sizes of a text decoder under their usual names."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": 4096,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
        **others,
    }


def whole_heads(text: dict[str, Any]) -> dict[str, Any]:
    """For decoders that cut their width into heads and have no head size of their own: fewer heads."""
    heads = text["hidden_size"] // text["head_dim"]
    others = {name: value for name, value in text.items() if name != "head_dim"}
    return others | {"num_attention_heads": heads, "num_key_value_heads": heads // 2 or 1}


def vision_config(shape: Shape, *, patch: int, edge: int, **others: Any) -> dict[str, Any]:
    """Sizes of a vision encoder for square images under their usual names."""
    return {
        "hidden_size": shape.vision_hidden,
        "intermediate_size": 4 * shape.vision_hidden,
        "num_hidden_layers": shape.vision_layers,
        "num_attention_heads": shape.vision_heads,
        "image_size": edge,
        "patch_size": patch,
        **others,
    }


def square(edge: int) -> dict[str, int]:
    """A size as image processors write it."""
    return {"height": edge, "width": edge}
