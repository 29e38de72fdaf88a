"""Open questions: the model itself proposes the candidates, and both conditions score the same strings.

For one question: without the image, the most probable answer is searched for; with the image, the original answer and
the most probable answers; then all these strings are scored as whole answers with and without the image. Forms of one
answer are merged, and a fixed number of candidates is kept: the original answer, the answer without the image, then
the best of the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from unprior.answer_forms import normalize_answer, read_open_answer
from unprior.engines.answer_search import MAX_ANSWER_TOKENS
from unprior.engines.load import BEAMS, CANDIDATES, NEW_TOKENS, TEXT_BEAMS
from unprior.engines.protocol import (
    CandidateScores,
    Engine,
    EngineInfo,
    Proposed,
    ProposingEngine,
    Query,
    QueryFailure,
)
from unprior.errors import UnpriorError, format_option
from unprior.scores.open_rows import merge_forms

_MAX_REMEMBERED = 20_000
Result = TypeVar("Result")
FIRST_TOKENS = {"first-token-image": "first_scores", "first-token-text": "first_prior_scores"}
"""Views of a row with all candidates, and what they are called in the store."""


@dataclass(frozen=True, slots=True)
class OpenScores:
    """Everything that was asked about one open question and its image."""

    text: str
    """What the model wrote."""
    strings: tuple[str, ...]
    """Whole answers as the model would write them: first its answer without the image, or all that were given."""
    found: tuple[bool, ...]
    """Which of them the search with the image found."""
    image: CandidateScores
    prior: CandidateScores
    """Scores of these strings without the image."""

    def record(self) -> dict[str, Any]:
        """Plain values, as they are stored."""
        none = (False,) * len(self.strings)
        both = zip(self.image.censored or none, self.prior.censored or none, strict=True)
        marks = [any(each) for each in both]
        record: dict[str, Any] = {
            "text": self.text,
            "strings": list(self.strings),
            "found": list(self.found),
            "scores": list(self.image.scores),
            "prior_scores": list(self.prior.scores),
            "token_counts": list(self.image.token_counts),
        }
        first = {"first_scores": self.image.first_scores, "first_prior_scores": self.prior.first_scores}
        record |= {name: list(scores) for name, scores in first.items() if scores is not None}
        return record | ({"censored": marks} if any(marks) else {})


@dataclass(frozen=True, slots=True)
class Call:
    """What an engine is asked for: the best answers to queries, or only the scores of their candidates."""

    queries: list[Query]
    width: int | None = None
    """Of the search for answers; None where nothing is searched for."""


Steps = Generator[Call, list[Any], Result]
"""Calls of an engine, which are sent what it returns."""


class OpenAsker:
    """Asks open questions; what is asked without the image is asked once for all images of a question."""

    def __init__(self, engine: Engine, *, remembers_failures: bool = True) -> None:
        """``remembers_failures``: a question that failed without the image is not asked again."""
        self._engine, self._remembers_failures = engine, remembers_failures
        self._without_image: dict[str, str | QueryFailure] = {}

    def ask(self, asked: Sequence[Query]) -> list[OpenScores | QueryFailure]:
        """Answers and scores to questions about images, in their order; candidates of a query are the only ones.

        Queries either all have candidates or none has.
        """
        return self._take(self._steps(asked))

    async def ask_async(
        self, asked: Sequence[Query], answer: Callable[[Call], Awaitable[list[Any]]]
    ) -> list[OpenScores | QueryFailure]:
        """The same by calls that are waited for, and given up with this one."""
        steps, results = self._steps(asked), None
        while True:
            try:
                call = next(steps) if results is None else steps.send(results)
            except StopIteration as end:
                return cast("list[OpenScores | QueryFailure]", end.value)
            results = await answer(call)

    def search_without_image(self, texts: Sequence[str]) -> None:
        """Find the most probable answer to every question that is new, and keep it for all its images."""
        self._take(self._steps_without_image(texts))

    def _take(self, steps: Steps[Result]) -> Result:
        engine, results = proposing(self._engine), None
        while True:
            try:
                call = next(steps) if results is None else steps.send(results)
            except StopIteration as end:
                return cast("Result", end.value)
            queries, width = call.queries, call.width
            results = engine.score_batch(queries) if width is None else engine.propose_batch(queries, width)

    def _steps(self, asked: Sequence[Query]) -> Steps[list[OpenScores | QueryFailure]]:
        results: list[Any] = [None] * len(asked)
        queries = {place: query for place, query in enumerate(asked) if query.candidates}
        if not queries:
            without = yield from self._steps_without_image([query.text for query in asked])
            results = [without[query.text] for query in asked]
            queries = {
                place: replace(asked[place], candidates=(answer,))
                for place, answer in enumerate(results)
                if isinstance(answer, str)
            }
        # Where candidates are given, nothing is searched for; the search of width 1 costs little.
        width = 1 if asked and asked[0].candidates else BEAMS
        proposed = dict(zip(queries, (yield Call(list(queries.values()), width)), strict=True))
        found = {place: each for place, each in proposed.items() if isinstance(each, Proposed)}
        results = [proposed.get(place, result) for place, result in enumerate(results)]
        again = [Query(None, asked[place].text, each.candidates, whole=True) for place, each in found.items()]
        priors = (yield Call(again)) if again else []
        for (place, each), prior in zip(found.items(), priors, strict=True):
            results[place] = prior
            if isinstance(prior, CandidateScores):
                results[place] = OpenScores(each.text or "", each.candidates, each.found, each.scored, prior)
        return results

    def _steps_without_image(self, texts: Sequence[str]) -> Steps[dict[str, str | QueryFailure]]:
        if len(self._without_image) > _MAX_REMEMBERED:
            self._without_image.clear()
        known = {text: self._without_image[text] for text in texts if text in self._without_image}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        proposed = (yield Call([Query(None, text, ()) for text in new], TEXT_BEAMS)) if new else []
        for text, found in zip(new, proposed, strict=True):
            if isinstance(found, QueryFailure):
                known[text] = found
                if not self._remembers_failures:
                    continue
            elif not found.candidates:
                known[text] = QueryFailure(
                    "without the image the model ends no answer; ask for a short one (open_instruction)"
                )
            else:
                known[text] = found.candidates[int(np.argmax(found.scored.scores))]
            self._without_image[text] = known[text]
        return known


def proposing(engine: Engine) -> ProposingEngine:
    """The engine, if it can search for answers; otherwise an error says what to do."""
    check_proposes(engine)
    if not hasattr(engine, "propose_batch"):
        raise UnpriorError(f"engine {engine.name} says that it proposes answers, and has no method propose_batch")
    return cast("ProposingEngine", engine)


def check_proposes(engine: EngineInfo) -> None:
    """Refuse an engine that cannot search for answers."""
    if not engine.capabilities.proposes:
        raise UnpriorError(
            f"engine {engine.name} cannot search for answers to open questions; use "
            f"{format_option('engine', 'transformers')}, or serve the model with vLLM 0.26 or newer"
        )


def check_length(engine: EngineInfo) -> None:
    """Refuse original answers that are cut off before the longest candidate: they would be other answers."""
    most = getattr(engine, "max_new_tokens", NEW_TOKENS)
    if most < MAX_ANSWER_TOKENS:
        raise UnpriorError(
            f"{format_option('max_new_tokens', most)}: answers to open questions would be cut off; give at least "
            f"{MAX_ANSWER_TOKENS}"
        )


def check_candidates(count: object) -> int:
    """Refuse a number of candidates that there cannot be.

    >>> check_candidates(1)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: candidates=1 (command line: --candidates 1): give a whole number from 2 to 8
    """
    if not isinstance(count, Integral) or isinstance(count, bool) or not 2 <= int(count) <= BEAMS:
        raise UnpriorError(f"{format_option('candidates', count)}: give a whole number from 2 to {BEAMS}")
    return int(count)


@dataclass(frozen=True, slots=True)
class OpenCandidates:
    """Different answers to one question, with merged scores; the best with the image first."""

    labels: tuple[str, ...]
    image_scores: tuple[float, ...]
    prior_scores: tuple[float, ...]
    token_counts: tuple[int, ...]
    """Of the form that gives the label."""
    sources: tuple[str, ...]
    """Who proposed it: ``original``, ``text`` (the model without the image) or ``image``, joined by +."""
    censored: tuple[bool, ...] | None
    original: str | None
    """The label of the model's own answer."""
    first_scores: dict[str, list[float]]
    """Views with the scores of the first tokens of these forms, with the image and without, where they are known."""


def candidates_of(
    stored: dict[str, Any], count: int | None = CANDIDATES, *, given: int = 0, thinking: bool = False
) -> OpenCandidates:
    """Merge the forms of what is stored for an open question, and keep ``count`` different answers; None keeps all.

    Where the first strings were ``given``, these and the original answer are all the candidates.

    >>> stored = {"text": " 6 fingers", "strings": [" 5 fingers", " 6 fingers", " six fingers", " 7 fingers"],
    ...           "scores": [-2.0, -1.0, -1.0, -3.0], "prior_scores": [-0.1, -3.0, -3.0, -5.0],
    ...           "token_counts": [3, 3, 4, 3], "found": [False, True, True, True]}
    >>> kept = candidates_of(stored, 2)
    >>> kept.labels, kept.original, kept.sources, round(kept.image_scores[0], 3)
    (('6 fingers', '5 fingers'), '6 fingers', ('original+image', 'text'), -0.307)
    """
    answer = read_open_answer(stored["text"], thinking=thinking)
    own = None if answer is None else normalize_answer(answer)
    merged = merge_forms(stored["strings"], stored["scores"], stored["prior_scores"])
    image, prior = merged.scores
    names = [normalize_answer(label) for label in merged.labels]
    by_score = sorted(range(len(names)), key=lambda place: (-image[place], names[place]))
    first = max(given, 1)  # the answer without the image, or all that were given
    needed = [place for place in by_score if names[place] == own or min(merged.members[place]) < first]
    kept = needed if given else [*needed, *(place for place in by_score if place not in needed)][:count]
    kept.sort(key=by_score.index)
    marks = stored.get("censored")

    def of_form(name: str) -> list[Any]:
        return [stored[name][merged.chosen[place]] for place in kept]

    return OpenCandidates(
        tuple(merged.labels[place] for place in kept),
        tuple(image[place] for place in kept),
        tuple(prior[place] for place in kept),
        tuple(of_form("token_counts")),
        tuple(_sources(names[place] == own, merged.members[place], stored["found"]) for place in kept),
        None if marks is None else tuple(any(marks[member] for member in merged.members[place]) for place in kept),
        next((merged.labels[place] for place in kept if names[place] == own), None),
        {view: of_form(name) for view, name in FIRST_TOKENS.items() if name in stored},
    )


def _sources(is_original: bool, members: Sequence[int], found: Sequence[bool]) -> str:
    """The first string is the answer without the image."""
    told = ["original"] if is_original else []
    told += ["text"] if 0 in members else []
    return "+".join([*told, "image"] if any(found[place] for place in members) else told)
