"""Context-aware decoding (CAD): contrasts the image with the text alone, with and without VCD's mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from unprior.baselines.method import IMAGE, TEXT, Method, Tensor, View, keep_probable


@dataclass(frozen=True, slots=True)
class CAD(Method):
    """Logits (1 + α)ℓ_I − αℓ_T over the whole vocabulary, where ℓ_T are those without the image.

    >>> CAD().settings()
    {'alpha': 0.5}
    """

    name: ClassVar[str] = "cad-0.5"
    label: ClassVar[str] = "CAD (α = 0.5)"
    kind: ClassVar[str] = "decoder"

    alpha: float = 0.5
    """Weight of the contrast."""

    @property
    def views(self) -> tuple[View, ...]:
        """With and without the image."""
        return IMAGE, TEXT

    def combine(self, streams: Sequence[Tensor]) -> Tensor:
        """Contrast the two."""
        image, text = streams
        return (1.0 + self.alpha) * image - self.alpha * text

    def matched(self) -> Self:
        """No contrast: α = 0."""
        return replace(self, alpha=0.0)


@dataclass(frozen=True, slots=True)
class StrongCAD(CAD):
    """CAD with the full contrast, α = 1."""

    name: ClassVar[str] = "cad-1"
    label: ClassVar[str] = "CAD (α = 1)"

    alpha: float = 1.0
    """Weight of the contrast."""


@dataclass(frozen=True, slots=True)
class MaskedCAD(StrongCAD):
    """The same contrast over tokens with p_I ≥ β·max p_I only, as VCD has it.

    >>> MaskedCAD().settings()
    {'alpha': 1.0, 'beta': 0.1}
    """

    name: ClassVar[str] = "cad-mask-0.1"
    label: ClassVar[str] = "CAD with mask (β = 0.1)"

    beta: float = 0.1
    """Least share of the largest probability that a token needs."""

    def plausible(self, image_logits: Tensor) -> Tensor:
        """What the image makes at least a little probable."""
        return keep_probable(image_logits, self.beta)


@dataclass(frozen=True, slots=True)
class WiderMaskedCAD(MaskedCAD):
    """The same with more tokens to choose from, β = 0.01."""

    name: ClassVar[str] = "cad-mask-0.01"
    label: ClassVar[str] = "CAD with mask (β = 0.01)"

    beta: float = 0.01
    """Least share of the largest probability that a token needs."""
