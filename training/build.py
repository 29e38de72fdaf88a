"""Tokenizer, processor and an untrained model of the LLaVA architecture."""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    GenerationConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from questions import CAPTION_REQUEST, LETTERS, all_texts
from recipe import Recipe
from unprior.prompts import PromptLayout

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- {'user': 'USER: ', 'assistant': 'ASSISTANT:', 'system': ''}[message['role']] -}}"
    "{%- if message['content'] is string -%}{{- message['content'] -}}{%- else -%}"
    "{%- for item in message['content'] if item['type'] == 'image' -%}{{- '<image>\n' -}}{%- endfor -%}"
    "{%- for item in message['content'] if item['type'] == 'text' -%}{{- item['text'] -}}{%- endfor -%}"
    "{%- endif -%}{{- eos_token if message['role'] == 'assistant' else '\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"
)
ANSWERS = (*(f" {letter}" for letter in LETTERS), " yes", " no")


def build_tokenizer(recipe: Recipe) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer: it reads any text, and every answer is one token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary,
        special_tokens=["<s>", "</s>", "<pad>", "<image>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    layout = PromptLayout()
    frame = [
        "USER:",
        "ASSISTANT:",
        "Note:",
        CAPTION_REQUEST,
        layout.yes_no_instruction,
        layout.open_instruction,
        *ANSWERS,
    ]
    backend.train_from_iterator(all_texts() + frame * 1000, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", backend.token_to_id("<s>"))]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        model_specific_special_tokens={"image_token": "<image>"},
        padding_side="left",
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )
    for answer in ANSWERS:
        if len(tokenizer.encode(answer, add_special_tokens=False)) != 1:
            raise RuntimeError(f"the answer {answer!r} is not a single token; enlarge the vocabulary")
    return tokenizer


def build_processor(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlavaProcessor:
    """The ordinary LLaVA processor; the class token counts as an image token."""
    size = {"height": recipe.image_size, "width": recipe.image_size}
    image_processor = CLIPImageProcessorPil(
        size=size, do_center_crop=False, image_mean=[0.5] * 3, image_std=[0.25] * 3, resample=3
    )
    return LlavaProcessor(
        image_processor=image_processor,
        tokenizer=tokenizer,
        patch_size=recipe.patch_size,
        vision_feature_select_strategy="full",
        num_additional_image_tokens=1,
        chat_template=CHAT_TEMPLATE,
    )


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, seed: int) -> LlavaForConditionalGeneration:
    """An untrained model; the seed decides its weights."""
    torch.manual_seed(seed)
    special = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=recipe.width,
            intermediate_size=recipe.vision_mlp,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            projection_dim=recipe.width,
            image_size=recipe.image_size,
            patch_size=recipe.patch_size,
            initializer_range=0.05,
        ),
        text_config=LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=recipe.width,
            intermediate_size=recipe.decoder_mlp,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            head_dim=recipe.width // recipe.heads,  # 32, the least that vLLM's attention on a CPU takes
            max_position_embeddings=1024,
            initializer_range=0.08,  # with 0.02 a model of this size never learns to choose an option
            tie_word_embeddings=True,
            **special,
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=(recipe.image_size // recipe.patch_size) ** 2 + 1,
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config).float()
    model.generation_config = GenerationConfig(do_sample=False, **special)
    return model


def export(
    model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, recipe: Recipe, folder: Path
) -> None:
    """Save as any LLaVA checkpoint is laid out: half precision on disk, to be run in single precision."""
    copy = LlavaForConditionalGeneration(model.config)
    copy.load_state_dict(model.state_dict())
    copy.generation_config = model.generation_config
    copy.half().save_pretrained(folder)
    build_processor(recipe, tokenizer).save_pretrained(folder)
    # Names as in published LLaVA checkpoints, which other engines insist on and transformers reads as well.
    weights = {
        re.sub(r"^vision_tower\.(?!vision_model)", "vision_tower.vision_model.", name): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
