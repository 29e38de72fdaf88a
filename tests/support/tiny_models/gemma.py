"""Google's models: image tokens see each other in both directions, and most layers look at a sliding window."""

from __future__ import annotations

import math
from typing import Any

from transformers import Gemma3Config, Gemma4Config, PaliGemmaConfig, PreTrainedTokenizerFast, T5Gemma2Config

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config

PATCH = 14
TURNS = ("<start_of_turn>", "<end_of_turn>")


def _scale(shape: Shape) -> dict[str, float]:
    """The input embeddings are also the output's, and are multiplied by the root of the width where they enter."""
    return {"embed_tokens": 2 / math.sqrt(shape.hidden)}


def _gemma3_tokenizer() -> PreTrainedTokenizerFast:
    named = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    special = ["<pad>", "<eos>", "<bos>", "<unk>", *TURNS, *named.values(), "<image_soft_token>"]
    tokenizer = tokens.train(special, image="<image_soft_token>", bos="<bos>", eos=TURNS[1], pad="<pad>", named=named)
    # The real one has them as words, and vLLM looks for them.
    tokenizer.add_tokens(["\n" * count for count in range(1, 5)])
    return tokenizer


def _gemma3_vision(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of a config that concern images, and the processor."""
    side = max(shape.grid, 8)  # an image alone fills the window of the smallest model
    edge = side * PATCH
    config = {
        "vision_config": vision_config(
            shape, patch=PATCH, edge=edge, model_type="siglip_vision_model", vision_use_head=False
        ),
        "mm_tokens_per_image": side**2,
        "boi_token_index": tokenizer.convert_tokens_to_ids("<start_of_image>"),
        "eoi_token_index": tokenizer.convert_tokens_to_ids("<end_of_image>"),
        "image_token_index": tokenizer.convert_tokens_to_ids("<image_soft_token>"),
    }
    processor = {
        "processor_class": "Gemma3Processor",
        "image_processor": {"image_processor_type": "Gemma3ImageProcessor", "size": square(edge)},
        "image_seq_length": side**2,
    }
    return config, processor


def _gemma3_text(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return text_config(
        shape,
        tokenizer,
        sliding_window=shape.window,
        layer_types=["sliding_attention"] * (shape.layers - 1) + ["full_attention"],
        query_pre_attn_scalar=shape.head_dim,
        tie_word_embeddings=True,
    )


def gemma3(shape: Shape) -> Checkpoint:
    """Gemma 3: the template takes white space off all that is said."""
    tokenizer = _gemma3_tokenizer()
    images, processor = _gemma3_vision(shape, tokenizer)
    config = Gemma3Config(text_config=_gemma3_text(shape, tokenizer), **images)
    template = templates.chat(
        "'<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n'",
        "'<end_of_turn>\n'",
        "'<start_of_turn>model\n'",
        image="'<start_of_image>'",
        text=" | trim",
        begin="bos_token",
    )
    return Checkpoint(config, tokenizer, processor, template, _scale(shape))


def t5gemma2(shape: Shape) -> Checkpoint:
    """T5Gemma 2: an encoder reads image and prompt, a decoder writes; no conversation."""
    tokenizer = _gemma3_tokenizer()
    images, processor = _gemma3_vision(shape, tokenizer)
    text = _gemma3_text(shape, tokenizer)
    config = T5Gemma2Config(
        encoder={"text_config": text, **images},
        decoder=text,
        image_token_index=images["image_token_index"],
        bos_token_id=tokenizer.bos_token_id,
    )
    return Checkpoint(config, tokenizer, processor, None, _scale(shape))


def gemma4(shape: Shape) -> Checkpoint:
    """Gemma 4: every layer has embeddings of its own, and an image has as many tokens as its shape asks for."""
    named = {
        "boi_token": "<|image>",
        "eoi_token": "<image|>",
        "audio_token": "<|audio|>",
        "boa_token": "<|audio>",
        "eoa_token": "<audio|>",
    }
    turns = ["<|turn>", "<turn|>"]
    special = ["<pad>", "<eos>", "<bos>", "<unk>", *turns, "<|image|>", *named.values(), "<|video|>"]
    tokenizer = tokens.train(special, image="<|image|>", bos="<bos>", eos=turns[1], pad="<pad>", named=named)
    patch, pool, most = 16, 3, 70  # the least number of image tokens that the processor takes
    ids = dict(zip(named, tokenizer.convert_tokens_to_ids(list(named.values())), strict=True))
    config = Gemma4Config(
        text_config=text_config(
            shape,
            tokenizer,
            sliding_window=shape.window,
            layer_types=["sliding_attention"] * (shape.layers - 1) + ["full_attention"],
            global_head_dim=2 * shape.head_dim,
            hidden_size_per_layer_input=16,
            vocab_size_per_layer_input=len(tokenizer),
            use_bidirectional_attention="vision",
            final_logit_softcapping=30.0,
            tie_word_embeddings=True,
        ),
        vision_config={
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
            "num_key_value_heads": shape.vision_heads,
            "head_dim": shape.vision_hidden // shape.vision_heads,
            "patch_size": patch,
            "pooling_kernel_size": pool,
            "position_embedding_size": 256,
        },
        audio_config=None,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.convert_tokens_to_ids("<|video|>"),
        boi_token_id=ids["boi_token"],
        eoi_token_id=ids["eoi_token"],
        audio_token_id=ids["audio_token"],
        boa_token_id=ids["boa_token"],
        eoa_token_index=ids["eoa_token"],
    )
    pixels = {"patch_size": patch, "pooling_kernel_size": pool, "max_soft_tokens": most}
    processor = {
        "processor_class": "Gemma4Processor",
        "feature_extractor": {"feature_extractor_type": "Gemma4AudioFeatureExtractor"},
        "image_processor": {"image_processor_type": "Gemma4ImageProcessor", **pixels},
        "video_processor": {"video_processor_type": "Gemma4VideoProcessor", **pixels},
        "image_seq_length": most,
    }
    template = templates.chat(
        "'<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n'",
        "'<turn|>\n'",
        "'<|turn>model\n'",
        image="'<|image|>'",
        text=" | trim",
        begin="bos_token",
    )
    return Checkpoint(config, tokenizer, processor, template, _scale(shape))


def paligemma(shape: Shape) -> Checkpoint:
    """PaliGemma: no conversation, and the whole prompt is read in both directions."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<image>"]
    tokenizer = tokens.train(special, image="<image>", bos="<bos>", eos="<eos>", pad="<pad>", adds_bos=False)
    # The processor adds words for places and shapes when it is made; the model must have embeddings for them.
    vocabulary = len(tokenizer) + 1024 + 128
    edge = shape.grid * PATCH
    config = PaliGemmaConfig(
        text_config=text_config(shape, tokenizer, model_type="gemma", vocab_size=vocabulary, tie_word_embeddings=True),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, model_type="siglip_vision_model", vision_use_head=False
        ),
        image_token_index=tokenizer.image_token_id,
        projection_dim=shape.hidden,
        hidden_size=shape.hidden,
        vocab_size=vocabulary,
    )
    processor = {
        "processor_class": "PaliGemmaProcessor",
        "image_processor": {
            "image_processor_type": "SiglipImageProcessor",
            "size": square(edge),
            "image_seq_length": shape.grid**2,
        },
    }
    return Checkpoint(config, tokenizer, processor, None, _scale(shape))
