"""Loading a transformers model with exactly the settings asked for, and telling one model from another."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import PIL
import pydantic
import torch
import transformers

from unprior.errors import UnpriorError, did_you_mean

_WITHOUT_VIDEO = {"qwen3_vl": "Qwen3VLProcessor", "qwen2_5_vl": "Qwen2_5_VLProcessor", "qwen2_vl": "Qwen2VLProcessor"}
_DTYPES = ("auto", "float32", "bfloat16", "float16")
_READ_WHOLE, _SAMPLE = 1 << 26, 1 << 12


@dataclass(frozen=True)
class LoadedModel:
    """A model, its processor, and everything that may change its results."""

    model: Any
    processor: Any
    identity: dict[str, str]


def load_model(
    name: str,
    revision: str | None,
    dtype: str,
    device: str | None,
    device_map: str | None,
    attention: str | None,
) -> LoadedModel:
    """Load a model for inference; what goes wrong is said with the model's name and a remedy."""
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
    with explaining(name, hint), _quiet():
        processor = load_processor(name, revision)
        model = transformers.AutoModelForImageTextToText.from_pretrained(name, revision=revision, **options)
        if device_map is None:
            model = model.to(device or _default_device())
    if getattr(processor, "tokenizer", None) is None:
        raise UnpriorError(f"model {name} has no image processor beside its tokenizer; it does not take images")
    model.eval()
    return LoadedModel(model, processor, describe(name, revision, model.config, str(model.dtype), processor))


def load_processor(name: str, revision: str | None) -> Any:
    """The model's own processor; where only its video part needs torchvision, the same without that part.

    Processors of the Qwen-VL family cannot be loaded without torchvision, although images do not need it.
    """
    try:
        return transformers.AutoProcessor.from_pretrained(name, revision=revision)
    except ImportError as error:
        if "torchvision" not in str(error).lower():
            raise
    kind = transformers.AutoConfig.from_pretrained(name, revision=revision).model_type
    found = next((known for known in _WITHOUT_VIDEO if kind.startswith(known)), None)
    if found is None:
        raise ImportError(f"the processor of {kind} needs torchvision (pip install torchvision)")
    from transformers import processing_utils
    from transformers.video_processing_utils import VideoProcessorMixin

    # Processors check their parts against this name, which the library leaves out without torchvision.
    processing_utils.transformers_module.VideoProcessorMixin = VideoProcessorMixin
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
    template = tokenizer.chat_template or _stored_template(name, revision)
    return getattr(transformers, _WITHOUT_VIDEO[found])(
        transformers.AutoImageProcessor.from_pretrained(name, revision=revision),
        tokenizer,
        VideoProcessorMixin(),
        chat_template=template,
    )


def _stored_template(name: str, revision: str | None) -> str | None:
    """The chat template beside a processor, for tokenizers that do not carry it."""
    path = transformers.utils.cached_file(
        name, "chat_template.jinja", revision=revision, _raise_exceptions_for_missing_entries=False
    )
    return None if path is None else Path(path).read_text(encoding="utf-8")


def stores_single_precision(name: str, revision: str | None) -> bool:
    """Whether a model is stored in float32, as far as its configuration tells."""
    config = transformers.AutoConfig.from_pretrained(name, revision=revision)
    return bool((config.dtype or config.get_text_config().dtype) == torch.float32)


def _default_device() -> str:
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if accelerator is None else accelerator.type


@contextmanager
def explaining(name: str, hint: str) -> Iterator[None]:
    """Say what goes wrong while a model is loaded with its name and a remedy."""
    try:
        yield
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        told = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else str(error)
        raise UnpriorError(f"model {name} cannot be loaded: {told.strip().split(chr(10))[0]} ({hint})") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence notes about image backends and tied weights that no user of ours can act on."""
    logger = logging.getLogger("transformers")
    before, bars = logger.level, transformers.utils.logging.is_progress_bar_enabled()
    logger.setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        logger.setLevel(before)
        if bars:
            transformers.utils.logging.enable_progress_bar()


def describe(name: str, revision: str | None, config: Any, dtype: str, processor: Any) -> dict[str, str]:
    """Everything that may change the results of a model."""
    from unprior import __version__

    folder = Path(name)
    weights = _folder_digest(folder) if folder.is_dir() else str(getattr(config, "_commit_hash", None) or revision)
    return {
        "model": name if not folder.is_dir() else folder.name,
        "weights": weights,
        "dtype": dtype,
        "attention": str(getattr(config, "_attn_implementation", None)),
        "preprocessing": hashlib.sha256(processor.to_json_string().encode()).hexdigest(),
        "chat_template": hashlib.sha256(str(processor.chat_template).encode()).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "pillow": PIL.__version__,
        "unprior": __version__,
    }


def _folder_digest(folder: Path) -> str:
    """Tell one folder of weights from another without reading all of it.

    Small files count whole. Of safetensors files the header counts and a part of every tensor, so that a fine-tuned
    copy differs whichever of its tensors were trained.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}\n".encode())
        with path.open("rb") as stream:
            if size <= _READ_WHOLE:
                digest.update(stream.read())
                continue
            for start in _sampled(stream, size, path.suffix == ".safetensors"):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()


def _sampled(stream: BinaryIO, size: int, is_safetensors: bool) -> list[int]:
    """Places to look at: the beginning, middle and end of every tensor, or of evenly spaced parts of the file."""
    if not is_safetensors:
        return [part * (size - _SAMPLE) // 1023 for part in range(1024)]
    length = int.from_bytes(stream.read(8), "little")
    header = json.loads(stream.read(length))
    places = list(range(0, 8 + length, _SAMPLE))
    for name, tensor in header.items():
        if name != "__metadata__":
            first, last = (8 + length + offset for offset in tensor["data_offsets"])
            places += [first, (first + last) // 2, max(first, last - _SAMPLE)]
    return places
