"""Meta's models: Llama 3.2 Vision, which attends to images from the side, and Llama 4, which cuts them into tiles."""

from __future__ import annotations

from transformers import Llama4Config, MllamaConfig

from tiny_models import templates, tokens
from tiny_models.checkpoint import Checkpoint, Shape, square, text_config, vision_config, whole_heads

PATCH = 14


def mllama(shape: Shape) -> Checkpoint:
    """Llama 3.2 Vision: one token stands for an image, and some layers attend to its tiles."""
    headers = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"]
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", *headers]
    # The image's token is the last one, and the model has no output for it.
    tokenizer = tokens.train(special, bos="<|begin_of_text|>", eos="<|eot_id|>", pad="<|finetune_right_pad_id|>")
    vocabulary = len(tokenizer)
    tokenizer.add_tokens(["<|image|>"], special_tokens=True)
    layers = shape.vision_layers
    config = MllamaConfig(
        text_config=whole_heads(
            text_config(
                shape,
                tokenizer,
                vocab_size=vocabulary,
                num_hidden_layers=shape.layers + 1,
                cross_attention_layers=[1],
                rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            )
        ),
        vision_config={
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": layers,
            "num_global_layers": 1,
            "attention_heads": shape.vision_heads,
            "vision_output_dim": 2 * shape.vision_hidden,
            "intermediate_layers_indices": [layers - 1],
            "image_size": shape.grid * PATCH,
            "patch_size": PATCH,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("<|image|>"),
    )
    processor = {
        "processor_class": "MllamaProcessor",
        "image_processor": {
            "image_processor_type": "MllamaImageProcessor",
            "size": square(shape.grid * PATCH),
            "max_image_tiles": 4,
        },
    }
    template = templates.chat(
        "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'",
        "'<|eot_id|>'",
        "'<|start_header_id|>assistant<|end_header_id|>\n\n'",
        image="'<|image|>'",
        text=" | trim",
        begin="bos_token",
    )
    return Checkpoint(config, tokenizer, processor, template)


def llama4(shape: Shape) -> Checkpoint:
    """Llama 4: experts, and layers that look at chunks of the text."""
    turns = ["<|header_start|>", "<|header_end|>", "<|eot|>"]
    tiles = ["<|image_start|>", "<|image_end|>", "<|patch|>", "<|tile_x_separator|>", "<|tile_y_separator|>"]
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad|>", *turns, "<|image|>", *tiles]
    tokenizer = tokens.train(special, bos="<|begin_of_text|>", eos="<|eot|>", pad="<|finetune_right_pad|>")
    edge = shape.grid * PATCH
    start, end, patch = tokenizer.convert_tokens_to_ids(tiles[:3])
    config = Llama4Config(
        text_config=text_config(
            shape,
            tokenizer,
            intermediate_size_mlp=shape.intermediate,
            num_local_experts=2,
            num_experts_per_tok=1,
            interleave_moe_layer_step=2,
            no_rope_layers=[1] * (shape.layers - 1) + [0],
            attention_chunk_size=shape.window,
            floor_scale=shape.window,
        ),
        vision_config=vision_config(
            shape,
            patch=PATCH,
            edge=edge,
            vision_output_dim=shape.vision_hidden,
            projector_input_dim=shape.vision_hidden,
            projector_output_dim=shape.vision_hidden,
        )
        | {"intermediate_size": 4 * shape.vision_hidden},
        boi_token_index=start,
        eoi_token_index=end,
        image_token_index=patch,
    )
    processor = {
        "processor_class": "Llama4Processor",
        "image_processor": {
            "image_processor_type": "Llama4ImageProcessor",
            "size": square(edge),
            "max_patches": 4,
            "resize_to_max_canvas": False,
        },
        "patch_size": PATCH,
        "pixel_shuffle_ratio": 0.5,
    }
    template = templates.chat(
        "'<|header_start|>' + message['role'] + '<|header_end|>\n\n'",
        "'<|eot|>'",
        "'<|header_start|>assistant<|header_end|>\n\n'",
        image="'<|image|>'",
        begin="bos_token",
    )
    return Checkpoint(config, tokenizer, processor, template)
