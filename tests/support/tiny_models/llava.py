"""LLaVA and its descendants: a vision tower, a projection, and a text decoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transformers import (
    Granite4VisionConfig,
    LlavaConfig,
    LlavaNextConfig,
    LlavaNextVideoConfig,
    LlavaOnevisionConfig,
    PreTrainedTokenizerFast,
    VipLlavaConfig,
)

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config

PATCH = 14


def _tokenizer() -> PreTrainedTokenizerFast:
    return tokens.train(["<s>", "</s>", "<pad>", "<image>"], image="<image>", bos="<s>", eos="</s>", pad="<pad>")


def _config(shape: Shape, tokenizer: PreTrainedTokenizerFast, **decoder: Any) -> dict[str, Any]:
    return {
        "text_config": text_config(shape, tokenizer, **{"model_type": "llama", **decoder}),
        "vision_config": vision_config(
            shape,
            patch=PATCH,
            edge=shape.grid * PATCH,
            model_type="clip_vision_model",
            projection_dim=shape.vision_hidden,
        ),
        "image_token_index": tokenizer.convert_tokens_to_ids("<image>"),
        "image_seq_length": shape.grid**2,
        "tie_word_embeddings": False,
    }


def _processor(name: str, image_processor: dict[str, Any]) -> dict[str, Any]:
    """CLIP's class token is counted here and taken off again by the feature selection "default"."""
    return {
        "processor_class": name,
        "image_processor": image_processor,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
        "image_token": "<image>",
    }


def _clip_pixels(shape: Shape, **others: Any) -> dict[str, Any]:
    edge = shape.grid * PATCH
    return {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": edge},
        "crop_size": square(edge),
        **others,
    }


def _pinpoints(shape: Shape) -> list[list[int]]:
    edge = shape.grid * PATCH
    return [[edge, 2 * edge], [2 * edge, edge], [2 * edge, 2 * edge], [edge, 3 * edge], [3 * edge, edge]]


def llava(shape: Shape, **decoder: Any) -> Checkpoint:
    """LLaVA 1.5: every image is one square. The decoder can be another one than Llama's."""
    tokenizer = _tokenizer()
    config = LlavaConfig(**_config(shape, tokenizer, **decoder))
    return Checkpoint(config, tokenizer, _processor("LlavaProcessor", _clip_pixels(shape)), templates.VICUNA)


def vip_llava(shape: Shape) -> Checkpoint:
    """Like LLaVA, with features of several layers of the vision tower."""
    tokenizer = _tokenizer()
    config = VipLlavaConfig(**_config(shape, tokenizer), vision_feature_layers=[-1, -2])
    return Checkpoint(config, tokenizer, _processor("LlavaProcessor", _clip_pixels(shape)), templates.VICUNA)


def llava_next(shape: Shape) -> Checkpoint:
    """LLaVA 1.6: an image is cut into tiles, as many as its shape asks for."""
    tokenizer = _tokenizer()
    config = LlavaNextConfig(**_config(shape, tokenizer), image_grid_pinpoints=_pinpoints(shape))
    pixels = _clip_pixels(shape, image_processor_type="LlavaNextImageProcessor", image_grid_pinpoints=_pinpoints(shape))
    return Checkpoint(config, tokenizer, _processor("LlavaNextProcessor", pixels), templates.VICUNA)


def llava_onevision(shape: Shape) -> Checkpoint:
    """Tiles as in LLaVA 1.6, SigLIP and Qwen2."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>"]
    tokenizer = tokens.train(special, image="<image>", eos="<|im_end|>", pad="<|endoftext|>")
    edge = shape.grid * PATCH
    pinpoints = [[edge, edge], *_pinpoints(shape)]
    config = LlavaOnevisionConfig(
        text_config=text_config(shape, tokenizer, model_type="qwen2"),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, model_type="siglip_vision_model", vision_use_head=False
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=pinpoints,
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "LlavaOnevisionProcessor",
        "image_processor": {
            "image_processor_type": "LlavaOnevisionImageProcessor",
            "size": square(edge),
            "image_grid_pinpoints": pinpoints,
        },
        "video_processor": {"video_processor_type": "LlavaOnevisionVideoProcessor", "size": square(edge)},
        "num_image_tokens": shape.grid**2,
        "vision_feature_select_strategy": "full",
        "image_token": "<image>",
        "video_token": "<video>",
        "vision_aspect_ratio": "anyres_max_9",
    }
    return Checkpoint(config, tokenizer, processor, templates.chatml("'<image>\n'"))


def llava_next_video(shape: Shape) -> Checkpoint:
    """LLaVA 1.6 for videos; images are read as in LLaVA 1.6."""
    special = ["<s>", "</s>", "<pad>", "<image>", "<video>"]
    tokenizer = tokens.train(special, image="<image>", bos="<s>", eos="</s>", pad="<pad>")
    config = LlavaNextVideoConfig(
        **_config(shape, tokenizer),
        image_grid_pinpoints=_pinpoints(shape),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
    )
    pixels = _clip_pixels(shape, image_processor_type="LlavaNextImageProcessor", image_grid_pinpoints=_pinpoints(shape))
    processor = _processor("LlavaNextVideoProcessor", pixels) | {
        "video_processor": {"video_processor_type": "LlavaNextVideoVideoProcessor", "size": pixels["size"]},
        "video_token": "<video>",
    }
    return Checkpoint(config, tokenizer, processor, templates.VICUNA)


def granite4_vision(shape: Shape) -> Checkpoint:
    """Granite 4 Vision: features of several layers, made fewer by queries, enter the decoder at several layers."""
    tokenizer = _tokenizer()
    wide = replace(shape, vision_hidden=64, vision_heads=2)  # the queries take heads of 64
    config = Granite4VisionConfig(
        **_config(wide, tokenizer)
        | {"text_config": text_config(shape, tokenizer, model_type="granite4_vision_text", attention_multiplier=0.2)},
        image_grid_pinpoints=_pinpoints(shape),
        downsample_rate="1/2",
        deepstack_layer_map=[[-1, 0]],
        spatial_target_layers=[1],
        qformer_config={"model_type": "blip_2_qformer", "num_hidden_layers": 1, "intermediate_size": 128},
    )
    pixels = _clip_pixels(shape, image_processor_type="LlavaNextImageProcessor", image_grid_pinpoints=_pinpoints(shape))
    processor = _processor("Granite4VisionProcessor", pixels) | {"downsample_rate": "1/2"}
    return Checkpoint(config, tokenizer, processor, templates.VICUNA)
