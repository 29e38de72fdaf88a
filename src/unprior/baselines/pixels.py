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
    if not _kinds(batch):
        raise UnpriorError(f"{engine.model_type} has no pixel values that noise could be added to")
    noisy = [_noisy_pixels(engine, view, name, inputs) for name, inputs in zip(names, alone, strict=True)]
    if len(alone) == 1:
        return {**batch, **noisy[0]}
    changed = dict(batch)
    for kind in _kinds(batch):  # not every image has every kind: some are too small for tiles beside the whole
        own = [(inputs[kind], pixels[kind]) for inputs, pixels in zip(alone, noisy, strict=True) if kind in pixels]
        changed[kind] = placed(batch[kind], [clear for clear, _ in own], [pixels for _, pixels in own])
    return changed


def _kinds(inputs: dict[str, Any]) -> list[str]:
    return [
        name
        for name, value in inputs.items()
        if "pixel_values" in name and isinstance(value, torch.Tensor) and value.is_floating_point()
    ]


def _noisy_pixels(engine: TransformersEngine, view: View, name: str, inputs: dict[str, Any]) -> dict[str, Tensor]:
    """All pixels of one image with noise, by the name of the input."""
    generator = _generator(view.seed, name)
    return {kind: _noisy(engine, view, inputs, kind, generator) for kind in _kinds(inputs)}


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
    values = torch.where(_is_filling(inputs, kind, frames[0]), frames[0], values)
    result = pixels.clone()
    still_frames(engine, inputs, result).copy_(values.expand_as(frames))
    return result


def _is_filling(inputs: dict[str, Any], kind: str, pixels: Tensor) -> Tensor:
    """Where pixels only fill up the input; some models know such places by their zeros."""
    filling = torch.zeros((), dtype=torch.bool)
    if pixels.ndim >= 5:  # (image, tile, channel, row, column): tiles that are zero throughout
        filling = filling | ~pixels.flatten(-3).any(dim=-1)[..., None, None, None]
    if kind == "pixel_values" and "image_position_ids" in inputs:  # patches without a place
        filling = filling | (inputs["image_position_ids"] < 0).all(dim=-1)[..., None]
    mask = inputs.get("pixel_attention_mask")
    if kind == "pixel_values" and mask is not None:
        for axis in (-1, -3):  # (…, patch, values), or (…, channel, row, column)
            if pixels.select(axis, 0).shape == mask.shape:
                filling = filling | (mask == 0).unsqueeze(axis)
    return filling


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

    Images have a row each, padded at the end, or stand behind each other, as tiles, patches or strips. That the clear
    image is found in its place is checked.
    """
    for axis in range(batch.ndim):
        if {image.ndim for image in clear} == {batch.ndim} and batch.shape[axis] == sum(i.shape[axis] for i in clear):
            result = _placed_along(axis, batch, clear, noisy)
            if result is not None:
                return result
    raise InseparableError("the pixel values of a batch cannot be told apart by image")


def _placed_along(axis: int, batch: Tensor, clear: Sequence[Tensor], noisy: Sequence[Tensor]) -> Tensor | None:
    """The same for images that stand behind each other along one axis; None where they do not."""
    result, start = batch.clone(), 0
    for image, changed in zip(clear, noisy, strict=True):
        place = [slice(size) for size in image.shape]
        place[axis] = slice(start, start + image.shape[axis])
        found = batch[tuple(place)]
        if found.shape != image.shape or not torch.allclose(found.float(), image.float(), rtol=0, atol=_SAME_PLACE):
            return None
        result[tuple(place)] = changed
        start += image.shape[axis]
    return result
