"""Idefics and SmolVLM: an image is cut into tiles, each written with its row and column."""

from __future__ import annotations

from typing import Any

from transformers import Idefics2Config, Idefics3Config, PreTrainedTokenizerFast, SmolVLMConfig

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, text_config, vision_config

PATCH, SCALE = 14, 2


def idefics2(shape: Shape) -> Checkpoint:
    """Idefics2: a perceiver makes the same number of tokens of every image; the processor writes a space after it."""
    special = ["<s>", "</s>", "<unk>", "<fake_token_around_image>", "<image>", "<end_of_utterance>"]
    tokenizer = tokens.train(special, bos="<s>", eos="<end_of_utterance>", pad="<unk>")
    edge, latents = shape.grid * PATCH, shape.grid**2
    config = Idefics2Config(
        text_config=text_config(shape, tokenizer, model_type="mistral", sliding_window=None),
        vision_config=vision_config(shape, patch=PATCH, edge=edge),
        perceiver_config={
            "hidden_size": shape.hidden,
            "resampler_n_latents": latents,
            "resampler_depth": 1,
            "resampler_n_heads": 2,
            "resampler_head_dim": shape.head_dim,
            "num_key_value_heads": 1,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "Idefics2Processor",
        "image_processor": {
            "image_processor_type": "Idefics2ImageProcessor",
            "size": {"shortest_edge": edge // 2, "longest_edge": edge},
            "do_image_splitting": False,
        },
        "image_seq_len": latents,
    }
    template = templates.IDEFICS.removeprefix("{{- bos_token -}}")  # the tokenizer adds it
    return Checkpoint(config, tokenizer, processor, template)


def idefics3(shape: Shape) -> Checkpoint:
    """Idefics3."""
    tokenizer = _tokenizer()
    config = Idefics3Config(**_config(shape, tokenizer), pad_token_id=tokenizer.pad_token_id)
    return Checkpoint(config, tokenizer, _processor("Idefics3", shape), templates.IDEFICS)


def smolvlm(shape: Shape) -> Checkpoint:
    """SmolVLM: Idefics3 with a processor of its own, which also takes videos."""
    tokenizer = _tokenizer()
    processor = _processor("SmolVLM", shape)
    tiles = processor["image_processor"]
    processor["video_processor"] = {
        "video_processor_type": "SmolVLMVideoProcessor",
        "size": tiles["size"],
        "max_image_size": tiles["max_image_size"],
        "num_frames": 4,
        "fps": 1,
    }
    config = SmolVLMConfig(**_config(shape, tokenizer))
    return Checkpoint(config, tokenizer, processor, templates.IDEFICS)


def _tokenizer() -> PreTrainedTokenizerFast:
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<end_of_utterance>", "<pad>", "<image>"]
    special += ["<fake_token_around_image>", "<global-img>", *tiles]
    return tokens.train(special, image="<image>", bos="<|begin_of_text|>", eos="<end_of_utterance>", pad="<pad>")


def _config(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "text_config": text_config(shape, tokenizer, model_type="llama"),
        "vision_config": vision_config(shape, patch=PATCH, edge=shape.grid * PATCH),
        "image_token_id": tokenizer.convert_tokens_to_ids("<image>"),
        "scale_factor": SCALE,
        "tie_word_embeddings": False,
    }


def _processor(name: str, shape: Shape) -> dict[str, Any]:
    """Images are enlarged to two tiles along the longer side, so the aspect ratio decides the number of tokens."""
    edge = shape.grid * PATCH
    return {
        "processor_class": f"{name}Processor",
        "image_processor": {
            "image_processor_type": f"{name}ImageProcessor",
            "size": {"longest_edge": 2 * edge},
            "max_image_size": {"longest_edge": edge},
        },
        "image_seq_len": (shape.grid // SCALE) ** 2,
    }
