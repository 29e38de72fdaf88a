"""Answers of the methods to a benchmark: computed where they are missing, stored as they come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.answer_forms import read_open_answer
from unprior.baselines.decoding import Decoded, Question, decode_observed
from unprior.baselines.method import Method
from unprior.baselines.plain import Plain
from unprior.benchmarks.schema import Benchmark, Example
from unprior.engines.batches import work_in_parts
from unprior.engines.load import BATCH_SIZE
from unprior.engines.protocol import QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError
from unprior.images import open_image, resize
from unprior.progress import Report, silent
from unprior.prompts import parse_answer, thinks
from unprior.scoring.plan import digest_images
from unprior.scoring.rows import Failure
from unprior.scoring.run import compute_missing
from unprior.scoring.store import ScoreStore, StoredResult


@dataclass(frozen=True, slots=True)
class _Job:
    key: str
    method: Method
    example: Example
    text: str


class BaselineRun:
    """Asks every method every question of a benchmark, writing to a store as it goes.

    One loop serves all decoders, so that without their corrections they are one and the same: the matched reference
    is decoded once.

    Parameters
    ----------
    engine, benchmark, store
        What answers, what is asked, and where answers are kept; scoring runs may share the store.
    methods
        The methods; those with a matched reference bring it along.
    resize_to
        Side of the square that images are brought to before the model's own processing; None leaves them.
    batch_size
        Questions in one pass; answers do not depend on it.
    """

    def __init__(
        self,
        engine: TransformersEngine,
        benchmark: Benchmark,
        store: ScoreStore,
        methods: Sequence[Method],
        *,
        resize_to: int | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Find out what has to be computed."""
        if batch_size < 1:
            raise UnpriorError(f"the batch size is {batch_size}, it must be at least 1")
        for method in methods:
            with method.applied(engine):  # refuses a model that the method cannot change, before anything is computed
                pass
        self.engine, self.benchmark, self.store, self.methods = engine, benchmark, store, tuple(methods)
        self.resize_to, self.batch_size = resize_to, batch_size
        self._digests, self._unreadable = digest_images(benchmark.images())
        self._jobs = {method.name: self._jobs_of(method) for method in self._asked()}

    def run(self, report: Report = silent) -> tuple[Failure, ...]:
        """Compute what is missing; stopping at any moment loses at most the batch in work."""
        jobs = {job.key: job for part in self._jobs.values() for job in part.values()}
        compute_missing(self.store, jobs, self._batches, self._compute, report, doing="Answering")
        return (*self.unreadable(), *(failure for name in self._jobs for failure in self._failures_of(name)))

    def rows(self) -> list[dict[str, Any]]:
        """One row per method and example that has its answer, and its matched reference where there is one."""
        answers = {name: self._answers(name) for name in self._jobs}
        # One model for all methods.
        thinking = any(thinks(each["text"] for each in given.values()) for given in answers.values())
        rows = []
        for method in self.methods:
            given = answers[method.name]
            matched = answers[Plain.name] if method.matched() is not None else None
            for example in self.benchmark:
                name = example.example_id
                if name not in given or (matched is not None and name not in matched):
                    continue
                text, reference = given[name]["text"], None if matched is None else matched[name]["text"]
                rows.append(
                    {
                        "method": method.name,
                        "model": self.engine.name,
                        "benchmark": self.benchmark.name,
                        "example_id": name,
                        "pair_id": str(name if example.pair_id is None else example.pair_id),
                        "side": example.side,
                        "task": example.task,
                        "text": text,
                        "answer": _read(text, example, thinking),
                        "matched_text": reference,
                        "matched_answer": None if reference is None else _read(reference, example, thinking),
                        "positions": given[name].get("positions"),
                        "active_positions": given[name].get("active_positions"),
                    }
                )
        return rows

    def _asked(self) -> Iterator[Method]:
        yield from self.methods
        if any(method.matched() is not None for method in self.methods):
            yield Plain()

    def _jobs_of(self, method: Method) -> dict[str, _Job]:
        layout, jobs = method.layout(self.engine.layout), {}
        for example in self.benchmark:
            if example.image in self._unreadable:
                continue
            text = example.user_text(layout)
            content = [
                self.engine.fingerprint, "baseline", method.name, method.settings(), text,
                self._digests[example.image], self.resize_to, example.example_id if method.seeded else None,
            ]  # fmt: skip
            key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
            jobs[example.example_id] = _Job(key, method, example, text)
        return jobs

    def _batches(self, jobs: list[_Job]) -> Iterator[list[_Job]]:
        """Questions to one method, of similar length, so that little is padded."""
        for name in self._jobs:
            group = sorted((job for job in jobs if job.method.name == name), key=lambda job: len(job.text))
            for start in range(0, len(group), self.batch_size):
                yield group[start : start + self.batch_size]

    def _compute(self, batch: list[_Job]) -> list[StoredResult]:
        results, ready = [], []
        for job in batch:
            try:
                image = resize(open_image(job.example.image), self.resize_to)
                ready.append((job, Question(image, job.text, job.example.example_id)))
            except UnpriorError as error:
                results.append(StoredResult(job.key, failure=str(error)))
        method = batch[0].method
        outcomes = work_in_parts(
            [question for _, question in ready], lambda part: decode_observed(self.engine, method, part)
        )
        for (job, _), outcome in zip(ready, outcomes, strict=True):
            results.append(
                StoredResult(job.key, failure=outcome.reason)
                if isinstance(outcome, QueryFailure)
                else StoredResult(job.key, value=self._stored(outcome))
            )
        return results

    def _stored(self, outcome: Decoded) -> dict[str, Any]:
        activity = outcome.activity
        counts = {} if activity is None else {"positions": activity.positions, "active_positions": activity.active}
        return {"text": self.engine.text_of(outcome.tokens)} | counts

    def _answers(self, method: str) -> dict[str, dict[str, Any]]:
        """Text, and positions where the method has a gate, by example."""
        jobs = self._jobs[method]
        stored = self.store.get(job.key for job in jobs.values())
        values: dict[str, Any] = {key: result.value for key, result in stored.items() if result.value is not None}
        return {name: values[job.key] for name, job in jobs.items() if job.key in values}

    def unanswered(self, method: Method) -> tuple[Failure, ...]:
        """Examples that a method, or its matched reference, has no answer to, and why."""
        names = [method.name] if method.matched() is None else [method.name, Plain.name]
        return tuple(failure for name in names for failure in self._failures_of(name))

    def unreadable(self) -> tuple[Failure, ...]:
        """Examples whose image cannot be read, and why."""
        return tuple(
            Failure(example.example_id, self._unreadable[example.image])
            for example in self.benchmark
            if example.image in self._unreadable
        )

    def _failures_of(self, method: str) -> Iterator[Failure]:
        jobs = self._jobs[method]
        stored = self.store.get(job.key for job in jobs.values())
        for name, job in jobs.items():
            reason = stored[job.key].failure if job.key in stored else "not computed yet"
            if reason is not None:
                yield Failure(name, f"{method}: {reason}")


def _read(text: str, example: Example, thinking: bool) -> str | None:
    """The answer in what a method wrote: a candidate, or to an open question the words themselves."""
    if not example.is_open:
        return parse_answer(text, example.labels, thinking=thinking)
    answer = read_open_answer(text, thinking=thinking)
    return None if answer is None else answer.strip()
