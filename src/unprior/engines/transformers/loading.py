"""Loading a transformers model with exactly the settings asked for, and telling one model from another."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import PIL
import torch
import transformers
from transformers import dynamic_module_utils

from unprior._files import parse_json
from unprior.engines.transformers.digests import folder_digest
from unprior.engines.transformers.load_errors import explaining
from unprior.engines.transformers.source import Source, check_choices
from unprior.errors import UnpriorError, format_names, format_option
from unprior.tables.format import format_count

_LEFT_OVER = re.compile(r"(^|\.)(inv_freq|position_ids|masked_bias)$")
"""Buffers that older versions of the library stored, and newer ones compute."""
_IN_A_LIST = re.compile(r"(.+?)\.(\d+)\.")
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
    source: Source,
    dtype: str,
    device: str | None,
    device_map: str | None,
    attention: str | None,
    backend: str = "auto",
) -> LoadedModel:
    """Load a model for inference; what goes wrong is said with the model's name and a remedy."""
    name = source.name
    check_choices(dtype, backend)
    if device is not None:
        _check_device(device)
    if device is not None and device_map is not None:
        raise UnpriorError("give either device or device_map, not both")
    options: dict[str, Any] = {"dtype": dtype if dtype == "auto" else getattr(torch, dtype)}
    if attention is not None:
        options["attn_implementation"] = attention
    if device_map is not None:
        options["device_map"] = device_map
    chosen = {"device": device, "device_map": device_map, "attention": attention}
    given = "".join(f"{format_option(key, value)}, " for key, value in chosen.items() if value is not None)
    hint = (
        f"check {given}the folder or hub id, and that it is an image-text-to-text model; offline, give a local folder"
    )
    with explaining(name, hint), quiet():
        _read_generation_config(Path(name) / "generation_config.json")
        processor = load_processor(source, backend)
        # Tensors of another shape are let through, so that all of them can be named.
        model, info = transformers.AutoModelForImageTextToText.from_pretrained(
            name, **source.options, **options, output_loading_info=True, ignore_mismatched_sizes=True
        )
        check_weights(name, info)
        unused = unused_weights(model, info)
        if device_map is None:
            model = model.to(device or _default_device())
        model.eval()
        identity = describe(source, model.config, str(model.dtype), processor)
    if getattr(processor, "tokenizer", None) is None:
        raise UnpriorError(f"model {name} has no image processor beside its tokenizer; it does not take images")
    return LoadedModel(model, processor, identity, unused)


def _check_device(device: str) -> None:
    try:
        usable = torch.device(device).type != "meta"  # which holds no numbers
    except RuntimeError:
        usable = False
    if not usable:
        raise UnpriorError(f"{format_option('device', device)}: no such device; give cpu, cuda, cuda:1 or the like")


def _read_generation_config(path: Path) -> None:
    """Raise an error for a broken file: the library goes on without it, and may not know where answers end."""
    if path.is_file() and not isinstance(parse_json(path.read_bytes()), dict):
        raise ValueError(f"{path.name} holds no object")


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
        problems.append(f"its files lack {format_count(len(missing), 'tensor')}: {format_names(missing)}")
    if shapes:
        problems.append(
            f"{format_count(len(shapes), 'tensor')} of another shape than config.json says: {format_names(shapes)}"
        )
    if problems:
        raise UnpriorError(
            f"model {name}: {'; '.join(problems)}. Such weights would be random. Download the model again, and check "
            f"that config.json belongs to these weights and names the architecture they were saved from"
        )


def unused_weights(model: Any, info: dict[str, Any]) -> tuple[str, ...]:
    """Stored tensors that a model has no place for, without what is known to be left over.

    Layers beyond the configured number are refused: without them it is another model.
    """
    tied = bool(getattr(model.config.get_text_config(), "tie_word_embeddings", False))
    unused = sorted(
        key
        for key in info["unexpected_keys"]
        if not _LEFT_OVER.search(key) and not (tied and key.endswith("lm_head.weight"))
    )
    counts = {name: len(part) for name, part in model.named_modules() if isinstance(part, torch.nn.ModuleList)}
    for key in unused:
        for found in _IN_A_LIST.finditer(key):
            count = counts.get(key[: found.end(1)])
            if count is not None and int(found[2]) >= count:
                raise UnpriorError(
                    f"its files have more layers than config.json says ({format_count(count, 'layer')} in "
                    f"{key[: found.end(1)]}, and {key} is stored); restore the config.json of these weights"
                )
    return tuple(unused)


def _shape(sizes: Any) -> str:
    return "×".join(map(str, sizes))


def load_processor(source: Source, backend: str = "auto") -> Any:
    """The model's own processor; without torchvision, the same without the part for videos.

    ``backend``: what prepares images; ``auto`` is torchvision where it is installed, and else PIL.
    """
    if source.trust_remote_code:
        _refuse_code_from_elsewhere(source)
    chosen = {} if backend == "auto" else {"backend": backend}
    installed = find_spec("torchvision") is not None
    with nullcontext() if installed and backend != "pil" else _without_videos(source):
        try:
            processor = transformers.AutoProcessor.from_pretrained(source.name, **source.options, **chosen)
        except (ImportError, ValueError, AttributeError) as error:
            if not any(word in str(error) for word in ("orchvision", "VideoProcessorMixin")):
                raise
            if installed and backend == "auto":
                raise
            processor = None
    if processor is None or (backend != "auto" and image_backend(processor) != backend):
        remedy = f"leave {format_option('image_backend', backend)} out" if installed else ""
        raise UnpriorError(
            f"model {source.name}: its image processor needs torchvision: "
            + (remedy or "pip install 'unprior[torchvision]'")
        )
    return processor


@contextmanager
def _without_videos(source: Source) -> Iterator[None]:
    """Let a stand-in take the place of a video processor, which needs torchvision although images do not."""
    from transformers import processing_utils
    from transformers.models.auto.video_processing_auto import AutoVideoProcessor
    from transformers.video_processing_utils import VideoProcessorMixin

    def stand_in(*_arguments: Any, **_options: Any) -> Any:
        part = VideoProcessorMixin()
        for name, value in _stored_video_settings(source).items():  # some processors look at them
            setattr(part, name, value)
        return part

    # Processors check their parts against this name, which the library leaves out without torchvision.
    processing_utils.transformers_module.VideoProcessorMixin = VideoProcessorMixin
    own = vars(AutoVideoProcessor)["from_pretrained"]
    AutoVideoProcessor.from_pretrained = stand_in
    try:
        yield
    finally:
        AutoVideoProcessor.from_pretrained = own


def _stored_video_settings(source: Source) -> dict[str, Any]:
    for name, key in (("video_preprocessor_config.json", None), ("processor_config.json", "video_processor")):
        path = source.file(name)
        content = None if path is None else parse_json(path.read_bytes())
        found = content.get(key) if key and isinstance(content, dict) else content
        if isinstance(found, dict):
            return found
    return {}


def image_backend(processor: Any) -> str:
    """What prepares images: their pixels differ a little, and the processor's settings do not say which it is."""
    names = {kind.__name__ for kind in type(processor.image_processor).__mro__}
    return "torchvision" if "TorchvisionBackend" in names else "pil"


def _refuse_code_from_elsewhere(source: Source) -> None:
    """A model may name code of another repository (``owner/name--module.Class``), which no revision of ours pins."""
    for name in _CODE_IS_NAMED_IN:
        path = source.file(name)
        for reference in () if path is None else _code_references(parse_json(path.read_bytes())):
            repository, separator, _ = reference.partition("--")
            if separator and repository != source.name:
                raise UnpriorError(
                    f"model {source.name}: {name} names code of another repository, {repository}, whose state no "
                    f"revision of the model fixes; copy that code into a local folder of the model, and name it there"
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
        "image_backend": image_backend(processor),
        "preprocessing": hashlib.sha256(processor.to_json_string().encode()).hexdigest(),
        "chat_template": hashlib.sha256(str(processor.chat_template).encode()).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "pillow": PIL.__version__,
        "unprior": __version__,
        **({"remote_code": "trusted"} if source.trust_remote_code else {}),
    }
