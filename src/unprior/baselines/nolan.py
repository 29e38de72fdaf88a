"""NoLan: subtracts the language prior at every token, more where it agrees with the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from unprior.baselines.method import IMAGE, TEXT, Method, Tensor, View


@dataclass(frozen=True, slots=True)
class NoLan(Method):
    """Logits (1 + α)ℓ_I − αℓ_P with α = β[tanh(1/γ) + 1] and γ the symmetrised KL divergence of the two streams.

    >>> NoLan().settings()
    {'beta': 0.8}
    """

    name: ClassVar[str] = "nolan"
    label: ClassVar[str] = "NoLan"
    kind: ClassVar[str] = "decoder"

    beta: float = 0.8
    """α lies between β (streams far apart) and 2β (streams alike)."""

    @property
    def views(self) -> tuple[View, ...]:
        """With and without the image."""
        return IMAGE, TEXT

    def combine(self, streams: Sequence[Tensor]) -> Tensor:
        """Subtract the prior, with a strength of its own for every row."""
        image, prior = streams
        alpha = self.strength(image, prior)
        return (1.0 + alpha) * image - alpha * prior

    def strength(self, image: Tensor, prior: Tensor) -> Tensor:
        """α of every row, of shape (rows, 1)."""
        import torch

        with_image, without = (torch.log_softmax(logits.double(), dim=-1) for logits in (image, prior))
        # Half the sum of both divergences: half of Σ (q − p)(ln q − ln p).
        difference = (with_image.exp() - without.exp()) * (with_image - without)
        distance = 0.5 * difference.nan_to_num(nan=0.0).sum(dim=-1, keepdim=True)
        return (self.beta * (torch.tanh(1.0 / distance) + 1.0)).to(image.dtype)  # 1/0 is infinite, its tanh is 1

    def matched(self) -> Self:
        """No subtraction: β = 0."""
        return replace(self, beta=0.0)
