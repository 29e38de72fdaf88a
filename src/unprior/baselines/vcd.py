"""Visual contrastive decoding (VCD): contrasts the image with a noisy copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from unprior.baselines.method import IMAGE, Method, Tensor, View, keep_probable
from unprior.scores.table import FloatArray

_STEPS = 1000
_MIN_VARIANCE, _MAX_VARIANCE = 1e-5, 0.005


def diffusion_coefficients(step: int) -> tuple[float, float]:
    """Weights of image and noise after the steps 0 … ``step`` of forward diffusion.

    >>> [round(value, 5) for value in diffusion_coefficients(500)]
    [0.86302, 0.50517]
    """
    schedule = 1.0 / (1.0 + np.exp(-np.linspace(-6.0, 6.0, _STEPS)))
    variances = schedule * (_MAX_VARIANCE - _MIN_VARIANCE) + _MIN_VARIANCE
    kept = float(np.cumprod(1.0 - variances)[step])
    return kept**0.5, (1.0 - kept) ** 0.5


def diffuse(pixels: FloatArray, generator: np.random.Generator, *, step: int) -> FloatArray:
    """Normalised pixel values after forward diffusion."""
    image, noise = diffusion_coefficients(step)
    return np.asarray(image * pixels + noise * generator.standard_normal(pixels.shape))


@dataclass(frozen=True, slots=True)
class VCD(Method):
    """Logits (1 + α)ℓ_I − αℓ_noisy over tokens with p_I ≥ β·max p_I.

    >>> VCD().settings()
    {'alpha': 1.0, 'beta': 0.1, 'step': 500, 'seed': 42}
    """

    name: ClassVar[str] = "vcd"
    label: ClassVar[str] = "VCD"
    kind: ClassVar[str] = "decoder"
    seeded: ClassVar[bool] = True

    alpha: float = 1.0
    """Weight of the contrast."""
    beta: float = 0.1
    """Least share of the largest probability that a token needs."""
    step: int = 500
    """Of the forward diffusion, out of 1000."""
    seed: int = 42
    """Together with the example's name it decides the noise."""

    @property
    def views(self) -> tuple[View, ...]:
        """The image, and the image with noise."""
        return IMAGE, View("noisy", noise=partial(diffuse, step=self.step), seed=self.seed)

    def combine(self, streams: Sequence[Tensor]) -> Tensor:
        """Contrast the two."""
        image, noisy = streams
        return (1.0 + self.alpha) * image - self.alpha * noisy

    def plausible(self, image_logits: Tensor) -> Tensor:
        """What the clear image makes at least a little probable."""
        return keep_probable(image_logits, self.beta)

    def matched(self) -> Self:
        """No contrast: α = 0."""
        return replace(self, alpha=0.0)
