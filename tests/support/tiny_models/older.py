"""Older models, which know no conversation."""

from __future__ import annotations

from typing import Any

from transformers import (
    Blip2Config,
    Florence2Config,
    IdeficsConfig,
    InstructBlipConfig,
    Kosmos2Config,
    PreTrainedTokenizerFast,
)

from tiny_models import tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config, whole_heads

PATCH = 14
QUERIES = 8


def _blip(config_class: Any, shape: Shape, **others: Any) -> tuple[Any, PreTrainedTokenizerFast, dict[str, Any]]:
    # The processor must find no ``image_token`` in the tokenizer: it expects the one that it adds.
    tokenizer = tokens.train(["<s>", "<pad>", "</s>", "<image>"], bos="</s>", eos="</s>", pad="<pad>")
    edge = shape.grid * PATCH
    config = config_class(
        text_config={
            "model_type": "opt",
            "vocab_size": len(tokenizer),
            "hidden_size": shape.hidden,
            "word_embed_proj_dim": shape.hidden,
            "ffn_dim": shape.intermediate,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.hidden // shape.head_dim,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "dropout": 0.0,
            "tie_word_embeddings": False,
        },
        vision_config=vision_config(shape, patch=PATCH, edge=edge),
        qformer_config={
            "vocab_size": len(tokenizer),
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": 2,
            "num_attention_heads": shape.vision_heads,
        },
        num_query_tokens=QUERIES,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        tie_word_embeddings=False,
        **others,
    )
    processor = {
        "image_processor": {"image_processor_type": "BlipImageProcessor", "size": square(edge)},
        "num_query_tokens": QUERIES,
    }
    return config, tokenizer, processor


def blip_2(shape: Shape) -> Checkpoint:
    """BLIP-2 with OPT: the image comes before the first token, and its tokens are not written in the prompt."""
    config, tokenizer, processor = _blip(Blip2Config, shape, image_text_hidden_size=shape.vision_hidden)
    return Checkpoint(config, tokenizer, {"processor_class": "Blip2Processor", **processor}, None)


def instructblip(shape: Shape) -> Checkpoint:
    """InstructBLIP: the queries read the question too, with a tokenizer of their own."""
    config, tokenizer, processor = _blip(InstructBlipConfig, shape)
    named = {"processor_class": "InstructBlipProcessor", **processor}
    return Checkpoint(config, tokenizer, named, None, other_tokenizers={"qformer_tokenizer": tokenizer})


def kosmos_2(shape: Shape) -> Checkpoint:
    """Kosmos-2: the processor writes 64 image tokens, with the ids of other tokens, and a mask that tells them."""
    places = 16
    tokenizer = tokens.train(
        ["<s>", "<pad>", "</s>", "<unk>"], bos="<s>", eos="</s>", pad="<pad>", adds_bos=False, unk_token="<unk>"
    )
    edge = shape.grid * PATCH
    config = Kosmos2Config(
        text_config={
            "vocab_size": len(tokenizer) + 11 + places,  # tags and places, which the processor adds
            "max_position_embeddings": 4096,
            "embed_dim": shape.hidden,
            "layers": shape.layers,
            "ffn_dim": shape.intermediate,
            "attention_heads": shape.hidden // shape.head_dim,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "scale_embedding": False,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config=vision_config(shape, patch=PATCH, edge=edge),
        latent_query_num=64,
    )
    processor = {
        "processor_class": "Kosmos2Processor",
        "image_processor": {
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": edge},
            "crop_size": square(edge),
        },
        "num_patch_index_tokens": places,
    }
    return Checkpoint(config, tokenizer, processor, None, {"embed_tokens": 0.3})


def florence2(shape: Shape) -> Checkpoint:
    """Florence-2: an encoder reads image and prompt, a decoder writes."""
    places = [f"<loc_{place}>" for place in range(4)]
    tokenizer = tokens.train(
        ["<s>", "<pad>", "</s>", "<image>", *places], image="<image>", bos="<s>", eos="</s>", pad="<pad>"
    )
    edge, width = 64, shape.vision_hidden
    config = Florence2Config(
        text_config={
            "model_type": "bart",
            "vocab_size": len(tokenizer),
            "d_model": shape.hidden,
            "encoder_layers": shape.layers,
            "decoder_layers": shape.layers,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": shape.intermediate,
            "decoder_ffn_dim": shape.intermediate,
            "dropout": 0.0,
            "max_position_embeddings": 1024,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "decoder_start_token_id": tokenizer.bos_token_id,
        },
        vision_config={
            "depths": [1, 1],
            "patch_size": [7, 3],
            "patch_stride": [4, 2],
            "patch_padding": [3, 1],
            "patch_prenorm": [False, True],
            "embed_dim": [width // 2, width],
            "num_heads": [2, 2],
            "num_groups": [2, 2],
            "window_size": 4,
            "drop_path_rate": 0.0,
            "projection_dim": shape.hidden,
        },
        image_token_id=tokenizer.image_token_id,
    )
    processor = {
        "processor_class": "Florence2Processor",
        "image_processor": {
            "image_processor_type": "CLIPImageProcessor",
            "size": square(edge),
            "crop_size": square(edge),
            "do_center_crop": False,
            "image_seq_length": (edge // 8) ** 2 + 1,
        },
    }
    return Checkpoint(config, tokenizer, processor, None, {"shared": 4.0})


def idefics(shape: Shape) -> Checkpoint:
    """Idefics 1: layers that attend to the image from the side, opened by gates; a text alone needs pixels too."""
    special = ["<unk>", "<s>", "</s>", "<fake_token_around_image>", "<image>", "<end_of_utterance>"]
    tokenizer = tokens.train(special, bos="<s>", eos="</s>", pad="<unk>", adds_bos=False)
    edge = shape.grid * PATCH
    text = whole_heads(text_config(shape, tokenizer))
    del text["num_key_value_heads"]
    config = IdeficsConfig(
        **text,
        alpha_initializer="ones",
        vision_config={
            "embed_dim": shape.vision_hidden,
            "image_size": edge,
            "patch_size": PATCH,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
        },
        perceiver_config={},
    )
    processor = {
        "processor_class": "IdeficsProcessor",
        "image_processor": {"image_processor_type": "IdeficsImageProcessor", "image_size": edge},
    }
    return Checkpoint(config, tokenizer, processor, None)
