"""Models that turn an image into words of their vocabulary, and could draw: Chameleon and Emu3."""

from __future__ import annotations

from transformers import ChameleonConfig, Emu3Config

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, whole_heads

WORDS = 32


def chameleon(shape: Shape) -> Checkpoint:
    """Chameleon: the processor ends every prompt with a separator; no conversation."""
    letters = "ABCDEFGHIJ"
    names = [f"IMGIMG{''.join(letters[int(digit)] for digit in str(word))}Z" for word in range(WORDS)]
    special = ["<pad>", "<s>", "</s>", "<reserved08706>", "<racm3:break>", "<eoss>", "<image>", *names]
    tokenizer = tokens.train(special, image="<image>", bos="<s>", eos="</s>", pad="<pad>", sep_token="<reserved08706>")
    edge = 4 * shape.grid
    config = ChameleonConfig(
        **whole_heads(text_config(shape, tokenizer)),
        vq_config={
            "embed_dim": 16,
            "num_embeddings": WORDS,
            "latent_channels": 16,
            "resolution": edge,
            "base_channels": 32,
            "channel_multiplier": [1, 1, 1],
            "num_res_blocks": 1,
        },
        vocabulary_map={name: tokenizer.convert_tokens_to_ids(name) for name in ["<image>", *names]},
    )
    processor = {
        "processor_class": "ChameleonProcessor",
        "image_processor": {
            "image_processor_type": "ChameleonImageProcessor",
            "size": {"shortest_edge": edge},
            "crop_size": square(edge),
        },
        "image_seq_length": shape.grid**2,
        "image_token": "<image>",
    }
    return Checkpoint(config, tokenizer, processor, None)


def emu3(shape: Shape) -> Checkpoint:
    """Emu3: images of any shape; the processor writes the first token, and the image's size in digits."""
    names = [f"<|visual token {word:06d}|>" for word in range(WORDS)]
    named = {
        "boi_token": "<|image start|>",
        "eoi_token": "<|image end|>",
        "image_wrapper_token": "<|image token|>",
        "eof_token": "<|extra_201|>",
    }
    special = ["<|endoftext|>", "<|extra_203|>", "<|extra_204|>", "<image>", "<|extra_200|>", *named.values(), *names]
    tokenizer = tokens.train(
        special,
        image="<image>",
        bos="<|extra_203|>",
        eos="<|extra_204|>",
        pad="<|endoftext|>",
        adds_bos=False,
        named=named,
    )
    pixels = (8 * shape.grid) ** 2
    mapped = ["<image>", "<|extra_200|>", *names]
    config = Emu3Config(
        text_config=whole_heads(text_config(shape, tokenizer, attention_dropout=0.0)),
        vq_config={
            "codebook_size": WORDS,
            "embed_dim": 4,
            "latent_channels": 4,
            "base_channels": 32,
            "channel_multiplier": [1, 1, 1, 1],
            "num_res_blocks": 1,
            "hidden_size": 32,
        },
        vocabulary_map={name: tokenizer.convert_tokens_to_ids(name) for name in mapped},
    )
    processor = {
        "processor_class": "Emu3Processor",
        "image_processor": {
            "image_processor_type": "Emu3ImageProcessor",
            "min_pixels": pixels,
            "max_pixels": 2 * pixels,
        },
    }
    template = templates.chat(
        "message['role'] | upper + ': '",
        "' ' if message['role'] == 'user' else eos_token",
        "'ASSISTANT:'",
        image="'<image>'",
    )
    return Checkpoint(config, tokenizer, processor, template)
