"""Noise in the pixels that a model reads: each image by itself, so that no batch changes it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unprior.baselines.method import Tensor, View
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError

_SAME_PLACE = 1e-2
"""Libraries may round the pixels of an image a little differently in a batch; another image differs by far more."""


class InseparableError(UnpriorError):
    """The pixels of a batch cannot be told apart by image; the images must be read one at a time."""


def with_noise(
    engine: TransformersEngine,
    view: View,
    names: Sequence[str],
    batch: dict[str, Any],
    alone: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Model inputs of a batch with the noise that each of its images has alone.

    Parameters
    ----------
    names
        Of the examples; together with the view's seed they decide the noise.
    batch, alone
        Model inputs of all examples together, and of each.
    """
    kinds = [name for name, value in batch.items() if "pixel_values" in name and value.is_floating_point()]
    if not kinds:
        raise UnpriorError(f"{engine.model_type} has no pixel values that noise could be added to")
    generators = [_generator(view.seed, name) for name in names]
    changed = dict(batch)
    for kind in kinds:
        clear = [inputs[kind] for inputs in alone]
        noisy = [_noisy(engine, view, inputs, kind, each) for inputs, each in zip(alone, generators, strict=True)]
        changed[kind] = noisy[0] if len(noisy) == 1 else placed(batch[kind], clear, noisy)
    return changed


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _noisy(
    engine: TransformersEngine, view: View, inputs: dict[str, Any], kind: str, generator: np.random.Generator
) -> Tensor:
    """One image's pixels with noise."""
    assert view.noise is not None
    pixels = inputs[kind]
    centre, spread = _normalisation(engine.encoder.processor.image_processor)
    frames = still_frames(engine, inputs, pixels)
    first = (frames[0].double().numpy() - centre) / spread
    values = torch.from_numpy(view.noise(first, generator) * spread + centre).to(pixels.dtype)
    if values.ndim >= 5:  # (image, tile, channel, row, column)
        # Tiles that are zero throughout only fill up the input, and some models know them by that.
        filled = frames[0].flatten(-3).any(dim=-1)[..., None, None, None]
        values = torch.where(filled, values, frames[0])
    if kind == "pixel_values" and "image_position_ids" in inputs:  # patches without a place are padding
        unplaced = (inputs["image_position_ids"] < 0).all(dim=-1)[..., None]
        values = torch.where(unplaced, frames[0], values)
    result = pixels.clone()
    still_frames(engine, inputs, result).copy_(values.expand_as(frames))
    return result


def still_frames(engine: TransformersEngine, inputs: dict[str, Any], pixels: Tensor) -> Tensor:
    """Pixels of shape (copies, …); writing to them changes the input.

    Some models fill several frames of a patch with one still image; those copies must stay alike.
    """
    vision = getattr(engine.model.config, "vision_config", None)
    count, side = (getattr(vision, name, None) for name in ("temporal_patch_size", "patch_size"))
    if "image_grid_thw" in inputs and count is not None and count > 1:
        # Patches of the image in one list, each of (channels, frames, side, side).
        frames = pixels.view(len(pixels), -1, count, side, side).movedim(2, 0)
        if all(torch.equal(frame, frames[0]) for frame in frames):
            return frames
    return pixels[None]


def _normalisation(image_processor: Any) -> tuple[float, float]:
    """Centre and spread of the pixels where the model, not its image processor, brings them to −1 … 1."""
    if getattr(image_processor, "do_normalize", True):
        return 0.0, 1.0
    return (0.5, 0.5) if getattr(image_processor, "do_rescale", True) else (127.5, 127.5)


def placed(batch: Tensor, clear: Sequence[Tensor], noisy: Sequence[Tensor]) -> Tensor:
    """A batch's pixels with those of every image replaced by its noisy ones; padding stays as it is.

    Images have a row each, padded at the end, or stand behind each other as tiles or patches. That the clear image is
    found in its place is checked.
    """
    result, start = batch.clone(), 0
    if batch.ndim != clear[0].ndim or len(batch) != sum(len(image) for image in clear):
        raise InseparableError("the pixel values of a batch cannot be told apart by image")
    for image, changed in zip(clear, noisy, strict=True):
        place = (slice(start, start + len(image)), *(slice(size) for size in image.shape[1:]))
        found = batch[place]
        if found.shape != image.shape or not torch.allclose(found.float(), image.float(), rtol=0, atol=_SAME_PLACE):
            raise InseparableError("the pixel values of a batch are not those of its images one by one")
        result[place] = changed
        start += len(image)
    return result
