"""DeepSeek-VL, Janus and GOT-OCR."""

from __future__ import annotations

from typing import Any

from transformers import DeepseekVLConfig, DeepseekVLHybridConfig, GotOcr2Config, JanusConfig, PreTrainedTokenizerFast

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config

PATCH = 16
BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
TEMPLATE = templates.chat(
    "'<|User|>: ' if message['role'] == 'user' else '<|Assistant|>: '",
    "'\n\n' if message['role'] == 'user' else eos_token",
    "'<|Assistant|>:'",
    image="'<image_placeholder>'",
)


def _tokenizer(**named: str) -> PreTrainedTokenizerFast:
    special = [BEGIN, END, "<pad>", "<image_placeholder>", *named.values(), "<|User|>", "<|Assistant|>"]
    return tokens.train(special, image="<image_placeholder>", bos=BEGIN, eos=END, pad="<pad>", named=named)


def _processor(name: str, shape: Shape) -> dict[str, Any]:
    pixels = {"image_processor_type": f"{name}ImageProcessor", "size": square(shape.grid * PATCH), "min_size": 14}
    return {"processor_class": f"{name}Processor", "image_processor": pixels, "num_image_tokens": shape.grid**2}


def deepseek_vl(shape: Shape) -> Checkpoint:
    """DeepSeek-VL."""
    tokenizer = _tokenizer()
    config = DeepseekVLConfig(
        text_config=text_config(shape, tokenizer, model_type="llama"),
        vision_config=vision_config(
            shape, patch=PATCH, edge=shape.grid * PATCH, model_type="siglip_vision_model", vision_use_head=False
        ),
        image_token_id=tokenizer.image_token_id,
        tie_word_embeddings=False,
    )
    return Checkpoint(config, tokenizer, _processor("DeepseekVL", shape), TEMPLATE)


def janus(shape: Shape) -> Checkpoint:
    """Janus: reads images like the others, and has what it needs to draw them."""
    tokenizer = _tokenizer(boi_token="<begin_of_image>", eoi_token="<end_of_image>")
    config = JanusConfig(
        text_config=text_config(shape, tokenizer, model_type="llama"),
        vision_config={
            "hidden_size": shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
            "image_size": shape.grid * PATCH,
            "patch_size": PATCH,
            "projection_dim": shape.hidden,
            "num_image_tokens": shape.grid**2,
        },
        vq_config={
            "embed_dim": 8,
            "num_embeddings": 32,
            "latent_channels": 32,
            "base_channels": 32,
            "channel_multiplier": [1, 1],
            "num_res_blocks": 1,
            "projection_dim": shape.hidden,
            "image_token_embed_dim": shape.hidden,
        },
        image_token_id=tokenizer.image_token_id,
        tie_word_embeddings=False,
    )
    return Checkpoint(config, tokenizer, _processor("Janus", shape), TEMPLATE)


def deepseek_vl_hybrid(shape: Shape) -> Checkpoint:
    """DeepSeek-VL with a second vision tower for a larger copy of the image."""
    tokenizer = _tokenizer()
    large = 4 * shape.grid * PATCH
    config = DeepseekVLHybridConfig(
        text_config=text_config(shape, tokenizer, model_type="llama"),
        vision_config=vision_config(
            shape, patch=PATCH, edge=shape.grid * PATCH, model_type="siglip_vision_model", vision_use_head=False
        ),
        high_res_vision_config=sam_config(shape, large) | {"model_type": "sam_vision_model"},
        image_token_id=tokenizer.image_token_id,
        tie_word_embeddings=False,
    )
    processor = _processor("DeepseekVLHybrid", shape)
    processor["image_processor"]["high_res_size"] = square(large)
    return Checkpoint(config, tokenizer, processor, TEMPLATE)


def sam_config(shape: Shape, edge: int) -> dict[str, Any]:
    """Sizes of SAM's vision tower."""
    return {
        "hidden_size": shape.vision_hidden,
        "output_channels": shape.vision_hidden,
        "num_hidden_layers": shape.vision_layers,
        "num_attention_heads": shape.vision_heads,
        "image_size": edge,
        "patch_size": PATCH,
        "window_size": 4,
        "global_attn_indexes": [shape.vision_layers - 1],
        "mlp_dim": 4 * shape.vision_hidden,
    }


def got_ocr2(shape: Shape) -> Checkpoint:
    """GOT-OCR 2.0: reads the text in an image. The processor takes no prompt without an image."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<imgpad>"]
    tokenizer = tokens.train(special, eos="<|im_end|>", pad="<|endoftext|>")
    # The processor writes 256 tokens, whatever the model has; small patches and windows make that many cheaply.
    patch, edge = 4, 256
    config = GotOcr2Config(
        text_config=text_config(shape, tokenizer, model_type="qwen2"),
        vision_config=sam_config(shape, edge) | {"patch_size": patch, "global_attn_indexes": []},
        image_token_index=tokenizer.convert_tokens_to_ids("<imgpad>"),
        image_seq_length=256,
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "GotOcr2Processor",
        "image_processor": {"image_processor_type": "GotOcr2ImageProcessor", "size": square(edge)},
    }
    return Checkpoint(config, tokenizer, processor, None)
