"""From stored results to the rows of a score table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from unprior.benchmarks.schema import Example
from unprior.errors import format_option
from unprior.prompts import is_cut_off, parse_answer, thinks
from unprior.scores import ScoreTable
from unprior.scores.provenance import Provenance
from unprior.scores.schema import MAX_SCORE
from unprior.scoring.open_answers import FIRST_TOKENS, candidates_of
from unprior.scoring.plan import Chunk, PlannedExample, ScoringPlan
from unprior.scoring.store import ScoreStore

_CENSORED = (
    "{hidden} of its candidates are not among the {top_k} tokens that the server shows, so their scores are only "
    "bounds; serve the model with vLLM 0.26 or newer, or take the bounds with " + format_option("allow_censored", True)
)
_MAX_LIKELY = 1e-2  # a log-probability of one, with room for rounding
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character, which no file can hold
_OTHER = "what was stored for it is no result and has been removed; the same command computes it again"


@dataclass(frozen=True, slots=True)
class Failure:
    """An example that has no scores, and why."""

    example_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """What is stored for some examples."""

    rows: list[dict[str, Any]]
    """Rows of the examples that have all their scores."""
    failures: list[Failure]
    """The other examples."""
    censored: int
    """Examples with a candidate that is only bounded, allowed or not."""
    cut_off: int
    """Rows whose answer was cut off while the model was thinking; they have no original answer."""
    provenance: Provenance | None = None
    """How the scores were made."""

    def table(self) -> ScoreTable | None:
        """The rows as a table, None if there are none."""
        if not self.rows:
            return None
        made = () if self.provenance is None else (self.provenance,)
        return ScoreTable.from_rows(self.rows, require_answers=False, provenance=made)


class StoredRows:
    """Rows of a plan's examples, made of what a store holds.

    Parameters
    ----------
    plan, store
        Which results belong to an example, and where they are.
    allow_censored
        Also take examples with candidates outside the tokens that a server shows; their scores are upper bounds.
    all_candidates
        Keep all answers that the model proposes to an open question, instead of a fixed number.
    """

    def __init__(
        self, plan: ScoringPlan, store: ScoreStore, *, allow_censored: bool = False, all_candidates: bool = False
    ) -> None:
        """Keep what is needed."""
        self.plan, self.store, self.allow_censored = plan, store, allow_censored
        self.candidates = None if all_candidates else plan.candidates
        self.thinking: bool | None = None
        """Whether the answers are those of a thinking model; None until all of them were looked at."""
        # Chunks of one table must agree on the type of their pair ids.
        self._number_ids = all(isinstance(_pair_id(example), int) for example in plan.benchmark)

    def collect(self, chunk: Chunk) -> ChunkRows:
        """Collect the rows of a chunk; how its answers are read depends on ``thinking``."""
        stored = self.store.get(key for planned in chunk.examples for key in planned.keys)
        rows, failures, censored = [], [], 0
        for planned in chunk.examples:
            name = planned.example.example_id
            reason = planned.unreadable
            for key in planned.keys:
                reason = reason or (stored[key].failure if key in stored else "not computed yet")
            if reason is not None:
                failures.append(Failure(name, reason))
                continue
            values: dict[str, Any] = {key: stored[key].value for key in planned.keys}
            if wrong := [key for key in planned.keys if not _belongs(values[key], planned, key)]:
                self.store.discard(wrong)
                failures.append(Failure(name, f"{self.store.path}: {_OTHER}"))
                continue
            hidden = max(sum(value.get("censored", ())) for value in values.values())
            censored += hidden > 0
            if hidden and not self.allow_censored:
                top_k = self.plan.engine.capabilities.top_k
                failures.append(Failure(name, _CENSORED.format(hidden=hidden, top_k=top_k)))
                continue
            if planned.example.is_open:
                rows.append(self._open_row(planned.example, values[planned.image_key]))
                continue
            views = {view: values[key]["scores"] for view, key in planned.view_keys.items()}
            rows.append(
                self._row(planned.example, values[planned.image_key], views)
                | {"censored": _marks(values.values(), len(planned.example.labels)) if hidden else None}
            )
        cut_off = sum(is_cut_off(row["original_text"], thinking=bool(self.thinking)) for row in rows)
        made = self.plan.provenance().model_copy(update={"date": self.store.date})
        return ChunkRows(rows, failures, censored, cut_off, made)

    def chunks(self) -> Iterator[ChunkRows]:
        """Collect the rows of all chunks, one after the other."""
        if self.thinking is None:  # one answer tells how all others are to be read, so it must be known before
            self.thinking = any(map(self.shows_thinking, self.plan.chunks()))
        return map(self.collect, self.plan.chunks())

    def shows_thinking(self, chunk: Chunk) -> bool:
        """Whether a stored answer of a chunk has a tag of thinking."""
        stored = self.store.get(planned.image_key for planned in chunk.examples if planned.unreadable is None)
        values: list[Any] = [result.value for result in stored.values()]
        texts = [value.get("text") for value in values if isinstance(value, dict)]
        return thinks(text for text in texts if isinstance(text, str))

    def _about(self, example: Example, text: str) -> dict[str, Any]:
        """What a row says of its example, whatever its candidates are."""
        pair = _pair_id(example)
        return {
            "model": self.plan.engine.name,
            "benchmark": self.plan.benchmark.name,
            "pair_id": pair if self._number_ids else str(pair),
            "side": example.side,
            "task": example.task,
            "category": example.category,
            "subcategory": example.subcategory,
            "split": example.split,
            "answer": example.answer,
            "original_text": text,
            "example_id": example.example_id,
        }

    def _open_row(self, example: Example, stored: dict[str, Any]) -> dict[str, Any]:
        found = candidates_of(stored, self.candidates, given=len(example.given), thinking=bool(self.thinking))
        return (
            self._about(example, stored["text"])
            | {
                "candidates": list(found.labels),
                "image_scores": list(found.image_scores),
                "prior_scores": list(found.prior_scores),
                "original": found.original,
                "token_counts": list(found.token_counts),
                "censored": None if found.censored is None else list(found.censored),
                "aliases": list(example.aliases) or None,
            }
            | ({} if self.candidates else {"sources": list(found.sources), "views": found.first_scores or None})
        )

    def _row(self, example: Example, answered: dict[str, Any], views: dict[str, list[float]]) -> dict[str, Any]:
        return self._about(example, answered["text"]) | {
            "candidates": list(example.labels),
            "image_scores": answered["scores"],
            "prior_scores": views["text"],
            "original": parse_answer(answered["text"], example.labels, thinking=bool(self.thinking)),
            "views": {view: scores for view, scores in views.items() if view != "text"} or None,
            "token_counts": answered["token_counts"],
            "form": example.form,
            "claim_order": example.claim_order,
            "claims": None if example.claims is None else list(example.claims),
        }


def _belongs(value: Any, planned: PlannedExample, key: str) -> bool:
    """Whether a stored value is what a scoring run stores under one of the keys of an example."""
    if planned.example.is_open:
        return _is_open_result(value)
    return _is_result(value, len(planned.example.labels), answered=key == planned.image_key)


def _is_open_result(value: Any) -> bool:
    strings = value.get("strings") if isinstance(value, dict) else None
    if not isinstance(strings, list) or not all(map(_is_text, strings)):
        return False
    if not strings or len(set(strings)) < len(strings) or not all(map(str.strip, strings)):
        return False
    found = value.get("found")
    if not isinstance(found, list) or len(found) != len(strings) or not all(type(each) is bool for each in found):
        return False
    names = ("prior_scores", *(name for name in FIRST_TOKENS.values() if name in value))
    others = [{"scores": value.get(name), "token_counts": value.get("token_counts")} for name in names]
    return all(_is_result(each, len(strings), answered=each is value) for each in (value, *others))


def _is_result(value: Any, count: int, *, answered: bool) -> bool:
    """Whether a stored value is what a scoring run stores: scores, token counts, and an answer where one was asked."""
    if not isinstance(value, dict) or (answered and not _is_text(value.get("text"))):
        return False
    tests: dict[str, Callable[[Any], bool]] = {
        "scores": lambda entry: type(entry) in (int, float) and -MAX_SCORE <= entry <= _MAX_LIKELY,
        "token_counts": lambda entry: type(entry) is int and 0 <= entry < 2**31,
        "censored": lambda entry: type(entry) is bool,
    }
    lists = {name: value.get(name) for name in tests if name != "censored" or name in value}
    return all(
        isinstance(entries, list) and len(entries) == count and all(map(tests[name], entries))
        for name, entries in lists.items()
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and _SURROGATE.search(value) is None


def _marks(values: Iterable[dict[str, Any]], candidates: int) -> list[bool]:
    """Candidates whose score is only a bound, with the image or without."""
    marks = [value.get("censored", [False] * candidates) for value in values]
    return [any(each) for each in zip(*marks, strict=True)]


def _pair_id(example: Example) -> int | str:
    return example.example_id if example.pair_id is None else example.pair_id
