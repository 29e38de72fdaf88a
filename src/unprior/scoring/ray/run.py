"""A scoring run on many machines: its workers hold the engine and write shards, which become one store and table."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from unprior.benchmarks.schema import Benchmark
from unprior.engines.load import BATCH_SIZE, CANDIDATES
from unprior.engines.protocol import EngineInfo
from unprior.progress import Progress, Report, silent
from unprior.scoring.plan import Job, ScoringPlan, batches
from unprior.scoring.ray.cluster import Load, Pool, WorkerSpec, finished_shards
from unprior.scoring.rows import Failure, StoredRows
from unprior.scoring.run import SCORING, Summary
from unprior.scoring.shards import ShardFolder
from unprior.scoring.store import ScoreStore

if TYPE_CHECKING:
    from unprior.scores import ScoreTable


class DistributedRun:
    """Scores a benchmark with engines on the workers of a Ray cluster, which must be joined already.

    Results are the same as those of :class:`~unprior.scoring.run.ScoringRun`, and stored under the same keys.

    Parameters
    ----------
    load, engine
        How a worker loads the engine, and what the engine is.
    benchmark, store
        What is asked, and where results are kept in the end; only this process opens the store.
    folder
        Where workers put their shards; all machines reach it under this path, and the images under theirs.
    pool
        The workers.
    views, resize_to, batch_size, full_benchmark, allow_censored, prior, candidates
        As for a scoring run on one machine.
    """

    def __init__(
        self,
        load: Load,
        engine: EngineInfo,
        benchmark: Benchmark,
        store: ScoreStore,
        folder: Path,
        pool: Pool,
        *,
        views: Sequence[str] = (),
        resize_to: int | None = None,
        batch_size: int = BATCH_SIZE,
        full_benchmark: Benchmark | None = None,
        allow_censored: bool = False,
        prior: str = "plain",
        candidates: int = CANDIDATES,
    ) -> None:
        """Check the request."""
        self.plan = ScoringPlan(
            engine, benchmark, views=views, resize_to=resize_to, full_benchmark=full_benchmark, prior=prior,
            candidates=candidates,
        )  # fmt: skip
        self.rows = StoredRows(self.plan, store, allow_censored=allow_censored)
        self.store, self.shards, self.pool = store, ShardFolder(folder), pool
        self.batch_size = max(batch_size, engine.capabilities.batch_size)
        self._load, self._total, self._missing = load, 0, 0

    def run(self, report: Report = silent, keep: Callable[[ScoreTable], None] | None = None) -> Summary:
        """Compute what is missing; stopping at any moment loses at most the batches in work.

        ``keep`` is given the rows of every chunk of the table when all is computed.
        """
        with self.shards.locked():
            self.shards.merge(self.store)  # of a job that was stopped
            try:
                self._work(self.shards.write_queue(self._queue()), report)
            finally:
                self.shards.merge(self.store)
        failures: list[Failure] = []
        censored = cut_off = 0
        if self._missing:
            self.store.note_date()
        for rows in self.rows.chunks():
            failures += rows.failures
            censored += rows.censored
            cut_off += rows.cut_off
            if keep and (table := rows.table()):
                keep(table)
        reused = self._total - self._missing
        counts = (len(self.plan.benchmark), self._missing, reused)
        return Summary(*counts, tuple(failures), censored, cut_off, *self.plan.passes())

    def _queue(self) -> Iterator[list[Job]]:
        self._total = self._missing = 0
        for chunk in self.plan.chunks():
            missing = self.store.missing(chunk.jobs)
            self._total += len(chunk.jobs)
            self._missing += len(missing)
            yield from batches((chunk.jobs[key] for key in missing), self.batch_size)

    def _work(self, count: int, report: Report) -> None:
        """Let the workers do the batches of the queue, and store what they finish."""
        examples, reused, failed = len(self.plan.benchmark), self._total - self._missing, 0
        share = examples / max(self._total, 1)  # a result is a share of an example
        done = reused
        workers = "one worker" if self.pool.workers == 1 else f"{self.pool.workers} workers"
        doing = f"{SCORING} with {workers}"

        def tell() -> None:
            report(Progress(doing, round(share * done), examples, failed, round(share * reused)))

        tell()
        if count == 0:
            return
        spec = WorkerSpec(
            self._load, self.shards, self.plan.engine.fingerprint, self.plan.resize_to, _png(self.plan.mean)
        )
        for name in finished_shards(spec, count, self.pool):
            now, failed_now = self.shards.ingest(name, self.store)
            done, failed = done + now, failed + failed_now
            tell()


def _png(image: Image.Image | None) -> bytes | None:
    if image is None:
        return None
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
