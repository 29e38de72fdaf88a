"""Loading a transformers model with exactly the settings asked for, and telling one model from another."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL
import torch
import transformers
from transformers import dynamic_module_utils

from unprior._files import parse_json
from unprior.engines.transformers.digests import folder_digest
from unprior.engines.transformers.load_errors import explaining, listed
from unprior.engines.transformers.source import Source
from unprior.errors import UnpriorError, did_you_mean

_WITHOUT_VIDEO = {"qwen3_vl": "Qwen3VLProcessor", "qwen2_5_vl": "Qwen2_5_VLProcessor", "qwen2_vl": "Qwen2VLProcessor"}
_DTYPES = ("auto", "float32", "bfloat16", "float16")
_CODE_IS_NAMED_IN = (
    "config.json",
    "tokenizer_config.json",
    "processor_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
)


@dataclass(frozen=True)
class LoadedModel:
    """A model, its processor, and everything that may change its results."""

    model: Any
    processor: Any
    identity: dict[str, str]
    unused: tuple[str, ...]
    """Stored tensors that the model has no place for."""


def load_model(
    source: Source, dtype: str, device: str | None, device_map: str | None, attention: str | None
) -> LoadedModel:
    """Load a model for inference; what goes wrong is said with the model's name and a remedy."""
    name = source.name
    if dtype not in _DTYPES:
        raise UnpriorError(f"dtype is {dtype!r}{did_you_mean(dtype, _DTYPES)}, choose one of {', '.join(_DTYPES)}")
    if device is not None and device_map is not None:
        raise UnpriorError("give either device or device_map, not both")
    options: dict[str, Any] = {"dtype": dtype if dtype == "auto" else getattr(torch, dtype)}
    if attention is not None:
        options["attn_implementation"] = attention
    if device_map is not None:
        options["device_map"] = device_map
    hint = "check the folder or hub id, and that it is an image-text-to-text model; offline, give a local folder"
    with explaining(name, hint), quiet():
        processor = load_processor(source)
        # Tensors of another shape are let through, so that all of them can be named.
        model, info = transformers.AutoModelForImageTextToText.from_pretrained(
            name, **source.options, **options, output_loading_info=True, ignore_mismatched_sizes=True
        )
        check_weights(name, info)
        if device_map is None:
            model = model.to(device or _default_device())
        model.eval()
        identity = describe(source, model.config, str(model.dtype), processor)
    if getattr(processor, "tokenizer", None) is None:
        raise UnpriorError(f"model {name} has no image processor beside its tokenizer; it does not take images")
    return LoadedModel(model, processor, identity, tuple(sorted(info["unexpected_keys"])))


def check_weights(name: str, info: dict[str, Any]) -> None:
    """Refuse a model with weights that are not in its files: the library would draw them at random.

    Tied weights, and what a model computes by itself, are not among the missing ones.
    """
    missing = sorted(info["missing_keys"])
    shapes = sorted(
        f"{key} (stored {_shape(stored)}, expected {_shape(expected)})"
        for key, stored, expected in info["mismatched_keys"]
    )
    problems = []
    if missing:
        problems.append(f"its files lack {_count(missing, 'tensor')}: {listed(missing)}")
    if shapes:
        problems.append(f"{_count(shapes, 'tensor')} of another shape than config.json says: {listed(shapes)}")
    if problems:
        raise UnpriorError(
            f"model {name}: {'; '.join(problems)}. Such weights would be random. Download the model again, and check "
            f"that config.json belongs to these weights and names the architecture they were saved from"
        )


def _count(items: list[str], noun: str) -> str:
    return f"{len(items):,} {noun}{'s' * (len(items) != 1)}"


def _shape(sizes: Any) -> str:
    return "×".join(map(str, sizes))


def load_processor(source: Source) -> Any:
    """The model's own processor; where only its video part needs torchvision, the same without that part.

    Processors of the Qwen-VL family cannot be loaded without torchvision, although images do not need it.
    """
    name, options = source.name, source.options
    if source.trust_remote_code:
        _refuse_code_from_elsewhere(source)
    try:
        return transformers.AutoProcessor.from_pretrained(name, **options)
    except ImportError as error:
        if "torchvision" not in str(error).lower():
            raise
    kind = transformers.AutoConfig.from_pretrained(name, **options).model_type
    found = next((known for known in _WITHOUT_VIDEO if kind.startswith(known)), None)
    if found is None:
        raise ImportError(f"the processor of {kind} needs torchvision (pip install torchvision)")
    from transformers import processing_utils
    from transformers.video_processing_utils import VideoProcessorMixin

    # Processors check their parts against this name, which the library leaves out without torchvision.
    processing_utils.transformers_module.VideoProcessorMixin = VideoProcessorMixin
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
    stored = source.file("chat_template.jinja")  # some tokenizers do not carry the template
    template = tokenizer.chat_template or (None if stored is None else stored.read_text(encoding="utf-8"))
    return getattr(transformers, _WITHOUT_VIDEO[found])(
        transformers.AutoImageProcessor.from_pretrained(name, **options),
        tokenizer,
        VideoProcessorMixin(),
        chat_template=template,
    )


def _refuse_code_from_elsewhere(source: Source) -> None:
    """A model may name code of another repository (``owner/name--module.Class``), which no revision of ours pins."""
    for name in _CODE_IS_NAMED_IN:
        path = source.file(name)
        for reference in () if path is None else _code_references(parse_json(path.read_bytes())):
            repository, separator, _ = reference.partition("--")
            if separator and repository != source.name:
                raise UnpriorError(
                    f"model {source.name}: {name} names code of another repository, {repository}, whose state "
                    f"--revision does not fix; copy that code into a local folder of the model, and name it there"
                )


def _code_references(content: Any, *, named: bool = False) -> Iterator[str]:
    """Every text below a key ``auto_map``, however deep."""
    if isinstance(content, str) and named:
        yield content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from _code_references(value, named=named or key == "auto_map")
    elif isinstance(content, list):
        for value in content:
            yield from _code_references(value, named=named)


def stores_single_precision(source: Source) -> bool:
    """Whether a model is stored in float32, as far as its configuration tells."""
    config = transformers.AutoConfig.from_pretrained(source.name, **source.options)
    return bool((config.dtype or config.get_text_config().dtype) == torch.float32)


def _default_device() -> str:
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if accelerator is None else accelerator.type


@contextmanager
def quiet() -> Iterator[None]:
    """Silence notes about image backends and tied weights that no user of ours can act on, and ask nothing.

    Some paths through the library forget that they were told not to run code of the model, and would ask on standard
    input.
    """
    logger = logging.getLogger("transformers")
    before, bars = logger.level, transformers.utils.logging.is_progress_bar_enabled()
    patience = dynamic_module_utils.TIME_OUT_REMOTE_CODE
    logger.setLevel(logging.ERROR)
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        logger.setLevel(before)
        dynamic_module_utils.TIME_OUT_REMOTE_CODE = patience
        if bars:
            transformers.utils.logging.enable_progress_bar()


def describe(source: Source, config: Any, dtype: str, processor: Any) -> dict[str, str]:
    """Everything that may change the results of a model, but for the prompts, which its encoder knows."""
    from unprior._version import __version__

    folder = Path(source.name)
    weights = folder_digest(folder) if source.is_folder else getattr(config, "_commit_hash", None) or source.revision
    return {
        "engine": "transformers",
        "model": folder.name if source.is_folder else source.name,
        "weights": str(weights),
        "dtype": dtype,
        "attention": str(getattr(config, "_attn_implementation", None)),
        "preprocessing": hashlib.sha256(processor.to_json_string().encode()).hexdigest(),
        "chat_template": hashlib.sha256(str(processor.chat_template).encode()).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "pillow": PIL.__version__,
        "unprior": __version__,
        **({"remote_code": "trusted"} if source.trust_remote_code else {}),
    }
