"""Models of other families that cut an image into tiles, each with a decoder of another kind."""

from __future__ import annotations

from transformers import InternVLConfig, Lfm2VlConfig, MiniCPMV4_6Config, Molmo2Config, Ovis2Config, Step3p7Config

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config, whole_heads
from tiny_models.qwen import THINKING_ANSWER, recurrent_text

PATCH = 14
CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def internvl(shape: Shape) -> Checkpoint:
    """InternVL 3."""
    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = tokens.train([*CHATML, *named.values()], eos="<|im_end|>", pad="<|endoftext|>", named=named)
    edge, sequence = shape.grid * PATCH, (shape.grid // 2) ** 2
    config = InternVLConfig(
        text_config=text_config(shape, tokenizer, model_type="qwen2"),
        vision_config=vision_config(shape, patch=PATCH, edge=edge),
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=sequence,
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "InternVLProcessor",
        "image_processor": {
            "image_processor_type": "GotOcr2ImageProcessor",
            "size": square(edge),
            "crop_to_patches": True,
            "min_patches": 1,
            "max_patches": 4,
        },
        "video_processor": {"video_processor_type": "InternVLVideoProcessor", "size": square(edge)},
        "image_seq_length": sequence,
    }
    return Checkpoint(config, tokenizer, processor, templates.chatml("'<IMG_CONTEXT>\n'"))


def ovis2(shape: Shape) -> Checkpoint:
    """Ovis2: image tokens are mixtures of the entries of a visual vocabulary."""
    atom, indicators = "<IMG_ATOM>", ["<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>"]
    special = [*CHATML, "<image>", atom, *indicators]
    tokenizer = tokens.train(special, image="<image>", eos="<|im_end|>", pad="<|endoftext|>")
    edge, stride = shape.grid * PATCH, 2
    config = Ovis2Config(
        text_config=text_config(shape, tokenizer, model_type="qwen2"),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, vocab_size=64, hidden_stride=stride, num_visual_indicator_tokens=5
        ),
        image_token_id=tokenizer.convert_tokens_to_ids(atom),
        visual_indicator_token_ids=tokenizer.convert_tokens_to_ids(indicators),
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "Ovis2Processor",
        "image_processor": {
            "image_processor_type": "Ovis2ImageProcessor",
            "size": square(edge),
            "crop_to_patches": True,
            "min_patches": 1,
            "max_patches": 4,
        },
        "image_token": "<image>",
        "image_seq_length": (shape.grid // stride) ** 2,
    }
    return Checkpoint(config, tokenizer, processor, templates.chatml("'<image>\n'"))


def lfm2_vl(shape: Shape) -> Checkpoint:
    """LFM2-VL: most layers of the decoder are short convolutions."""
    marks = ["<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"]
    tiles = [f"<|img_row_{row}_col_{column}|>" for row in range(1, 5) for column in range(1, 5)]
    special = ["<|pad|>", "<|startoftext|>", "<|im_start|>", "<|im_end|>", "<image>", *marks, *tiles]
    tokenizer = tokens.train(special, image="<image>", bos="<|startoftext|>", eos="<|im_end|>", pad="<|pad|>")
    patch, shrink = 16, 2
    config = Lfm2VlConfig(
        text_config=whole_heads(
            text_config(
                shape,
                tokenizer,
                model_type="lfm2",
                layer_types=["conv"] * (shape.layers - 1) + ["full_attention"],
                block_auto_adjust_ff_dim=False,
            )
        ),
        vision_config={
            "model_type": "siglip2_vision_model",
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
            "patch_size": patch,
            "num_patches": shape.grid**2,
            "vision_use_head": False,
        },
        image_token_id=tokenizer.image_token_id,
        projector_hidden_size=shape.hidden,
        downsample_factor=shrink,
        tie_word_embeddings=False,
    )
    processor = {
        "processor_class": "Lfm2VlProcessor",
        "image_processor": {
            "image_processor_type": "Lfm2VlImageProcessor",
            "downsample_factor": shrink,
            "encoder_patch_size": patch,
            "tile_size": shape.grid * patch,
            "min_image_tokens": shape.grid,
            "max_image_tokens": shape.grid**2,
            "min_tiles": 2,
            "max_tiles": 4,
            "max_pixels_tolerance": 0.2,  # so that the smallest images are cut too
        },
    }
    return Checkpoint(config, tokenizer, processor, templates.chatml("'<image>'", begin="bos_token"))


def minicpm_v(shape: Shape) -> Checkpoint:
    """MiniCPM-V 4.6: Qwen3.5's decoder, and two steps that make fewer tokens of an image."""
    named = {
        "video_token": "<|video_pad|>",
        "image_start_token": "<image>",
        "image_end_token": "</image>",
        "slice_start_token": "<slice>",
        "slice_end_token": "</slice>",
        "image_id_start_token": "<image_id>",
        "image_id_end_token": "</image_id>",
    }
    special = [*CHATML, "<|image_pad|>", *named.values(), "<think>", "</think>"]
    tokenizer = tokens.train(special, image="<|image_pad|>", eos="<|im_end|>", pad="<|endoftext|>", named=named)
    edge = 2 * shape.grid * PATCH
    config = MiniCPMV4_6Config(
        text_config=recurrent_text(shape, tokenizer, model_type="qwen3_5_text"),
        vision_config=vision_config(shape, patch=PATCH, edge=edge),
        insert_layer_id=0,
        image_size=edge,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        tie_word_embeddings=False,
    )
    pixels = {"scale_resolution": edge, "patch_size": PATCH, "max_slice_nums": 4}
    processor = {
        "processor_class": "MiniCPMV4_6Processor",
        "image_processor": {"image_processor_type": "MiniCPMV4_6ImageProcessor", **pixels},
        "video_processor": {"video_processor_type": "MiniCPMV4_6VideoProcessor", **pixels},
    }
    template = templates.chatml("'<|image_pad|>\n'", answer=THINKING_ANSWER)
    return Checkpoint(config, tokenizer, processor, template)


def molmo2(shape: Shape) -> Checkpoint:
    """Molmo 2: overlapping crops, pooled by attention; the tokens around an image have embeddings of their own."""
    parts = ["<im_start>", "<im_end>", "<im_patch>", "<im_col>", "<low_res_im_start>", "<|image|>", "<im_low>"]
    special = [*CHATML, "<frame_start>", "<frame_end>", "<|video|>"]
    tokenizer = tokens.train(special, bos="<|endoftext|>", eos="<|im_end|>", pad="<|endoftext|>", adds_bos=False)
    vocabulary = len(tokenizer)
    tokenizer.add_tokens(parts, special_tokens=True)
    ids = dict(zip(parts, tokenizer.convert_tokens_to_ids(parts), strict=True))
    edge, heads = shape.grid * PATCH, shape.vision_heads
    width = shape.vision_hidden // heads
    config = Molmo2Config(
        text_config=text_config(shape, tokenizer, vocab_size=vocabulary, additional_vocab_size=len(parts)),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, num_key_value_heads=heads, head_dim=width, image_size=[edge, edge]
        ),
        adapter_config={
            "vision_feature_layer": [-1, 0],
            "hidden_size": shape.vision_hidden,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "head_dim": width,
            "intermediate_size": shape.intermediate,
            "text_hidden_size": shape.hidden,
        },
        image_start_token_id=ids["<im_start>"],
        low_res_image_start_token_id=ids["<low_res_im_start>"],
        image_end_token_id=ids["<im_end>"],
        image_patch_id=ids["<im_patch>"],
        frame_start_token_id=tokenizer.convert_tokens_to_ids("<frame_start>"),
        frame_end_token_id=tokenizer.convert_tokens_to_ids("<frame_end>"),
    )
    pixels = {"size": square(edge), "patch_size": PATCH, "pooling_size": [2, 2]}
    processor = {
        "processor_class": "Molmo2Processor",
        "image_processor": {
            "image_processor_type": "Molmo2ImageProcessor",
            "max_crops": 4,
            "overlap_margins": [1, 1],
            **pixels,
        },
        "video_processor": {"video_processor_type": "Molmo2VideoProcessor", **pixels},
    }
    return Checkpoint(config, tokenizer, processor, templates.chatml("'<|image|>'"))


def step3p7(shape: Shape) -> Checkpoint:
    """Step 3.7: experts, gated attention, and a sliding window in some layers."""
    parts = ["<im_start>", "<im_end>", "<im_patch>", "<patch_start>", "<patch_end>", "<patch_newline>"]
    special = ["<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", *parts, "<think>", "</think>"]
    tokenizer = tokens.train(special, image="<im_patch>", bos="<s>", eos="<|im_end|>", pad="<pad>")
    stride = 4 * PATCH
    edge, tile = shape.grid * stride, shape.grid // 2 * stride
    config = Step3p7Config(
        text_config=text_config(
            shape,
            tokenizer,
            layer_types=["sliding_attention"] * (shape.layers - 1) + ["full_attention"],
            sliding_window=shape.window,
            mlp_layer_types=["dense"] * (shape.layers - 1) + ["sparse"],
            n_routed_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=shape.intermediate // 2,
            share_expert_dim=shape.intermediate // 2,
        ),
        vision_config=vision_config(
            shape, patch=PATCH, edge=edge, mlp_ratio=4.0, max_position_embeddings=(edge // PATCH) ** 2
        ),
        image_token_id=tokenizer.image_token_id,
    )
    processor = {
        "processor_class": "Step3p7Processor",
        "image_processor": {
            "image_processor_type": "Step3p7ImageProcessor",
            "size": square(edge),
            "patch_size": tile,
            "max_image_size": 2 * edge,
        },
    }
    template = templates.chatml("'<im_patch>'", answer=THINKING_ANSWER, begin="bos_token")
    return Checkpoint(config, tokenizer, processor, template)
