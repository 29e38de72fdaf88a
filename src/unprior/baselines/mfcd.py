"""Multi-frequency contrastive decoding (MFCD): contrasts the image with its low and its high frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
from PIL import Image
from scipy.fft import fftfreq, irfft2, rfft2, rfftfreq

from unprior.baselines.method import IMAGE, Method, Tensor, View, keep_probable
from unprior.scores.table import FloatArray


def low_pass(image: Image.Image, cutoff: float) -> Image.Image:
    """Keep coarse structure: a Gaussian exp(−D²/2·cutoff²) in the frequency domain, D relative to the largest radius.

    >>> low_pass(Image.new("RGB", (8, 6), (200, 100, 50)), 0.9).getpixel((3, 3))
    (200, 100, 50)
    """
    return _filtered(image, _gaussian(image.size, cutoff))


def high_pass(image: Image.Image, cutoff: float) -> Image.Image:
    """Keep fine detail: the complement of the Gaussian; what falls below black stays black.

    >>> high_pass(Image.new("RGB", (8, 6), (200, 100, 50)), 0.1).getpixel((3, 3))
    (0, 0, 0)
    """
    return _filtered(image, 1.0 - _gaussian(image.size, cutoff))


def _gaussian(size: tuple[int, int], cutoff: float) -> FloatArray:
    """Response at the frequencies of a real transform, which are counted in whole cycles along both axes."""
    width, height = size
    radius = np.hypot(fftfreq(height, 1.0 / height)[:, None], rfftfreq(width, 1.0 / width)[None, :])
    largest = max(float(radius.max()), 1.0)
    return np.asarray(np.exp(-((radius / largest) ** 2) / (2.0 * cutoff**2)))


def _filtered(image: Image.Image, response: FloatArray) -> Image.Image:
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64)
    spectrum = rfft2(pixels, axes=(0, 1)) * response[:, :, None]
    visible = irfft2(spectrum, s=pixels.shape[:2], axes=(0, 1))
    return Image.fromarray(np.rint(visible).clip(0, 255).astype(np.uint8))


@dataclass(frozen=True, slots=True)
class MFCD(Method):
    """Logits (1 + w_low + w_high)ℓ_I − w_low·ℓ_low − w_high·ℓ_high over tokens with p_I ≥ β·max p_I.

    >>> MFCD().settings()
    {'low_weight': 1.0, 'high_weight': 1.0, 'beta': 0.3, 'low_cutoff': 0.9, 'high_cutoff': 0.1}
    """

    name: ClassVar[str] = "mfcd"
    label: ClassVar[str] = "MFCD"
    kind: ClassVar[str] = "decoder"

    low_weight: float = 1.0
    high_weight: float = 1.0
    beta: float = 0.3
    """Least share of the largest probability that a token needs."""
    low_cutoff: float = 0.9
    """Width of the low-pass filter, relative to the largest frequency."""
    high_cutoff: float = 0.1
    """Width of what the high-pass filter takes away."""

    @property
    def views(self) -> tuple[View, ...]:
        """The image, its coarse structure, its fine detail."""
        return (
            IMAGE,
            View("low", change_image=partial(low_pass, cutoff=self.low_cutoff)),
            View("high", change_image=partial(high_pass, cutoff=self.high_cutoff)),
        )

    def combine(self, streams: Sequence[Tensor]) -> Tensor:
        """Contrast the image with both."""
        image, low, high = streams
        return (1.0 + self.low_weight + self.high_weight) * image - self.low_weight * low - self.high_weight * high

    def plausible(self, image_logits: Tensor) -> Tensor:
        """What the whole image makes reasonably probable."""
        return keep_probable(image_logits, self.beta)

    def matched(self) -> Self:
        """No contrast: both weights 0."""
        return replace(self, low_weight=0.0, high_weight=0.0)
