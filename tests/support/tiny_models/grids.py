"""Models of other families that take images of any shape as a grid, as Qwen's do."""

from __future__ import annotations

from typing import Any

from transformers import (
    Ernie4_5_VLMoeConfig,
    Exaone4_5_Config,
    Kimi_K25Config,
    PaddleOCRVLConfig,
    VideoLlama3Config,
)

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, text_config, vision_config, whole_heads

PATCH, MERGE = 14, 2
CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def _pixels(shape: Shape, **others: Any) -> dict[str, Any]:
    largest = (shape.grid * MERGE * PATCH) ** 2
    size = {"shortest_edge": largest // 2, "longest_edge": largest}
    return {"size": size, "patch_size": PATCH, "merge_size": MERGE, **others}


def _processor(name: str, image: str, video: str | None, pixels: dict[str, Any]) -> dict[str, Any]:
    return {
        "processor_class": name,
        "image_processor": {"image_processor_type": image, **pixels},
        **({} if video is None else {"video_processor": {"video_processor_type": video, **pixels}}),
    }


def ernie4_5_vl_moe(shape: Shape) -> Checkpoint:
    """ERNIE 4.5 VL: image tokens have experts of their own, chosen by an input with one number per token."""
    named = {
        "image_start_token": "<|IMAGE_START|>",
        "image_end_token": "<|IMAGE_END|>",
        "video_token": "<|VIDEO_PLACEHOLDER|>",
        "video_start_token": "<|VIDEO_START|>",
        "video_end_token": "<|VIDEO_END|>",
    }
    image = "<|IMAGE_PLACEHOLDER|>"
    special = ["<unk>", "<s>", "</s>", image, *named.values(), "<think>", "</think>"]
    tokenizer = tokens.train(special, image=image, bos="<s>", eos="</s>", pad="<unk>", adds_bos=False, named=named)
    ids = {f"{name}_id": tokenizer.convert_tokens_to_ids(token) for name, token in named.items()}
    quarter = shape.head_dim // 4
    config = Ernie4_5_VLMoeConfig(
        text_config=whole_heads(
            text_config(
                shape,
                tokenizer,
                moe_intermediate_size=[shape.intermediate // 2, shape.intermediate // 4],
                moe_num_experts=4,
                moe_k=2,
                moe_num_shared_experts=1,
                rope_parameters={
                    "rope_type": "default",
                    "rope_theta": 10_000.0,
                    "mrope_section": [quarter - 2, quarter - 2, 4],
                },
            )
        ),
        vision_config={
            "depth": shape.vision_layers,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_heads": shape.vision_heads,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
        },
        image_token_id=tokenizer.image_token_id,
        tie_word_embeddings=False,
        **ids,
    )
    processor = _processor(
        "Ernie4_5_VLMoeProcessor", "Ernie4_5_VLMoeImageProcessor", "Ernie4_5_VLMoeVideoProcessor", _pixels(shape)
    )
    processor["video_processor"]["draw_on_frames"] = False  # which would need a font
    template = templates.chat(
        "'User: ' if message['role'] == 'user' else 'Assistant: '",
        "'\n' if message['role'] == 'user' else '</s>'",
        "'Assistant: <think>\n' + ('\n</think>\n\n' if enable_thinking is false else '')",
        image="'Picture 1:<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>'",
        begin="'<s>'",
    )
    return Checkpoint(config, tokenizer, processor, template)


def kimi_k25(shape: Shape) -> Checkpoint:
    """Kimi K2.5: the decoder of DeepSeek-V3, which remembers compressed keys and values."""
    marks = ["<|media_begin|>", "<|media_content|>", "<|media_end|>", "<|kimi_k25_video_placeholder|>"]
    turns = ["[BOS]", "[EOS]", "[PAD]", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"]
    special = [*turns, "<|media_pad|>", *marks, "<think>", "</think>"]
    tokenizer = tokens.train(special, image="<|media_pad|>", bos="[BOS]", eos="<|im_end|>", pad="[PAD]", adds_bos=False)
    start, _, end, video = tokenizer.convert_tokens_to_ids(marks)
    config = Kimi_K25Config(
        text_config=text_config(
            shape,
            tokenizer,
            model_type="deepseek_v3",
            num_key_value_heads=shape.heads,
            head_dim=16,
            kv_lora_rank=32,
            q_lora_rank=32,
            qk_rope_head_dim=16,
            qk_nope_head_dim=16,
            v_head_dim=32,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_group=1,
            topk_group=1,
            first_k_dense_replace=1,
            moe_intermediate_size=shape.intermediate // 2,
        ),
        vision_config={
            "patch_size": PATCH,
            "pos_emb_height": shape.grid * MERGE,
            "pos_emb_width": shape.grid * MERGE,
            "num_attention_heads": shape.vision_heads,
            "num_hidden_layers": shape.vision_layers,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
        },
        projection_hidden_size=shape.vision_hidden,
        image_token_id=tokenizer.image_token_id,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=False,
    )
    edge = shape.grid * MERGE * PATCH
    pixels = {
        "size": {"max_height": edge, "max_width": edge},
        "max_patches": (shape.grid * MERGE) ** 2,
        "patch_size": PATCH,
        "merge_size": MERGE,
    }
    processor = _processor("Kimi_K25Processor", "Kimi_K25ImageProcessor", "Kimi_K25VideoProcessor", pixels)
    template = templates.chat(
        "'<|im_' + message['role'] + '|>' + message['role'] + '<|im_middle|>'",
        "'<|im_end|>'",
        "'<|im_assistant|>assistant<|im_middle|>' + ('<think></think>' if thinking is false else '<think>')",
        image="'<|media_begin|>image<|media_content|><|media_pad|><|media_end|>'",
    )
    return Checkpoint(config, tokenizer, processor, template)


def exaone4_5(shape: Shape) -> Checkpoint:
    """EXAONE 4.5: Qwen2.5's vision tower with a decoder that looks at a sliding window in most layers."""
    special = ["[PAD]", "[BOS]", "[|endofturn|]", "<vision>", "</vision>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = tokens.train(
        special, image="<|image_pad|>", bos="[BOS]", eos="[|endofturn|]", pad="[PAD]", adds_bos=False
    )
    config = Exaone4_5_Config(
        text_config=text_config(
            shape,
            tokenizer,
            model_type="exaone4",
            sliding_window=shape.window,
            layer_types=["sliding_attention"] * (shape.layers - 1) + ["full_attention"],
        ),
        vision_config={
            "depth": shape.vision_layers,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_heads": shape.vision_heads,
            "num_key_value_heads": shape.vision_heads // 2,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "window_size": 2 * MERGE * PATCH,
            "out_hidden_size": shape.hidden,
            "fullatt_block_indexes": [shape.vision_layers - 1],
        },
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        tie_word_embeddings=False,
    )
    pixels = _pixels(shape, temporal_patch_size=2)
    processor = _processor("Exaone4_5_Processor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor", pixels)
    template = templates.chat(
        "'[|' + message['role'] + '|]\n'",
        "'[|endofturn|]\n'",
        "'[|assistant|]\n'",
        image="'<vision><|image_pad|></vision>'",
    )
    return Checkpoint(config, tokenizer, processor, template)


def video_llama_3(shape: Shape) -> Checkpoint:
    """VideoLLaMA 3."""
    special = [*CHATML, "<image>", "<video>"]
    tokenizer = tokens.train(special, image="<image>", eos="<|im_end|>", pad="<|endoftext|>")
    vision = vision_config(shape, patch=PATCH, edge=0)
    del vision["image_size"]
    config = VideoLlama3Config(
        text_config=text_config(shape, tokenizer, model_type="qwen2"),
        vision_config=vision,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.convert_tokens_to_ids("<video>"),
        tie_word_embeddings=False,
    )
    processor = _processor(
        "VideoLlama3Processor", "VideoLlama3ImageProcessor", "VideoLlama3VideoProcessor", _pixels(shape)
    )
    return Checkpoint(config, tokenizer, processor, templates.chatml("'<image>\n'"))


def paddleocr_vl(shape: Shape) -> Checkpoint:
    """PaddleOCR-VL: positions in three dimensions, and no videos."""
    special = ["<unk>", "<s>", "</s>", "<|IMAGE_START|>", "<|IMAGE_END|>", "<|IMAGE_PLACEHOLDER|>", "<|video|>"]
    tokenizer = tokens.train(special, image="<|IMAGE_PLACEHOLDER|>", bos="<s>", eos="</s>", pad="<unk>", adds_bos=False)
    start, end, video = tokenizer.convert_tokens_to_ids(["<|IMAGE_START|>", "<|IMAGE_END|>", "<|video|>"])
    third = shape.head_dim // 6
    config = PaddleOCRVLConfig(
        text_config=text_config(
            shape,
            tokenizer,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 10_000.0,
                "mrope_section": [shape.head_dim // 2 - 2 * third, third, third],
            },
        ),
        vision_config=vision_config(shape, patch=PATCH, edge=shape.grid * MERGE * PATCH),
        image_token_id=tokenizer.image_token_id,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=False,
    )
    processor = _processor("PaddleOCRVLProcessor", "PaddleOCRVLImageProcessor", None, _pixels(shape))
    template = templates.chat(
        "'User: ' if message['role'] == 'user' else 'Assistant:\n'",
        "'\n' if message['role'] == 'user' else '</s>'",
        "'Assistant:\n'",
        image="'<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>'",
        begin="'<s>'",
    )
    return Checkpoint(config, tokenizer, processor, template)
