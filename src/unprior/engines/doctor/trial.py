"""What probes work with: an engine, two images, questions about them, and when two scores are equal."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from PIL import Image

from unprior.engines.precision import HALF
from unprior.engines.protocol import Answered, CandidateScores, Engine, Query, QueryFailure
from unprior.errors import UnpriorError, format_option
from unprior.prompts import YES_NO

if TYPE_CHECKING:
    from unprior.engines.transformers.engine import TransformersEngine

Result = TypeVar("Result", CandidateScores, Answered)

LETTERS = ("A", "B", "C", "D")
_PREAMBLE = "Look at the picture for a while, from left to right and from top to bottom. " * 3
_COLOURS = ("red", "green", "blue", "yellow")
_ABOUT_ANY_IMAGE = ("What is the main color of the picture?", "Is there an animal in the picture?")


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An engine and what it is asked."""

    engine: Engine
    image: Image.Image
    other: Image.Image
    """Another image of the same size."""
    question: str
    """The yes/no question."""
    against: TransformersEngine | None = None
    """The same model from a folder, to compare with."""

    @classmethod
    def from_engine(
        cls,
        engine: Engine,
        image: Image.Image | None = None,
        question: str | None = None,
        against: TransformersEngine | None = None,
    ) -> Trial:
        """The user's image and question, or drawn and general ones."""
        first, second = _drawn("banana color", "yellow"), _drawn("strawberry color", "red")
        shown = first if image is None else image.convert("RGB")
        return cls(engine, shown, second.resize(shown.size), question or _ABOUT_ANY_IMAGE[1], against)

    @property
    def narrow(self) -> Image.Image:
        """An image of another shape, which many models turn into another number of tokens."""
        width, height = self.other.size
        return self.other.resize((width, max(1, height // 3)))

    @staticmethod
    def unseen(image: Image.Image) -> Image.Image:
        """The image with a pixel of a chance colour, so that no cache holds it from an earlier examination."""
        image = image.copy()
        red, green, blue = secrets.token_bytes(3)
        image.putpixel((0, 0), (red, green, blue))
        return image

    @property
    def in_full(self) -> Callable[[Query], CandidateScores] | None:
        """Scores past all caches, where the engine offers them."""
        return getattr(self.engine, "score_in_full", None)

    @property
    def tolerance(self) -> float | None:
        """Largest difference that the engine's precision explains; None when the engine does not tell it."""
        return getattr(self.engine, "tolerance", None)

    @property
    def is_exact(self) -> bool:
        """Whether the precision is known to leave no room for ties that fall either way."""
        return self.tolerance is not None and self.tolerance < HALF

    def advice(self, otherwise: str, **by_engine: str) -> str:
        """What to do, which may differ with the kind of engine: ``openai`` or ``vllm``."""
        return by_engine.get(getattr(self.engine, "identity", {}).get("engine", ""), otherwise)

    @property
    def one_at_a_time(self) -> str:
        """How this engine is kept from working on several questions together."""
        return self.advice(
            format_option("batch_size", 1),
            openai=f"{format_option('concurrency', 1)} and no other clients",
            vllm="VllmEngine(options={'max_num_seqs': 1})",
        )

    def choice(self, image: Image.Image | None) -> Query:
        """A multiple-choice question about any image."""
        text = self.engine.layout.user_text(_ABOUT_ANY_IMAGE[0], LETTERS, _COLOURS)
        return self.query(image, text, LETTERS)

    def yes_no(self, image: Image.Image | None) -> Query:
        """The yes/no question."""
        return self.query(image, self.engine.layout.user_text(self.question, YES_NO, None), YES_NO)

    def long(self, image: Image.Image | None, labels: Sequence[str]) -> Query:
        """A prompt long enough for caches that keep only whole blocks of tokens (vLLM on CPUs: 128)."""
        return self.query(image, _PREAMBLE + "What do you see?", labels)

    def query(self, image: Image.Image | None, text: str, labels: Sequence[str]) -> Query:
        """Any text with any candidates."""
        return Query(image, text, self.engine.layout.continuations(labels))

    def scores(self, *queries: Query) -> list[CandidateScores]:
        """Scores of one batch; a query without a result ends the probe."""
        results = [_result(result) for result in self.engine.score_batch(queries)]
        _check_count(len(queries), len(results))
        return results

    def answers(self, *queries: Query) -> list[Answered]:
        """Answers and scores of one batch; a query without a result ends the probe."""
        results = [_result(result) for result in self.engine.answer_batch(queries)]
        _check_count(len(queries), len(results))
        return results


def difference(first: CandidateScores, second: CandidateScores) -> float:
    """Largest difference between scores of the same candidates; infinite when they cannot be compared.

    >>> difference(CandidateScores((-1.0, -2.0), (1, 1)), CandidateScores((-1.0, -2.5), (1, 1)))
    0.5
    """
    if len(first.scores) != len(second.scores):
        return math.inf
    return largest_difference(zip(first.scores, second.scores, strict=True))


def largest_difference(pairs: Iterable[tuple[float, float]]) -> float:
    """Largest difference within pairs of scores; infinite when one of them has no number.

    >>> largest_difference([(-1.0, -1.5), (float("-inf"), float("-inf"))])
    0.5
    """
    return max((_apart(*pair) for pair in pairs), default=0.0)


def _apart(one: float, two: float) -> float:
    if one == two or (math.isnan(one) and math.isnan(two)):  # two infinities have no difference
        return 0.0
    apart = abs(one - two)
    return math.inf if math.isnan(apart) else apart


def _result(result: Result | QueryFailure) -> Result:
    if isinstance(result, QueryFailure):
        raise UnpriorError(result.reason)
    return result


def _check_count(asked: int, got: int) -> None:
    if asked != got:
        raise UnpriorError(f"{got} results for {asked} queries")


def _drawn(name: str, state: str) -> Image.Image:
    from unprior.benchmarks.microworld import CONCEPTS, render

    concept = next(concept for concept in CONCEPTS if concept.name == name)
    return render(concept, state, "doctor", clean=True)
