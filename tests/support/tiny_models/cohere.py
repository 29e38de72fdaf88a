"""Cohere's models: an image is cut into tiles, and the tiles of all images stand in one list."""

from __future__ import annotations

from transformers import AyaVisionConfig, Cohere2VisionConfig

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config

PATCH, SHRINK = 14, 2


def aya_vision(shape: Shape) -> Checkpoint:
    """Aya Vision."""
    tiles = ["<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>", "TILE", "TILE_GLOBAL"]
    special = ["<s>", "</s>", "<pad>", "<image>", *tiles]
    tokenizer = tokens.train(special, image="<image>", bos="<s>", eos="</s>", pad="<pad>")
    edge = shape.grid * PATCH
    config = AyaVisionConfig(
        text_config=text_config(shape, tokenizer, model_type="cohere2"),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, model_type="siglip_vision_model", vision_use_head=False
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<|IMG_PATCH|>"),
        downsample_factor=SHRINK,
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "AyaVisionProcessor",
        "image_processor": {
            "image_processor_type": "GotOcr2ImageProcessor",
            "size": square(edge),
            "crop_to_patches": True,
            "min_patches": 1,
            "max_patches": 4,
        },
        "patch_size": PATCH,
        "img_size": edge,
        "downsample_factor": SHRINK,
    }
    return Checkpoint(config, tokenizer, processor, templates.VICUNA)


def cohere2_vision(shape: Shape) -> Checkpoint:
    """Command A Vision: a sliding window in most layers, and tied weights."""
    turns = ["<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"]
    named = {
        "boi_token": "<|START_OF_IMG|>",
        "eoi_token": "<|END_OF_IMG|>",
        "img_line_break_token": "<|IMG_LINE_BREAK|>",
    }
    special = ["<PAD>", "<BOS_TOKEN>", *turns, "<|IMG_PATCH|>", *named.values()]
    tokenizer = tokens.train(special, image="<|IMG_PATCH|>", bos="<BOS_TOKEN>", eos=turns[1], pad="<PAD>", named=named)
    edge = shape.grid * PATCH
    config = Cohere2VisionConfig(
        text_config=text_config(
            shape,
            tokenizer,
            model_type="cohere2",
            sliding_window=shape.window,
            layer_types=["sliding_attention"] * (shape.layers - 1) + ["full_attention"],
            tie_word_embeddings=True,
        ),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, model_type="siglip_vision_model", vision_use_head=False
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<|IMG_PATCH|>"),
        downsample_factor=SHRINK,
        alignment_intermediate_size=4 * shape.hidden,
    )
    processor = {
        "processor_class": "Cohere2VisionProcessor",
        "image_processor": {
            "image_processor_type": "Cohere2VisionImageProcessor",
            "size": square(edge),
            "max_patches": 4,
            "patch_size": shape.grid // SHRINK,  # the processor means the tokens along the edge of a tile
        },
    }
    template = templates.chat(
        "'<|START_OF_TURN_TOKEN|>' + ('<|USER_TOKEN|>' if message['role'] == 'user' else '<|CHATBOT_TOKEN|>')",
        "'<|END_OF_TURN_TOKEN|>'",
        "'<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>'",
        image="'<|IMG_PATCH|>'",
        begin="bos_token",
    )
    return Checkpoint(config, tokenizer, processor, template, {"embed_tokens": 0.3})
