"""Engines that are wrong in one way each, around one that is right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from unprior.engines.protocol import Answered, CandidateScores, Capabilities, Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError
from unprior.prompts import PromptLayout


class Wrapped:
    """Only what the protocol asks for, and the precision."""

    def __init__(self, engine: TransformersEngine) -> None:
        self.engine = engine
        self.tolerance = engine.tolerance
        self.identity = engine.identity

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    @property
    def layout(self) -> PromptLayout:
        return self.engine.layout

    @property
    def fingerprint(self) -> str:
        return self.engine.fingerprint

    @property
    def model_type(self) -> str | None:
        return self.engine.model_type

    def original_answer(self, image: Image.Image | None, question: str) -> str:
        return self.answer_batch([Query(image, question, (" A",))])[0].text

    def score_candidates(self, image: Image.Image | None, question: str, candidates: Sequence[str]) -> CandidateScores:
        return self.score_batch([Query(image, question, tuple(candidates))])[0]

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        return self.engine.score_batch(queries)

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        return self.engine.answer_batch(queries)


class Rescored(Wrapped):
    """Every score goes through a change that may look at all queries of its batch."""

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        raise NotImplementedError

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        results = super().score_batch(queries)
        return [self.change(result, query, queries) for result, query in zip(results, queries, strict=True)]

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        results = super().answer_batch(queries)
        return [
            replace(result, scored=self.change(result.scored, query, queries))
            for result, query in zip(results, queries, strict=True)
        ]


def shifted(scored: CandidateScores, by: float) -> CandidateScores:
    return replace(scored, scores=tuple(score + by for score in scored.scores))


class RaisesAlways(Wrapped):
    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        raise ConnectionError("nobody listens on port 8000")


class Unnormalised(Rescored):
    """Logits, as it were."""

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        return shifted(scored, 12.0)


class Renormalised(Rescored):
    """Log-probabilities among the candidates: one question alone does not give it away."""

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        return shifted(scored, -math.log(scored.mass))


class MeanOfTokens(Rescored):
    """A harness's mistake: the mean loss as log-likelihood."""

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        means = (score / count for score, count in zip(scored.scores, scored.token_counts, strict=True))
        return replace(scored, scores=tuple(means))


class NotANumber(Rescored):
    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        return replace(scored, scores=(float("nan"), *scored.scores[1:]))


class OtherAnswers(Wrapped):
    def original_answer(self, image: Image.Image | None, question: str) -> str:
        return "sampled"


class StaleCache(Rescored):
    """Images that were seen before give other scores."""

    def __init__(self, engine: TransformersEngine) -> None:
        super().__init__(engine)
        self.seen: set[bytes] = set()

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        image = b"" if query.image is None else query.image.tobytes()
        known = image in self.seen
        self.seen.add(image)
        return shifted(scored, -0.01) if known and image else scored


class AnswersBesideDifferently(Wrapped):
    """Scores beside an answer are not those of the scoring prompt read alone."""

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        return [replace(answered, scored=shifted(answered.scored, -0.01)) for answered in super().answer_batch(queries)]


class RemembersImage(Wrapped):
    """The last image leaks into scores without one."""

    offset = 0.0

    def _notice(self, queries: Sequence[Query]) -> None:
        for query in queries:
            if query.image is not None:
                self.offset = query.image.height / 10_000

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        self._notice(queries)
        return super().answer_batch(queries)

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        self._notice(queries)
        return [
            shifted(result, -self.offset) if query.image is None else result
            for result, query in zip(super().score_batch(queries), queries, strict=True)
        ]


class RefusesTextOnly(Wrapped):
    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        if any(query.image is None for query in queries):
            raise UnpriorError("an image is required")
        return super().score_batch(queries)


class DependsOnBatch(Rescored):
    """Padding is attended to, as it were."""

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        return shifted(scored, -0.01 * (len({other.text for other in queries}) - 1))


class DependsOnPlace(Rescored):
    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        return shifted(scored, -0.01 * list(queries).index(query))


class AnswersDependOnBatch(Wrapped):
    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        return [
            replace(answered, text=answered.text + "!" * (len(queries) - 1))
            for answered in super().answer_batch(queries)
        ]


def _turned(queries: Sequence[Query]) -> list[Query]:
    """Every question with the image of the one before it."""
    return [replace(query, image=queries[place - 1].image) for place, query in enumerate(queries)]


class MixesUpImages(Wrapped):
    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        return super().score_batch(_turned(queries))

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        return super().answer_batch(_turned(queries))


class FirstImageForAll(Wrapped):
    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        return super().score_batch([replace(query, image=queries[0].image) for query in queries])


class Blind(Wrapped):
    """Images do not reach the model."""

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        return super().score_batch([replace(query, image=None) for query in queries])

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        return super().answer_batch([replace(query, image=None) for query in queries])


class OneImageForAll(Wrapped):
    """Every question is about the first image ever seen."""

    first: Image.Image | None = None

    def _shown(self, queries: Sequence[Query]) -> list[Query]:
        self.first = self.first or next((query.image for query in queries if query.image is not None), None)
        return [query if query.image is None else replace(query, image=self.first) for query in queries]

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
        return super().score_batch(self._shown(queries))

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered]:
        return super().answer_batch(self._shown(queries))


class Rounded(Rescored):
    """Three decimals, which no comparison of two scores notices."""

    def change(self, scored: CandidateScores, query: Query, queries: Sequence[Query]) -> CandidateScores:
        return replace(scored, scores=tuple(round(score, 3) for score in scored.scores))


class RestlessFingerprint(Wrapped):
    count = 0

    @property
    def fingerprint(self) -> str:
        self.count += 1
        return str(self.count)


CAUGHT_BY = {
    RaisesAlways: ["scoring"],
    Unnormalised: ["exact scores"],
    Renormalised: ["exact scores"],
    MeanOfTokens: ["exact scores"],
    NotANumber: ["exact scores"],
    OtherAnswers: ["original answer"],
    StaleCache: ["prefix reuse"],
    AnswersBesideDifferently: ["prefix reuse"],
    RemembersImage: ["text-only after image"],
    RefusesTextOnly: ["image dropped", "text-only after image"],
    DependsOnBatch: ["batch invariance"],
    DependsOnPlace: ["batch invariance"],
    AnswersDependOnBatch: ["batch invariance"],
    MixesUpImages: ["image order"],
    OneImageForAll: ["image swapped"],
    Rounded: ["rounding"],
    FirstImageForAll: ["image order"],
    Blind: ["image dropped"],
    RestlessFingerprint: ["versions"],
}
"""The probes that must fail: one each, but where the fault is of two kinds."""
