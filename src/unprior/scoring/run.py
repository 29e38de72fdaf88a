"""A scoring run: computes what the store lacks, chunk by chunk, and makes the score table of what is stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from PIL import Image

from unprior.benchmarks.schema import OPEN, Benchmark
from unprior.engines.load import BATCH_SIZE, CANDIDATES
from unprior.engines.protocol import Answered, CandidateScores, Engine, Query, QueryFailure
from unprior.errors import UnpriorError
from unprior.images import blank, open_image, resize
from unprior.progress import Progress, Report, silent
from unprior.scores import ScoreTable
from unprior.scores.table import concatenate
from unprior.scoring.open_answers import OpenAsker, OpenScores
from unprior.scoring.plan import Chunk, Job, ScoringPlan, batches
from unprior.scoring.rows import Failure, StoredRows
from unprior.scoring.store import ScoreStore, StoredResult

AnyJob = TypeVar("AnyJob")
Batch = TypeVar("Batch")
SCORING = "Scoring"
"""What progress calls the work of a scoring run."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did."""

    examples: int
    computed: int
    """Results that were computed now: one per example and one per question and view, also of claims asked otherwise."""
    reused: int
    """Results that were stored already."""
    failures: tuple[Failure, ...]
    censored: int = 0
    """Examples with a candidate whose score is only a bound; failures unless they were allowed."""
    cut_off: int = 0
    """Answers that were cut off while the model was thinking; they are not read, and count as wrong."""
    image_passes: float = 1.0
    """Mean number of passes of a question with its image, before results are shared; blank images do not count."""
    text_passes: float = 1.0
    """The same without an image."""


@dataclass(frozen=True, slots=True)
class ReadyBatch:
    """Jobs of one kind whose images are read."""

    jobs: list[Job]
    queries: list[Query]
    """One for each job."""
    failed: list[StoredResult]
    """Results of those whose images cannot be read."""


class JobWorker:
    """Computes results with an engine.

    Parameters
    ----------
    engine
        What is asked.
    resize_to
        Side of the square that images are brought to before the model's own processing; None leaves them.
    mean
        The mean image, for the view of that name.
    """

    def __init__(self, engine: Engine, resize_to: int | None, mean: Image.Image | None) -> None:
        """Keep what is needed."""
        self.engine, self.resize_to, self.mean = engine, resize_to, mean
        self._open = OpenAsker(engine)

    def compute(self, batch: Sequence[Job]) -> list[StoredResult]:
        """Results of jobs of one kind; a job that cannot be done has a failure as result."""
        return self.ask(self.prepare(batch))

    def prepare(self, batch: Sequence[Job]) -> ReadyBatch:
        """Read the images of a batch."""
        queries, ready, failed = [], [], []
        for job in batch:
            try:
                queries.append(Query(self._shown(job), job.text, self.engine.layout.continuations(job.labels)))
                ready.append(job)
            except UnpriorError as error:
                failed.append(StoredResult(job.key, failure=str(error)))
        return ReadyBatch(ready, queries, failed)

    def ask(self, batch: ReadyBatch) -> list[StoredResult]:
        """Let the engine work on a batch."""
        if not batch.jobs:
            return batch.failed
        outcomes: Sequence[Answered | CandidateScores | OpenScores | QueryFailure]
        if batch.jobs[0].view == OPEN:
            outcomes = self._open.ask(batch.queries)
        elif batch.jobs[0].view is None:
            outcomes = self.engine.answer_batch(batch.queries)
        else:
            outcomes = self.engine.score_batch(batch.queries)
        results = [_stored(job.key, outcome) for job, outcome in zip(batch.jobs, outcomes, strict=True)]
        return [*batch.failed, *results]

    def _shown(self, job: Job) -> Image.Image | None:
        """The image for a job: the example's own, a blank one, the mean, or none."""
        if job.view == "text":
            return None
        if job.view == "mean":
            if self.mean is None:
                raise UnpriorError("no development image could be read for the mean image")
            return self.mean
        level = 255 if job.view == "white" else 0
        if job.kind == "blank" and self.resize_to:  # all images have one size, so this one need not be readable
            return blank((self.resize_to, self.resize_to), level)
        image = resize(open_image(job.image), self.resize_to)
        return blank(image.size, level) if job.kind == "blank" else image


class AnyRun(Protocol):
    """A scoring run, on this machine or on many."""

    @property
    def plan(self) -> ScoringPlan:
        """What has to be asked."""
        ...

    @property
    def store(self) -> ScoreStore:
        """Where results are kept."""
        ...

    @property
    def rows(self) -> StoredRows:
        """The rows of the table."""
        ...

    def run(self, report: Report = ..., keep: Callable[[ScoreTable], None] | None = None) -> Summary:
        """Compute what is missing."""
        ...


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
    full_benchmark
        The benchmark that the examples are a part of: the mean image is made of its development images.
    allow_censored
        Also take examples with candidates outside the tokens that a server shows; their scores are upper bounds.
    prior
        What else is asked about two claims: ``plain`` (nothing), ``symmetric`` or ``canonical``.
    candidates, all_candidates
        Different answers that are kept of those that the model proposes to an open question; or all of them.
    """

    def __init__(
        self,
        engine: Engine,
        benchmark: Benchmark,
        store: ScoreStore,
        *,
        views: Sequence[str] = (),
        resize_to: int | None = None,
        batch_size: int = BATCH_SIZE,
        full_benchmark: Benchmark | None = None,
        allow_censored: bool = False,
        prior: str = "plain",
        candidates: int = CANDIDATES,
        all_candidates: bool = False,
    ) -> None:
        """Check the request."""
        if batch_size < 1:
            raise UnpriorError(f"the batch size is {batch_size}, it must be at least 1")
        self.plan = ScoringPlan(
            engine, benchmark, views=views, resize_to=resize_to, full_benchmark=full_benchmark, prior=prior,
            candidates=candidates,
        )  # fmt: skip
        self.rows = StoredRows(self.plan, store, allow_censored=allow_censored, all_candidates=all_candidates)
        self.store, self.batch_size = store, max(batch_size, engine.capabilities.batch_size)
        self._worker = JobWorker(engine, resize_to, self.plan.mean)

    def run(self, report: Report = silent, keep: Callable[[ScoreTable], None] | None = None) -> Summary:
        """Compute what is missing; stopping at any moment loses at most the batch in work.

        ``keep`` is given the rows of every chunk of the table when all is computed: one answer may show that the model
        thinks, and then all answers are read accordingly.
        """
        failures: list[Failure] = []
        computed = reused = censored = cut_off = 0
        thinking = False
        where = Progress(SCORING, 0, len(self.plan.benchmark))
        for chunk in self.plan.chunks():
            now = compute_missing(
                self.store,
                chunk.jobs,
                lambda jobs: _one_ahead(self._worker.prepare, batches(jobs, self.batch_size)),
                self._worker.ask,
                _in_examples(chunk, where, report),
            )
            computed += now
            reused += len(chunk.jobs) - now
            rows = self.rows.collect(chunk)
            failures += rows.failures
            censored += rows.censored
            thinking = thinking or self.rows.shows_thinking(chunk)
            where = _after(chunk, where, len(failures), stored=len(chunk.jobs) - now)
        self.rows.thinking = thinking
        for rows in self.rows.chunks() if keep or thinking else ():
            cut_off += rows.cut_off
            if keep and (table := rows.table()):
                keep(table)
        return Summary(where.done, computed, reused, tuple(failures), censored, cut_off, *self.plan.passes())

    def table(self) -> ScoreTable:
        """The score table of every example that has all its scores."""
        chunks = list(self.rows.chunks())
        tables = [table for chunk in chunks if (table := chunk.table())]
        if not tables:
            reasons = [failure.reason for chunk in chunks for failure in chunk.failures]
            first = reasons[0] if reasons else "nothing was scored"
            raise UnpriorError(f"no example of {self.plan.benchmark.name} has scores; the first failure: {first}")
        return concatenate(tables)


def compute_missing(
    store: ScoreStore,
    jobs: Mapping[str, AnyJob],
    batches: Callable[[list[AnyJob]], Iterable[Batch]],
    compute: Callable[[Batch], list[StoredResult]],
    report: Report = silent,
    *,
    doing: str = SCORING,
) -> int:
    """Compute the jobs whose keys the store lacks, batch by batch, storing each batch when it is done.

    Returns how many were missing.
    """
    missing = store.missing(jobs)
    done = reused = len(jobs) - len(missing)
    failed = 0
    report(Progress(doing, done, len(jobs), failed, reused))
    for batch in batches([jobs[key] for key in missing]):
        results = compute(batch)
        store.put(results)
        done += len(results)
        failed += sum(result.failure is not None for result in results)
        report(Progress(doing, done, len(jobs), failed, reused))
    if missing:
        store.note_date()
    return len(missing)


def _one_ahead(prepare: Callable[[list[Job]], ReadyBatch], items: Iterable[list[Job]]) -> Iterator[ReadyBatch]:
    """Prepare every batch while the engine works on the one before, so that it need not wait for images."""
    with ThreadPoolExecutor(1, "unprior-images") as helper:
        waiting: Future[ReadyBatch] | None = None
        for item in items:
            following = helper.submit(prepare, item)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()


def _in_examples(chunk: Chunk, before: Progress, report: Report) -> Report:
    """Reports on the results of a chunk, as reports on the examples of the run."""
    unreadable = sum(planned.unreadable is not None for planned in chunk.examples)

    def tell(where: Progress) -> None:
        share = len(chunk.examples) / max(where.total, 1)
        done, reused = before.done + round(share * where.done), before.reused + round(share * where.reused)
        report(Progress(SCORING, done, before.total, before.failed + unreadable + where.failed, reused))

    return tell


def _after(chunk: Chunk, before: Progress, failed: int, stored: int) -> Progress:
    share = len(chunk.examples) / max(len(chunk.jobs), 1)
    reused = before.reused + round(share * stored)
    return Progress(SCORING, before.done + len(chunk.examples), before.total, failed, reused)


def _stored(key: str, outcome: Answered | CandidateScores | OpenScores | QueryFailure) -> StoredResult:
    if isinstance(outcome, QueryFailure):
        return StoredResult(key, failure=outcome.reason)
    value = outcome.record() if isinstance(outcome, OpenScores) else _record(outcome)
    if not all(map(math.isfinite, (*value["scores"], *value.get("prior_scores", ())))):
        return StoredResult(key, failure="the model gave a score that is not finite; try another dtype, e.g. float32")
    return StoredResult(key, value=value)


def _record(outcome: Answered | CandidateScores) -> dict[str, Any]:
    scored = outcome.scored if isinstance(outcome, Answered) else outcome
    value: dict[str, Any] = {"scores": list(scored.scores), "token_counts": list(scored.token_counts)}
    if scored.censored is not None and any(scored.censored):
        value["censored"] = list(scored.censored)
    if isinstance(outcome, Answered):
        value["text"] = outcome.text
    return value
