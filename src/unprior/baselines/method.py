"""What a method is: what its streams see of an example, how their logits are combined, which tokens may be chosen."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from PIL import Image

from unprior.prompts import PromptLayout
from unprior.scores.table import FloatArray

if TYPE_CHECKING:
    import numpy as np

    from unprior.engines.transformers.engine import TransformersEngine

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against

BeforePass: TypeAlias = Callable[["Pass"], None]
"""Told what the next pass reads."""


@dataclass(frozen=True, slots=True)
class View:
    """What one stream sees of an example."""

    name: str
    with_image: bool = True
    change_image: Callable[[Image.Image], Image.Image] | None = None
    """Changes the image before the model's own processing."""
    noise: Callable[[FloatArray, np.random.Generator], FloatArray] | None = None
    """Changes the normalised pixel values, with random numbers that belong to the example alone."""
    seed: int = 0
    """Of those random numbers, beside the example's name."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one forward pass reads."""

    view: View
    prompt: Tensor
    """Prompt tokens of its rows, padding included."""
    rows: Sequence[int]
    """Which questions of the batch they belong to."""
    real: Tensor | None = None
    """Where the positions that it reads are no padding, shape (rows, positions); None: everywhere."""
    from_start: bool = False
    """Whether it reads its questions from their first token."""
    total: int | None = None
    """Tokens of a row up to the end of this pass; None: those of the prompt."""


IMAGE = View("image")
"""The example as it is; the first stream of every method."""
TEXT = View("text", with_image=False)
"""The same prompt without the image."""


@dataclass(frozen=True, slots=True)
class Method(ABC):
    """A method that answers by greedy decoding; its fields are its settings."""

    name: ClassVar[str]
    """As the command line calls it."""
    label: ClassVar[str]
    """As tables call it."""
    kind: ClassVar[str]
    """``prompt``, ``decoder`` (changes the logits) or ``edit`` (changes what the model computes)."""
    seeded: ClassVar[bool] = False
    """Whether an answer depends on the example's name through its random numbers."""

    @property
    def views(self) -> tuple[View, ...]:
        """One stream each; the first is the example as it is."""
        return (IMAGE,)

    def combine(self, streams: Sequence[Tensor]) -> Tensor:
        """Logits to choose from, given those of every stream, each of shape (rows, vocabulary)."""
        return streams[0]

    def plausible(self, image_logits: Tensor) -> Tensor | None:
        """Tokens that may be chosen, given the logits of the first stream; None for all."""
        return None

    @abstractmethod
    def matched(self) -> Self | None:
        """The same method with its correction switched off; None where there is no decoder to match."""

    def layout(self, layout: PromptLayout) -> PromptLayout:
        """The wording around questions."""
        return layout

    def settings(self) -> dict[str, Any]:
        """Plain values of everything that may change an answer."""
        return asdict(self)

    def applied(self, engine: TransformersEngine) -> AbstractContextManager[BeforePass | None]:
        """Change the model while the context lasts; what it gives is called before every pass."""
        return _unchanged()

    def check(self, engine: TransformersEngine, inputs: dict[str, Any]) -> None:  # noqa: B027  # most have nothing to add
        """Refuse a model that the method would run on and change in another way than it should.

        ``inputs`` are those of a question with its image.
        """


@contextmanager
def _unchanged() -> Iterator[None]:
    yield None


def keep_probable(logits: Tensor, share: float) -> Tensor:
    """Tokens with at least this share of the largest probability: ℓ ≥ max ℓ + ln(share)."""
    return logits >= logits.max(dim=-1, keepdim=True).values + math.log(share)
