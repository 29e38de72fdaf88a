"""GLM-4.1V, 4.5V and 4.6V: images of any shape, as in Qwen's models, and answers that begin with thinking."""

from __future__ import annotations

from typing import Any

from transformers import Glm4vConfig, Glm4vMoeConfig, Glm46VConfig, GlmOcrConfig, PreTrainedTokenizerFast

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, text_config, whole_heads

PATCH, MERGE = 14, 2
MARKS = ("<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>")
IDS = ("image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id")
ANSWER = "'<|assistant|>\n' + ('<think></think>\n' if enable_thinking is false else '<think>')"


def _tokenizer() -> PreTrainedTokenizerFast:
    turns = ["<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>", "/nothink"]
    special = ["<|endoftext|>", "[gMASK]", "<sop>", *turns, "<|image|>", "<|video|>", *MARKS]
    return tokens.train(special, image="<|image|>", eos="<|user|>", pad="<|endoftext|>")


def _config(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "vision_config": {
            "depth": shape.vision_layers,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_heads": shape.vision_heads,
            "image_size": shape.grid * MERGE * PATCH,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "out_hidden_size": shape.hidden,
        },
        "image_token_id": tokenizer.convert_tokens_to_ids("<|image|>"),
        "video_token_id": tokenizer.convert_tokens_to_ids("<|video|>"),
        **dict(zip(IDS, tokenizer.convert_tokens_to_ids(list(MARKS)), strict=True)),
    }


def _text(shape: Shape, tokenizer: PreTrainedTokenizerFast, **others: Any) -> dict[str, Any]:
    quarter = shape.head_dim // 4  # half of a head turns, and half of that is its frequencies
    rope = {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [quarter - 2 * (quarter // 3), quarter // 3, quarter // 3],
    }
    return text_config(shape, tokenizer, rope_parameters=rope, **others)


def _checkpoint(config: Any, tokenizer: PreTrainedTokenizerFast, name: str, shape: Shape, answer: str) -> Checkpoint:
    largest = (shape.grid * MERGE * PATCH) ** 2
    pixels = {
        "size": {"shortest_edge": largest // 2, "longest_edge": largest},
        "patch_size": PATCH,
        "merge_size": MERGE,
    }
    processor = {
        "processor_class": f"{name}Processor",
        "image_processor": {"image_processor_type": f"{name}ImageProcessor", **pixels},
        "video_processor": {"video_processor_type": f"{name}VideoProcessor", **pixels},
    }
    template = templates.chat(
        "'<|' + message['role'] + '|>\n'",
        "''",
        answer,
        image="'<|begin_of_image|><|image|><|end_of_image|>'",
        begin="'[gMASK]<sop>'",
    )
    return Checkpoint(config, tokenizer, processor, template)


def glm4v(shape: Shape) -> Checkpoint:
    """GLM-4.1V."""
    tokenizer = _tokenizer()
    config = Glm4vConfig(text_config=whole_heads(_text(shape, tokenizer)), **_config(shape, tokenizer))
    return _checkpoint(config, tokenizer, "Glm4v", shape, ANSWER)


def glm46v(shape: Shape) -> Checkpoint:
    """GLM-4.6V-Flash: the decoder of GLM-4.1V with a processor of its own."""
    tokenizer = _tokenizer()
    text = whole_heads(_text(shape, tokenizer, model_type="glm4v_text"))
    config = Glm46VConfig(text_config=text, **_config(shape, tokenizer))
    return _checkpoint(config, tokenizer, "Glm46V", shape, ANSWER)


def glm4v_moe(shape: Shape) -> Checkpoint:
    """GLM-4.5V and GLM-4.6V: experts after the first layer."""
    tokenizer = _tokenizer()
    text = _text(
        shape,
        tokenizer,
        moe_intermediate_size=shape.intermediate // 2,
        n_routed_experts=4,
        num_experts_per_tok=2,
        first_k_dense_replace=1,
    )
    config = Glm4vMoeConfig(text_config=text, **_config(shape, tokenizer))
    return _checkpoint(config, tokenizer, "Glm4v", shape, ANSWER)


def glm_ocr(shape: Shape) -> Checkpoint:
    """GLM-OCR: small, and does not think."""
    tokenizer = _tokenizer()
    config = GlmOcrConfig(text_config=whole_heads(_text(shape, tokenizer)), **_config(shape, tokenizer))
    return _checkpoint(config, tokenizer, "Glm46V", shape, "'<|assistant|>\n'")
