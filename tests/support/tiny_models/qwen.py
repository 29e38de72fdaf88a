"""Qwen's vision-language models: images of any shape, and positions in three dimensions."""

from __future__ import annotations

from typing import Any

from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2VLConfig,
    Qwen3_5Config,
    Qwen3_5MoeConfig,
    Qwen3VLConfig,
    Qwen3VLMoeConfig,
)

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, text_config, whole_heads

VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
IMAGE = "'<|vision_start|><|image_pad|><|vision_end|>'"
MERGE = 2
# Qwen3.5 thinks unless it is told not to: the block is then opened and closed at once.
THINKING_ANSWER = "'<|im_start|>assistant\n<think>\n' + ('\n</think>\n\n' if enable_thinking is false else '')"


def _tokenizer(*others: str) -> PreTrainedTokenizerFast:
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *VISION_TOKENS, *others]
    return tokens.train(special, image="<|image_pad|>", eos="<|im_end|>", pad="<|endoftext|>")


def _ids(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    return dict(zip(names, tokenizer.convert_tokens_to_ids(list(VISION_TOKENS)), strict=True))


def _rope(frequencies: int, *, interleaved: bool) -> dict[str, Any]:
    """A head's frequencies, shared by time, height and width."""
    third = frequencies // 3
    return {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [frequencies - 2 * third, third, third],
        **({"mrope_interleaved": True} if interleaved else {}),
    }


def _vision(shape: Shape, patch: int, **others: Any) -> dict[str, Any]:
    return {
        "depth": shape.vision_layers,
        "hidden_size": shape.vision_hidden,
        "intermediate_size": 4 * shape.vision_hidden,
        "num_heads": shape.vision_heads,
        "patch_size": patch,
        "spatial_merge_size": MERGE,
        "out_hidden_size": shape.hidden,
        **others,
    }


def _processor(name: str, video: str, shape: Shape, patch: int, **others: Any) -> dict[str, Any]:
    largest = (shape.grid * MERGE * patch) ** 2
    pixels = {"patch_size": patch, "merge_size": MERGE, "temporal_patch_size": 2, **others}
    size = {"shortest_edge": int(shape.least * largest), "longest_edge": largest}
    return {
        "processor_class": name,
        "image_processor": {"image_processor_type": "Qwen2VLImageProcessor", "size": size, **pixels},
        "video_processor": {"video_processor_type": video, "size": size, **pixels},
    }


def qwen2_vl(shape: Shape) -> Checkpoint:
    """Qwen2-VL."""
    tokenizer, patch = _tokenizer(), 14
    config = Qwen2VLConfig(
        text_config=_qwen2_text(shape, tokenizer),
        vision_config={
            "depth": shape.vision_layers,
            "embed_dim": shape.vision_hidden,
            "hidden_size": shape.hidden,
            "num_heads": shape.vision_heads,
            "patch_size": patch,
            "spatial_merge_size": MERGE,
        },
        **_ids(tokenizer),
    )
    processor = _processor("Qwen2VLProcessor", "Qwen2VLVideoProcessor", shape, patch)
    return Checkpoint(config, tokenizer, processor, templates.chatml(IMAGE))


def qwen2_5_vl(shape: Shape) -> Checkpoint:
    """Qwen2.5-VL: most layers of the vision tower look at windows."""
    tokenizer, patch = _tokenizer(), 14
    config = Qwen2_5_VLConfig(
        text_config=_qwen2_text(shape, tokenizer),
        vision_config=_vision(
            shape, patch, window_size=2 * MERGE * patch, fullatt_block_indexes=[shape.vision_layers - 1]
        ),
        **_ids(tokenizer),
    )
    processor = _processor("Qwen2_5_VLProcessor", "Qwen2VLVideoProcessor", shape, patch)
    return Checkpoint(config, tokenizer, processor, templates.chatml(IMAGE))


def _qwen2_text(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    rope = _rope(shape.head_dim // 2, interleaved=False)
    return whole_heads(text_config(shape, tokenizer, rope_parameters=rope))


def qwen3_vl(shape: Shape) -> Checkpoint:
    """Qwen3-VL: features of several layers of the vision tower enter the decoder at several layers."""
    return _qwen3_vl(Qwen3VLConfig, shape)


def qwen3_vl_moe(shape: Shape) -> Checkpoint:
    """Qwen3-VL with experts."""
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": shape.intermediate // 2}
    return _qwen3_vl(Qwen3VLMoeConfig, shape, **experts)


def _qwen3_vl(config_class: Any, shape: Shape, **text: Any) -> Checkpoint:
    tokenizer, patch = _tokenizer(), 16
    rope = _rope(shape.head_dim // 2, interleaved=True)
    config = config_class(
        text_config=text_config(shape, tokenizer, rope_parameters=rope, **text),
        vision_config=_vision(
            shape, patch, num_position_embeddings=(shape.grid * MERGE) ** 2, deepstack_visual_indexes=[0]
        ),
        tie_word_embeddings=False,
        **_ids(tokenizer),
    )
    return Checkpoint(config, tokenizer, _qwen3_processor(shape, patch), templates.chatml(IMAGE))


def _qwen3_processor(shape: Shape, patch: int) -> dict[str, Any]:
    halves = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return _processor("Qwen3VLProcessor", "Qwen3VLVideoProcessor", shape, patch, **halves)


def qwen3_5(shape: Shape) -> Checkpoint:
    """Qwen3.5: most layers of the decoder are recurrent, and answers begin with thinking."""
    return _qwen3_5(Qwen3_5Config, shape)


def qwen3_5_moe(shape: Shape) -> Checkpoint:
    """Qwen3.5 with experts."""
    width = shape.intermediate // 2
    experts = {"num_experts": 4, "num_experts_per_tok": 2}
    return _qwen3_5(
        Qwen3_5MoeConfig, shape, moe_intermediate_size=width, shared_expert_intermediate_size=width, **experts
    )


def recurrent_text(shape: Shape, tokenizer: PreTrainedTokenizerFast, **others: Any) -> dict[str, Any]:
    """Sizes of Qwen3.5's decoder."""
    heads = shape.hidden // shape.head_dim
    return text_config(
        shape,
        tokenizer,
        full_attention_interval=2,
        linear_key_head_dim=shape.head_dim,
        linear_value_head_dim=shape.head_dim,
        linear_num_key_heads=heads,
        linear_num_value_heads=2 * heads,
        **others,
    )


def _qwen3_5(config_class: Any, shape: Shape, **text: Any) -> Checkpoint:
    tokenizer, patch = _tokenizer("<think>", "</think>"), 16
    rope = _rope(shape.head_dim // 4, interleaved=True) | {"partial_rotary_factor": 0.5}
    config = config_class(
        text_config=recurrent_text(shape, tokenizer, rope_parameters=rope, **text),
        vision_config=_vision(shape, patch, num_position_embeddings=(shape.grid * MERGE) ** 2),
        tie_word_embeddings=False,
        **_ids(tokenizer),
    )
    template = templates.chatml(IMAGE, answer=THINKING_ANSWER)
    return Checkpoint(config, tokenizer, _qwen3_processor(shape, patch), template)
