"""A scoring run: what must be computed, what is already stored, and the score table at the end.

Image scores are computed once per example. Prior scores do not depend on the image, so they are computed once per
question and view and shared by all its images.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image

from unprior.benchmarks.schema import Benchmark, Example
from unprior.engines.images import blank, decode_image, mean_image, open_image, resize
from unprior.engines.prompts import parse_answer
from unprior.engines.protocol import Answered, CandidateScores, Engine, Query, QueryFailure
from unprior.engines.store import ScoreStore, StoredResult
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.priors import VIEWS

_MEAN_SIDE = 512
_CENSORED = (
    "{hidden} of its candidates are not among the {top_k} tokens that the server shows, so their scores are only "
    "bounds; serve the model with vLLM 0.26 or newer, or take the bounds with --allow-censored"
)

Job = TypeVar("Job")


@dataclass(frozen=True, slots=True)
class Failure:
    """An example that has no scores, and why."""

    example_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    done: int
    total: int
    failed: int
    doing: str | None = None
    """What is going on, where that changes on the way."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did."""

    examples: int
    computed: int
    """Results that were computed now: one per example and one per question and view."""
    reused: int
    """Results that were stored already."""
    failures: tuple[Failure, ...]
    censored: int = 0
    """Examples with a candidate whose score is only a bound; failures unless they were allowed."""


@dataclass(frozen=True)
class _Job:
    """One result to compute; several examples may share it."""

    key: str
    text: str
    labels: tuple[str, ...]
    example: Example
    """An example that needs it; its image is the one to show, or gives the size of a blank one."""
    view: str | None
    """None for the image itself."""

    @property
    def kind(self) -> str:
        """What a batch must not mix: the example's image, a blank image, no image."""
        return "image" if self.view is None else "text" if self.view == "text" else "blank"


@dataclass
class _Plan:
    jobs: dict[str, _Job] = field(default_factory=dict)
    image_key: dict[str, str] = field(default_factory=dict)
    view_keys: dict[str, dict[str, str]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


class ScoringRun:
    """Scores a benchmark with an engine, writing to a store as it goes.

    Parameters
    ----------
    engine, benchmark, store
        What asks, what is asked, and where results are kept.
    views
        Estimates of the prior besides ``text``: ``white``, ``black``, ``mean``.
    resize_to
        Side of the square that images are brought to before the model's own processing; None leaves them.
    batch_size
        Queries in one pass; results do not depend on it.
    whole
        The benchmark that the examples are a part of: the mean image is made of its development images.
    allow_censored
        Also take examples with candidates outside the tokens that a server shows; their scores are upper bounds.
    """

    def __init__(
        self,
        engine: Engine,
        benchmark: Benchmark,
        store: ScoreStore,
        *,
        views: Sequence[str] = (),
        resize_to: int | None = None,
        batch_size: int = 8,
        whole: Benchmark | None = None,
        allow_censored: bool = False,
    ) -> None:
        """Check the request and find out what has to be computed."""
        unknown = sorted(set(views) - set(VIEWS))
        if unknown:
            raise UnpriorError(f"unknown view {', '.join(unknown)}; choose from {', '.join(VIEWS)}")
        if batch_size < 1:
            raise UnpriorError(f"the batch size is {batch_size}, it must be at least 1")
        if not engine.capabilities.exact_scores and engine.capabilities.top_k is None:
            raise UnpriorError(f"engine {engine.name} gives no candidate scores, which calibration needs")
        self.engine, self.benchmark, self.store = engine, benchmark, store
        self.views = tuple(view for view in VIEWS if view == "text" or view in views)
        self.resize_to, self.batch_size = resize_to, max(batch_size, engine.capabilities.batch_size)
        self.allow_censored = allow_censored
        self._mean, self._mean_digest = None, ""
        if "mean" in self.views:
            self._mean = self._mean_of_development(whole or benchmark)
            self._mean_digest = "" if self._mean is None else hashlib.sha256(self._mean.tobytes()).hexdigest()
        self._plan = self._make_plan()

    def run(self, report: Callable[[Progress], None] | None = None) -> Summary:
        """Compute what is missing; stopping at any moment loses at most the batch in work."""
        jobs = self._plan.jobs
        computed = compute_missing(
            self.store, jobs, self._batches, self._compute, report, failed=len(self._plan.unreadable)
        )
        _, failures, censored = self._collect()
        return Summary(len(self.benchmark), computed, len(jobs) - computed, tuple(failures), censored)

    def table(self) -> ScoreTable:
        """The score table of every example that has all its scores."""
        rows, failures, _ = self._collect()
        if not rows:
            first = failures[0].reason if failures else "nothing was scored"
            raise UnpriorError(f"no example of {self.benchmark.name} has scores; the first failure: {first}")
        return ScoreTable.from_rows(rows, require_answers=False)

    def _make_plan(self) -> _Plan:
        plan = _Plan()
        digests, unreadable = digest_images(self.benchmark)
        for example in self.benchmark:
            if example.image in unreadable:
                plan.unreadable[example.example_id] = unreadable[example.image]
                continue
            text = example.user_text(self.engine.layout)
            key = self._key("image", text, example.labels, digests[example.image])
            plan.image_key[example.example_id] = key
            plan.jobs.setdefault(key, _Job(key, text, example.labels, example, None))
            for view in self.views:
                # Blank images have the size of the image they stand for, unless all are brought to one size.
                shown = {"text": "", "mean": self._mean_digest}.get(
                    view, "" if self.resize_to else digests[example.image]
                )
                key = self._key(f"view:{view}", text, example.labels, shown)
                plan.view_keys.setdefault(example.example_id, {})[view] = key
                plan.jobs.setdefault(key, _Job(key, text, example.labels, example, view))
        return plan

    def _key(self, kind: str, text: str, labels: tuple[str, ...], image: str) -> str:
        """Everything that may change a result: engine, prompt, candidates, image bytes and their resizing."""
        candidates = self.engine.layout.continuations(labels)
        resized = None if kind == "view:text" else self.resize_to
        content = [self.engine.fingerprint, kind, text, candidates, image, resized]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def _batches(self, jobs: list[_Job]) -> Iterable[list[_Job]]:
        """Queries of one kind and of similar length, so that little is padded."""
        for kind in ("image", "blank", "text"):
            group = sorted((job for job in jobs if job.kind == kind), key=lambda job: len(job.text))
            for start in range(0, len(group), self.batch_size):
                yield group[start : start + self.batch_size]

    def _compute(self, batch: list[_Job]) -> list[StoredResult]:
        queries, ready, results = [], [], []
        for job in batch:
            try:
                queries.append(Query(self._shown(job), job.text, self.engine.layout.continuations(job.labels)))
                ready.append(job)
            except UnpriorError as error:
                results.append(StoredResult(job.key, failure=str(error)))
        if not queries:
            return results
        outcomes: Sequence[Answered | CandidateScores | QueryFailure]
        outcomes = self.engine.answer_batch(queries) if batch[0].view is None else self.engine.score_batch(queries)
        for job, outcome in zip(ready, outcomes, strict=True):
            results.append(_stored(job.key, outcome))
        return results

    def _shown(self, job: _Job) -> Image.Image | None:
        """The image for a job: the example's own, a blank one, the mean, or none."""
        if job.view == "text":
            return None
        if job.view == "mean":
            if self._mean is None:
                raise UnpriorError("no development image could be read for the mean image")
            return self._mean
        image = resize(decode_image(job.example.image.read_bytes(), str(job.example.image)), self.resize_to)
        if job.view is None:
            return image
        return blank(image.size, 255 if job.view == "white" else 0)

    def _mean_of_development(self, whole: Benchmark) -> Image.Image | None:
        """Mean of the distinct development images; unreadable ones are left to fail on their own."""
        chosen = [example for example in whole if example.split == "dev"] or list(whole)
        images = _readable(dict.fromkeys(example.image for example in chosen))
        first = next(images, None)
        return None if first is None else mean_image(chain([first], images), self.resize_to or _MEAN_SIDE)

    def _collect(self) -> tuple[list[dict[str, Any]], list[Failure], int]:
        """Rows of the table, examples without one, and how many have a candidate that is only bounded."""
        plan = self._plan
        stored = self.store.get(plan.jobs)
        rows, failures, censored = [], [], 0
        for example in self.benchmark:
            name = example.example_id
            if name in plan.unreadable:
                failures.append(Failure(name, plan.unreadable[name]))
                continue
            keys = [plan.image_key[name], *plan.view_keys[name].values()]
            reasons = [
                (stored[key].failure if key in stored else "not computed yet")
                for key in keys
                if key not in stored or stored[key].failure is not None
            ]
            if reasons:
                failures.append(Failure(name, str(reasons[0])))
                continue
            values: dict[str, Any] = {key: stored[key].value for key in keys}
            hidden = max(sum(value.get("censored", ())) for value in values.values())
            censored += hidden > 0
            if hidden and not self.allow_censored:
                failures.append(Failure(name, _CENSORED.format(hidden=hidden, top_k=self.engine.capabilities.top_k)))
                continue
            views = {view: values[key]["scores"] for view, key in plan.view_keys[name].items()}
            rows.append(self._row(example, values[keys[0]], views))
        return rows, failures, censored

    def _row(self, example: Example, answered: dict[str, Any], views: dict[str, list[float]]) -> dict[str, Any]:
        return {
            "model": self.engine.name,
            "benchmark": self.benchmark.name,
            "pair_id": example.example_id if example.pair_id is None else example.pair_id,
            "side": example.side,
            "task": example.task,
            "category": example.category,
            "subcategory": example.subcategory,
            "split": example.split,
            "candidates": list(example.labels),
            "image_scores": answered["scores"],
            "prior_scores": views["text"],
            "original": parse_answer(answered["text"], example.labels),
            "answer": example.answer,
            "views": {view: scores for view, scores in views.items() if view != "text"} or None,
            "original_text": answered["text"],
            "token_counts": answered["token_counts"],
            "example_id": example.example_id,
        }


def compute_missing(
    store: ScoreStore,
    jobs: Mapping[str, Job],
    batches: Callable[[list[Job]], Iterable[list[Job]]],
    compute: Callable[[list[Job]], list[StoredResult]],
    report: Callable[[Progress], None] | None = None,
    *,
    failed: int = 0,
) -> int:
    """Compute the jobs whose keys the store lacks, batch by batch, storing each batch when it is done.

    Returns how many were missing; ``failed`` counts what failed before.
    """
    missing = store.missing(jobs)
    done = len(jobs) - len(missing)
    if report:
        report(Progress(done, len(jobs), failed))
    for batch in batches([jobs[key] for key in missing]):
        results = compute(batch)
        store.put(results)
        done += len(results)
        failed += sum(result.failure is not None for result in results)
        if report:
            report(Progress(done, len(jobs), failed))
    return len(missing)


def digest_images(benchmark: Benchmark) -> tuple[dict[Path, str], dict[Path, str]]:
    """What tells one image from another, for every image of a benchmark, and why some cannot be read."""
    digests: dict[Path, str] = {}
    unreadable: dict[Path, str] = {}
    for image in benchmark.images():
        try:
            digests[image] = hashlib.sha256(image.read_bytes()).hexdigest()
        except OSError as error:
            unreadable[image] = f"{image}: cannot be read ({error.strerror or error})"
    return digests, unreadable


def _readable(paths: Iterable[Path]) -> Iterator[Image.Image]:
    for path in paths:
        try:
            yield open_image(path)
        except UnpriorError:
            continue


def _stored(key: str, outcome: Answered | CandidateScores | QueryFailure) -> StoredResult:
    if isinstance(outcome, QueryFailure):
        return StoredResult(key, failure=outcome.reason)
    scored = outcome.scored if isinstance(outcome, Answered) else outcome
    if not all(math.isfinite(score) for score in scored.scores):
        return StoredResult(key, failure="the model gave a score that is not finite; try another dtype, e.g. float32")
    value: dict[str, Any] = {"scores": list(scored.scores), "token_counts": list(scored.token_counts)}
    if scored.censored is not None and any(scored.censored):
        value["censored"] = list(scored.censored)
    if isinstance(outcome, Answered):
        value["text"] = outcome.text
    return StoredResult(key, value=value)
