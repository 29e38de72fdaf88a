"""Mistral's models with the vision tower of Pixtral: images of one batch are padded to one size."""

from __future__ import annotations

from typing import Any

from transformers import LightOnOcrConfig, LlavaConfig, Mistral3Config, PreTrainedTokenizerFast

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, text_config, vision_config

PATCH = 14


def _tokenizer() -> PreTrainedTokenizerFast:
    broken, ended = "[IMG_BREAK]", "[IMG_END]"
    return tokens.train(
        ["<s>", "</s>", "<pad>", "[INST]", "[/INST]", "[IMG]", broken, ended],
        image="[IMG]",
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        named={"image_break_token": broken, "image_end_token": ended},
    )


def _config(shape: Shape, tokenizer: PreTrainedTokenizerFast, edge: int) -> dict[str, Any]:
    return {
        "text_config": text_config(shape, tokenizer, model_type="mistral", sliding_window=None),
        "vision_config": vision_config(shape, patch=PATCH, edge=edge, model_type="pixtral"),
        "image_token_index": tokenizer.convert_tokens_to_ids("[IMG]"),
        "tie_word_embeddings": False,
    }


def _processor(name: str, edge: int, merge: int) -> dict[str, Any]:
    cell = {"height": PATCH * merge, "width": PATCH * merge}
    pixels = {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": edge}, "patch_size": cell}
    return {"processor_class": name, "image_processor": pixels, "patch_size": PATCH, "spatial_merge_size": merge}


def pixtral(shape: Shape) -> Checkpoint:
    """Pixtral: LLaVA's model with another vision tower and another processor."""
    tokenizer = _tokenizer()
    edge = shape.grid * PATCH
    vision = {"vision_feature_layer": -1, "vision_feature_select_strategy": "full"}
    config = LlavaConfig(**_config(shape, tokenizer, edge), **vision, image_seq_length=1)
    return Checkpoint(config, tokenizer, _processor("PixtralProcessor", edge, 1), templates.MISTRAL)


def mistral3(shape: Shape) -> Checkpoint:
    """Mistral Small 3.1 and its successors."""
    return _mistral3(shape, "PixtralProcessor")


def mistral3_without_torchvision(shape: Shape) -> Checkpoint:
    """PixtralProcessor wants torchvision; this one treats images in the same way, but does not mark their lines."""
    return _mistral3(shape, "LightOnOcrProcessor")


def _mistral3(shape: Shape, processor: str) -> Checkpoint:
    tokenizer, merge = _tokenizer(), 2
    edge = shape.grid * PATCH * merge
    config = Mistral3Config(**_config(shape, tokenizer, edge), spatial_merge_size=merge)
    return Checkpoint(config, tokenizer, _processor(processor, edge, merge), templates.MISTRAL)


def lighton_ocr(shape: Shape) -> Checkpoint:
    """LightOnOCR: Pixtral's vision tower with Qwen's decoder."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|vision_pad|>", "<|vision_end|>"]
    named = {"image_break_token": "<|vision_pad|>", "image_end_token": "<|vision_end|>"}
    tokenizer = tokens.train(special, image="<|image_pad|>", eos="<|im_end|>", pad="<|endoftext|>", named=named)
    merge = 2
    edge = shape.grid * PATCH * merge
    config = LightOnOcrConfig(
        text_config=text_config(shape, tokenizer, model_type="qwen3"),
        vision_config=vision_config(shape, patch=PATCH, edge=edge, model_type="pixtral"),
        image_token_id=tokenizer.image_token_id,
        spatial_merge_size=merge,
        tie_word_embeddings=False,
    )
    return Checkpoint(
        config, tokenizer, _processor("LightOnOcrProcessor", edge, merge), templates.chatml("'<|image_pad|>'")
    )
