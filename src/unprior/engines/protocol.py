"""What an engine is: it answers a question about an image and scores candidate answers exactly."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from PIL import Image

from unprior.errors import UnpriorError, wrong_type
from unprior.prompts import PromptLayout

MIN_MASS = 0.5
"""Candidates that hold less of the probability are not what the model would say; people are warned."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do; a command asks before it needs it."""

    exact_scores: bool
    """Log-probabilities of any candidate, whatever its rank."""
    top_k: int | None = None
    """Only the k most probable tokens are visible; candidates outside are censored."""
    hidden_states: bool = False
    """Hidden states can be read and steered."""
    attention_edits: bool = False
    """Attention can be edited."""
    batch_size: int = 1
    """Queries that it wants at once, so that it is never idle."""
    proposes: bool = False
    """Answers in the model's own words can be searched for; see :class:`ProposingEngine`."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One question to an engine; the text is the whole user turn, options and instruction included."""

    image: Image.Image | None
    """None asks without the image: the prior."""
    text: str
    candidates: tuple[str, ...]
    """Continuations to score, e.g. ``" A"``."""
    whole: bool = False
    """Candidates are whole answers: that the answer ends there is scored, too (the end token)."""


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """Scores of the candidates of one query, exact unless they are marked as censored."""

    scores: tuple[float, ...]
    """Summed token log-probabilities."""
    token_counts: tuple[int, ...]
    """Number of tokens of each candidate."""
    censored: tuple[bool, ...] | None = None
    """Candidates outside the tokens that a server shows have only an upper bound as score; None if all can be seen."""
    first_scores: tuple[float, ...] | None = field(default=None, repr=False, compare=False)
    """Log-probability of the first token of each whole answer, where the engine tells; for comparison only."""

    @property
    def mass(self) -> float:
        """Total probability of the candidates; little of it means that the prompt does not ask for them."""
        hidden = self.censored or (False,) * len(self.scores)
        return sum(math.exp(score) for score, bound in zip(self.scores, hidden, strict=True) if not bound)


@dataclass(frozen=True, slots=True)
class Answered:
    """Original answer and candidate scores of one query."""

    text: str
    """What the model wrote."""
    scored: CandidateScores


@dataclass(frozen=True, slots=True)
class Proposed:
    """Answers in the model's own words to one query, with exact scores."""

    text: str | None
    """What the model wrote (greedy, to the original prompt); None for a query without an image."""
    candidates: tuple[str, ...]
    """Continuations of the scoring prompt, no string twice: the query's own, the original answer, and what the search
    found, most probable first."""
    scored: CandidateScores
    """Scores of the candidates as whole answers, the end token included."""
    found: tuple[bool, ...]
    """Candidates that the search found, also where they were given or are the original answer."""


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """Why one query of a batch has no result."""

    reason: str
    refused: bool = False
    """Whether the query itself is at fault: asked again, it would fail again."""

    @classmethod
    def from_error(cls, error: UnpriorError) -> QueryFailure:
        """What became of a query that raised an error."""
        return cls(str(error), isinstance(error, QueryRefusedError))


class QueryRefusedError(UnpriorError):
    """A query that cannot be asked as it is: it is too long, or the model would not read it as it is written."""


def fingerprint_of(identity: Mapping[str, str], layout: PromptLayout, max_new_tokens: int, **more: object) -> str:
    """The fingerprint of an engine, from everything that may change a result."""
    # Stored results are found by it, so the names of its parts never change.
    content = {**identity, "layout": repr(layout), "most_new_tokens": max_new_tokens, **more}
    content |= {"system": layout.system} if layout.system else {}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class EngineInfo(Protocol):
    """What can be known of an engine without asking it anything: enough to plan a run."""

    @property
    def name(self) -> str:
        """The model, as it stands in score tables."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    @property
    def layout(self) -> PromptLayout:
        """The wording around questions."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes with everything that may change a result: weights, precision, preprocessing, libraries."""
        ...

    @property
    def identity(self) -> dict[str, str]:
        """What the fingerprint is made of, for people."""
        ...

    @property
    def model_type(self) -> str | None:
        """The architecture, where it is known; some benchmarks show an architecture images of one size."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteEngineInfo:
    """What is known of an engine that is somewhere else; see :class:`Engine` for the fields."""

    name: str
    capabilities: Capabilities
    layout: PromptLayout
    fingerprint: str
    identity: dict[str, str]
    model_type: str | None

    @classmethod
    def from_engine(cls, engine: EngineInfo) -> RemoteEngineInfo:
        """Describe an engine."""
        return cls(
            engine.name,
            engine.capabilities,
            engine.layout,
            engine.fingerprint,
            engine.identity,
            engine.model_type,
        )


@runtime_checkable
class Engine(EngineInfo, Protocol):
    """A vision-language model that answers and scores.

    Batch forms give one result per query, in order; a query that cannot be done yields a
    :class:`QueryFailure` and does not spoil the others.
    """

    def original_answer(self, image: Image.Image | None, question: str) -> str:
        """Greedy answer to one question."""
        ...

    def score_candidates(self, image: Image.Image | None, question: str, candidates: Sequence[str]) -> CandidateScores:
        """Exact scores of candidate answers to one question."""
        ...

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores for many queries."""
        ...

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        """Original answers and scores for many queries, encoding each image once."""
        ...


class Proposing(Protocol):
    """Searches for answers in the model's own words."""

    def propose_batch(self, queries: Sequence[Query], count: int) -> list[Proposed | QueryFailure]:
        """The most probable whole answers to every query, all queries with an image or all without.

        Beam search of width ``count`` behind the scoring prompt. The query's own candidates are scored beside what is
        found, and so is the original answer where there is an image.
        """
        ...


@runtime_checkable
class ProposingEngine(Engine, Proposing, Protocol):
    """An engine that can also search for answers in the model's own words."""

    def propose(self, image: Image.Image | None, question: str, count: int) -> Proposed:
        """The most probable whole answers to one question."""
        ...


def proposed(engine: Proposing, image: Image.Image | None, question: str, count: int) -> Proposed:
    """What an engine proposes to one question; a failure is an error."""
    found = engine.propose_batch([Query(image, question, ())], count)[0]
    if isinstance(found, QueryFailure):
        raise UnpriorError(found.reason)
    return found


def require_engine(engine: object) -> None:
    """Refuse what is no engine.

    >>> require_engine("embedded")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: engine: give a loaded model, see unprior.load_engine, not 'embedded'
    """
    if not hasattr(engine, "answer_batch"):
        raise wrong_type("engine", engine, "a loaded model, see unprior.load_engine")
