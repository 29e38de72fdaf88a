"""What the engines that hold a model in this process share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from PIL import Image

from unprior.engines.protocol import CandidateScores, Proposed, Query, QueryFailure, proposed
from unprior.errors import UnpriorError
from unprior.prompts import PromptLayout


class LocalEngine(ABC):
    """A model in this process; subclasses load it, score and answer."""

    _name: str
    _layout: PromptLayout
    _identity: dict[str, str]

    @property
    def name(self) -> str:
        """What score tables call the model."""
        return self._name

    @property
    def layout(self) -> PromptLayout:
        """The wording around questions."""
        return self._layout

    @property
    def identity(self) -> dict[str, str]:
        """What the fingerprint is made of, for people."""
        return dict(self._identity)

    def score_candidates(
        self, image: Image.Image | None, question: str, candidates: Sequence[str], *, whole: bool = False
    ) -> CandidateScores:
        """Exact scores of candidate answers to one question; ``whole``: that the answer ends there is scored, too."""
        result = self.score_batch([Query(image, question, tuple(candidates), whole)])[0]
        if isinstance(result, QueryFailure):
            raise UnpriorError(result.reason)
        return result

    def propose(self, image: Image.Image | None, question: str, count: int) -> Proposed:
        """The most probable whole answers to one question."""
        return proposed(self, image, question, count)

    @abstractmethod
    def propose_batch(self, queries: Sequence[Query], count: int) -> list[Proposed | QueryFailure]:
        """The most probable whole answers to many queries."""

    @abstractmethod
    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores for many queries."""
