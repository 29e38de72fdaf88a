"""Small random vision-language models, built offline from a config, with tokenizer, processor and chat template.

`build(architecture, folder)` writes a checkpoint that `AutoModelForImageTextToText.from_pretrained(folder)` and
`AutoProcessor.from_pretrained(folder)` load like any other, without network and without torchvision. SmolVLM is left
out: its model is Idefics3's, but its processor needs the packages num2words and torchvision.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForImageTextToText,
    AyaVisionConfig,
    AyaVisionProcessor,
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    Cohere2Config,
    GenerationConfig,
    GotOcr2ImageProcessorPil,
    Idefics3Config,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    LightOnOcrProcessor,
    LlamaConfig,
    LlavaConfig,
    LlavaNextConfig,
    LlavaNextImageProcessorPil,
    LlavaNextProcessor,
    LlavaProcessor,
    Mistral3Config,
    MistralConfig,
    PaddleOCRVLProcessor,
    PixtralImageProcessorPil,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    Qwen2VLImageProcessorPil,
    Qwen3VLConfig,
    Qwen3VLMoeConfig,
)

ARCHITECTURES = ("llava", "llava_next", "qwen3_vl", "qwen3_vl_moe", "idefics3")
OTHER_PIXELS = ("mistral3", "aya_vision")
"""Images of one batch are padded to one size, and tiles of all images stand in one list."""

VOCABULARY = 640

# Answers are frequent and become single tokens (" A", " yes", " five"); rare words stay in several pieces.
CORPUS = """
How many fingers does the hand have? A. five B. six C. four D. seven. Final answer: A
How many legs does the dog have? A. four B. five C. three D. six. Final answer: B
How many stripes does the flag have? A. thirteen B. fourteen C. twelve D. eleven. Final answer: C
How many wings does the bird have? A. two B. three C. one D. four. Final answer: D
Is there a cat in the image? Answer with yes or no. Final answer: yes
Is there a dog in the picture? Answer with yes or no. Final answer: no
Is the banana in the image yellow? Answer yes or no. The answer is no
Does the animal in the picture have five legs? Answer yes or no. The answer is yes
What is the color of the strawberry? Is it red, green, blue or yellow? The color is blue
What color is the apple on the table? It is red. What color is the sky? It is green
Answer with a single letter (A, B, C, or D). Final answer: B
Answer with a single letter (A, B, C, or D). Final answer: D
Answer with one number: zero one two three four five six seven eight nine ten. The number is six
Count the objects in the image: 0 1 2 3 4 5 6 7 8 9 10. Answer: 3
Look at the image and count the rows of the chess board. There are eight rows and nine columns
Which of the two lines is longer, the upper line or the lower line? They have the same length
What is the animal in the image? A. cat B. dog C. bird D. horse. Answer: C
Describe the image in detail. The image shows a hand with six fingers on a wooden table
Describe the picture. The picture shows a white horse with five legs behind a wooden fence
Look at the picture and count the legs of the animal. There are five legs. Look again and count the fingers
Look at the two circles in the picture. Which circle is larger, the left circle or the right circle?
Are the two horizontal lines in the image parallel? Are the two circles the same size? Answer yes or no
How many points does the star on the logo have? A. five B. six C. seven D. eight. Answer with a single letter
How many stripes does the shoe have? Count the stripes of the logo and answer with one number
How many rows does the board have? How many columns does the board have? Answer with one number
How many strings does the guitar have? A. six B. five C. seven D. four. Final answer: D
Which country does the flag belong to? Look at the color of the stripes and the number of stars on the flag
Only look at the image. Do not use what you know about the world. Answer the question with what you see
The question is about the image. The usual number is four, but the image shows five
yes, there is a bird in the image
yes, the picture shows a banana
no, there is no bird in the image
no, the picture does not show a banana
A B C D A. B. C. D. (A) (B) (C) (D) yes no yes no
user assistant system USER: ASSISTANT: User: Assistant: You are a helpful assistant. Yes No Answer
"""

VICUNA_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- {'user': 'USER: ', 'assistant': 'ASSISTANT: ', 'system': ''}[message['role']] -}}"
    "{%- if message['content'] is string -%}{{- message['content'] -}}{%- else -%}"
    "{%- for item in message['content'] if item['type'] == 'image' -%}{{- '<image>\n' -}}{%- endfor -%}"
    "{%- for item in message['content'] if item['type'] == 'text' -%}{{- item['text'] -}}{%- endfor -%}"
    "{%- endif -%}{{- eos_token if message['role'] == 'assistant' else ' ' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"
)
QWEN_TEMPLATE = (
    "{%- for message in messages -%}{{- '<|im_start|>' + message['role'] + '\n' -}}"
    "{%- if message['content'] is string -%}{{- message['content'] -}}{%- else -%}"
    "{%- for item in message['content'] -%}{%- if item['type'] == 'image' -%}"
    "{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}"
    "{%- elif item['type'] == 'text' -%}{{- item['text'] -}}{%- endif -%}{%- endfor -%}"
    "{%- endif -%}{{- '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
MISTRAL_TEMPLATE = (
    "{{- bos_token -}}{%- for message in messages -%}{{- '[INST]' -}}"
    "{%- for item in message['content'] -%}{%- if item['type'] == 'image' -%}{{- '[IMG]' -}}"
    "{%- elif item['type'] == 'text' -%}{{- item['text'] -}}{%- endif -%}{%- endfor -%}"
    "{{- '[/INST]' -}}{%- endfor -%}"
)
IDEFICS_TEMPLATE = (
    "{{- bos_token -}}{%- for message in messages -%}{{- message['role'] | capitalize + ':' -}}"
    "{%- if message['content'] is string -%}{{- ' ' + message['content'] -}}{%- else -%}"
    "{%- if message['content'][0]['type'] == 'text' -%}{{- ' ' -}}{%- endif -%}"
    "{%- for item in message['content'] -%}{%- if item['type'] == 'image' -%}{{- '<image>' -}}"
    "{%- elif item['type'] == 'text' -%}{{- item['text'] -}}{%- endif -%}{%- endfor -%}"
    "{%- endif -%}{{- '<end_of_utterance>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}"
)


@dataclass(frozen=True)
class Shape:
    """Sizes of the text decoder and of the vision encoder."""

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    vision_hidden: int
    vision_layers: int
    vision_heads: int
    grid: int  # patches along the edge of a square tile; for Qwen, image tokens along the edge of the largest image


SHAPES = {
    # head_dim 32 is the smallest that vLLM's CPU attention takes.
    "tiny": Shape(64, 2, 4, 2, 32, 128, 32, 2, 2, 4),
    "deep": Shape(64, 4, 4, 2, 32, 128, 32, 2, 2, 4),
    "bench": Shape(512, 8, 8, 8, 64, 2048, 384, 6, 6, 16),
}


def build(architecture: str, folder: Path, *, seed: int = 0, size: str = "tiny") -> Path:
    """Write a random model of the architecture, with its processor, to the folder; a seed always gives the same one."""
    shape = SHAPES[size]
    if architecture in {"llava", "llava_next"}:
        config, processor = _llava(shape, tiled=architecture == "llava_next")
    elif architecture in {"qwen3_vl", "qwen3_vl_moe"}:
        config, processor = _qwen3_vl(shape, experts=architecture == "qwen3_vl_moe")
    elif architecture == "idefics3":
        config, processor = _idefics3(shape)
    elif architecture == "mistral3":
        config, processor = _mistral3(shape)
    elif architecture == "aya_vision":
        config, processor = _aya_vision(shape)
    else:
        raise ValueError(f"unknown architecture {architecture!r}; one of {', '.join(ARCHITECTURES + OTHER_PIXELS)}")

    with torch.random.fork_rng():  # the library's own initialisation must not move the caller's random state
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
    _initialise(model, seed)
    tokenizer = processor.tokenizer
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _initialise(model: torch.nn.Module, seed: int) -> None:
    """Draw every weight anew, at scales that keep activations of order one whatever the width.

    The usual 0.02 makes a small model's outputs almost uniform and blind to the image, which would hide errors from a
    test that compares scores.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("bias"):
                parameter.copy_(0.1 * noise)
            elif "norm" in name.lower() and parameter.ndim == 1:
                parameter.copy_(1 + 0.1 * noise)
            elif "embed_tokens" in name or "position_embedding" in name or "pos_embed" in name or parameter.ndim == 1:
                parameter.copy_(noise)
            else:
                # Experts are stacked (expert, out, in); convolutions are (out, in, …).
                fan_in = parameter.shape[-1] if parameter.ndim <= 3 else math.prod(parameter.shape[1:])
                gain = 2.0 if "lm_head" in name or "q_proj" in name else 1.2
                parameter.copy_(gain / math.sqrt(fan_in) * noise)


def _tokenizer(
    special: Sequence[str],
    *,
    image: str,
    eos: str,
    pad: str,
    bos: str | None = None,
    named: dict[str, str] | None = None,
) -> PreTrainedTokenizerFast:
    """Train a byte-level tokenizer on the corpus; the special tokens take the first ids."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=1,
        special_tokens=list(special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS.strip().splitlines(), trainer)
    if bos is not None:
        bos_id = backend.token_to_id(bos)
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, bos_id)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=bos,
        eos_token=eos,
        pad_token=pad,
        extra_special_tokens=[token for token in special if token not in {bos, eos, pad, image}],
        model_specific_special_tokens={"image_token": image, **(named or {})},
        padding_side="left",
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )


def _text_config(shape: Shape, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": 4096,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
    }


def _llava(shape: Shape, *, tiled: bool) -> tuple[PreTrainedConfig, ProcessorMixin]:
    tokenizer = _tokenizer(["<s>", "</s>", "<pad>", "<image>"], image="<image>", bos="<s>", eos="</s>", pad="<pad>")
    patch = 14
    edge = shape.grid * patch
    config: dict[str, Any] = {
        "text_config": LlamaConfig(**_text_config(shape, tokenizer)),
        "vision_config": CLIPVisionConfig(
            hidden_size=shape.vision_hidden,
            intermediate_size=4 * shape.vision_hidden,
            num_hidden_layers=shape.vision_layers,
            num_attention_heads=shape.vision_heads,
            projection_dim=shape.vision_hidden,
            image_size=edge,
            patch_size=patch,
        ),
        "image_token_index": tokenizer.convert_tokens_to_ids("<image>"),
        "image_seq_length": shape.grid**2,
        "tie_word_embeddings": False,
    }
    # CLIP's class token is counted here and taken off again by the feature selection "default".
    arguments: dict[str, Any] = {
        "tokenizer": tokenizer,
        "patch_size": patch,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
        "chat_template": VICUNA_TEMPLATE,
    }
    pixels = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
    if not tiled:
        return LlavaConfig(**config), LlavaProcessor(image_processor=CLIPImageProcessorPil(**pixels), **arguments)
    pinpoints = [[edge, 2 * edge], [2 * edge, edge], [2 * edge, 2 * edge], [edge, 3 * edge], [3 * edge, edge]]
    image_processor = LlavaNextImageProcessorPil(image_grid_pinpoints=pinpoints, **pixels)
    return (
        LlavaNextConfig(image_grid_pinpoints=pinpoints, **config),
        LlavaNextProcessor(image_processor=image_processor, **arguments),
    )


def _qwen3_vl(shape: Shape, *, experts: bool) -> tuple[PreTrainedConfig, ProcessorMixin]:
    vision_tokens = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *vision_tokens]
    tokenizer = _tokenizer(special, image="<|image_pad|>", eos="<|im_end|>", pad="<|endoftext|>")
    patch, merge = 16, 2
    text = _text_config(shape, tokenizer)
    sixth = shape.head_dim // 6  # half a head's frequencies, shared by time, height and width
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [shape.head_dim // 2 - 2 * sixth, sixth, sixth],
        "mrope_interleaved": True,
    }
    if experts:
        text |= {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": shape.intermediate // 2}
    start, end, image, video = tokenizer.convert_tokens_to_ids(vision_tokens)
    config = (Qwen3VLMoeConfig if experts else Qwen3VLConfig)(
        text_config=text,
        vision_config={
            "depth": shape.vision_layers,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_heads": shape.vision_heads,
            "patch_size": patch,
            "spatial_merge_size": merge,
            "out_hidden_size": shape.hidden,
            "num_position_embeddings": (shape.grid * merge) ** 2,
            "deepstack_visual_indexes": [0],
        },
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=False,
    )
    largest = (shape.grid * merge * patch) ** 2
    image_processor = Qwen2VLImageProcessorPil(
        size={"shortest_edge": largest // 2, "longest_edge": largest},
        patch_size=patch,
        merge_size=merge,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    # Qwen3VLProcessor insists on a video processor, which transformers cannot load without torchvision. This processor
    # treats images in the same way (same placeholder expansion, same keys) and knows no videos.
    return config, PaddleOCRVLProcessor(image_processor, tokenizer, chat_template=QWEN_TEMPLATE)


def _idefics3(shape: Shape) -> tuple[PreTrainedConfig, ProcessorMixin]:
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<end_of_utterance>", "<pad>", "<image>"]
    special += ["<fake_token_around_image>", "<global-img>", *tiles]
    tokenizer = _tokenizer(special, image="<image>", bos="<|begin_of_text|>", eos="<end_of_utterance>", pad="<pad>")
    patch, scale = 14, 2
    edge = shape.grid * patch
    config = Idefics3Config(
        text_config=LlamaConfig(**_text_config(shape, tokenizer)),
        vision_config={
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
            "image_size": edge,
            "patch_size": patch,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=scale,
        tie_word_embeddings=False,
    )
    # Images are enlarged to two tiles along the longer side, so the aspect ratio decides the number of image tokens.
    image_processor = Idefics3ImageProcessorPil(size={"longest_edge": 2 * edge}, max_image_size={"longest_edge": edge})
    sequence = (shape.grid // scale) ** 2
    return config, Idefics3Processor(image_processor, tokenizer, image_seq_len=sequence, chat_template=IDEFICS_TEMPLATE)


def _mistral3(shape: Shape) -> tuple[PreTrainedConfig, ProcessorMixin]:
    broken, ended = "[IMG_BREAK]", "[IMG_END]"
    tokenizer = _tokenizer(
        ["<s>", "</s>", "<pad>", "[INST]", "[/INST]", "[IMG]", broken, ended],
        image="[IMG]",
        bos="<s>",
        eos="</s>",
        pad="<pad>",
        named={"image_break_token": broken, "image_end_token": ended},
    )
    patch, merge = 14, 2
    edge = shape.grid * patch * merge
    config = Mistral3Config(
        text_config=MistralConfig(**_text_config(shape, tokenizer) | {"sliding_window": None}),
        vision_config={
            "model_type": "pixtral",
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
            "image_size": edge,
            "patch_size": patch,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        spatial_merge_size=merge,
        tie_word_embeddings=False,
    )
    # PixtralProcessor wants torchvision; this one treats images in the same way, but does not mark their lines.
    cell = {"height": patch * merge, "width": patch * merge}
    image_processor = PixtralImageProcessorPil(size={"longest_edge": edge}, patch_size=cell)
    processor = LightOnOcrProcessor(
        image_processor, tokenizer, patch_size=patch, spatial_merge_size=merge, chat_template=MISTRAL_TEMPLATE
    )
    return config, processor


def _aya_vision(shape: Shape) -> tuple[PreTrainedConfig, ProcessorMixin]:
    tiles = ["<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>", "TILE", "TILE_GLOBAL"]
    special = ["<s>", "</s>", "<pad>", "<image>", *tiles]
    tokenizer = _tokenizer(special, image="<image>", bos="<s>", eos="</s>", pad="<pad>")
    patch, shrink = 14, 2
    edge = shape.grid * patch
    config = AyaVisionConfig(
        text_config=Cohere2Config(**_text_config(shape, tokenizer)),
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": shape.vision_hidden,
            "intermediate_size": 4 * shape.vision_hidden,
            "num_hidden_layers": shape.vision_layers,
            "num_attention_heads": shape.vision_heads,
            "image_size": edge,
            "patch_size": patch,
            "vision_use_head": False,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("<|IMG_PATCH|>"),
        downsample_factor=shrink,
        tie_word_embeddings=False,
    )
    image_processor = GotOcr2ImageProcessorPil(
        size={"height": edge, "width": edge}, crop_to_patches=True, min_patches=1, max_patches=4
    )
    processor = AyaVisionProcessor(
        image_processor,
        tokenizer,
        patch_size=patch,
        img_size=edge,
        downsample_factor=shrink,
        chat_template=VICUNA_TEMPLATE,
    )
    return config, processor
