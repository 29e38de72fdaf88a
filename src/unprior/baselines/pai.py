"""PAI: makes the model attend more to the image, and contrasts it with the text alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from unprior.baselines.method import IMAGE, TEXT, BeforePass, Method, Pass, Tensor, View, keep_probable

if TYPE_CHECKING:
    from unprior.engines.transformers.engine import TransformersEngine


@dataclass(frozen=True, slots=True)
class PAI(Method):
    """Log-probabilities γ(L_I − L_T) + L_T over tokens with p_I ≥ β·max p_I, where L_I attends more to the image.

    >>> PAI().settings()
    {'attention': 0.2, 'gamma': 1.1, 'beta': 0.1, 'first_layer': 2}
    """

    name: ClassVar[str] = "pai"
    label: ClassVar[str] = "PAI"
    kind: ClassVar[str] = "edit"

    attention: float = 0.2
    """Share of its size that a score of the last token on an image token gains before the softmax."""
    gamma: float = 1.1
    """Scale of the contrast; 1 is none."""
    beta: float = 0.1
    """Least share of the largest probability that a token needs."""
    first_layer: int = 2
    """The decoder layer, counted from 0, from which on attention is edited."""

    @property
    def views(self) -> tuple[View, ...]:
        """With the image, attended to more, and without."""
        return IMAGE, TEXT

    def combine(self, streams: Sequence[Tensor]) -> Tensor:
        """Contrast log-probabilities."""
        image, text = (logits.log_softmax(dim=-1) for logits in streams)
        return self.gamma * (image - text) + text if self.gamma != 1.0 else image

    def plausible(self, image_logits: Tensor) -> Tensor:
        """What the image makes at least a little probable."""
        return keep_probable(image_logits, self.beta)

    def matched(self) -> Self:
        """Attention as it is, and no contrast: γ = 1."""
        return replace(self, attention=0.0, gamma=1.0)

    @contextmanager
    def applied(self, engine: TransformersEngine) -> Iterator[BeforePass | None]:
        """Edit the attention of passes that see the image."""
        from unprior.baselines.attention_edit import edited_attention, image_columns

        if self.attention == 0.0:
            yield None
            return
        with edited_attention(engine.model, weight=self.attention, first_layer=self.first_layer) as edit:

            def before_pass(coming: Pass) -> None:
                edit.columns = image_columns(engine, coming.prompt) if coming.view.with_image else None
                edit.total = coming.total or coming.prompt.shape[1]

            yield before_pass

    def check(self, engine: TransformersEngine, inputs: dict[str, Any]) -> None:
        """Refuse a model whose attention the edit does not reach, or computes by another formula."""
        from unprior.baselines.attention_edit import check_edit

        check_edit(engine, inputs, self.first_layer)
