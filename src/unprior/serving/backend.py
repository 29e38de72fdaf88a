"""A model as the server uses it: asked from an event loop, many questions at once, given up when a client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from unprior.engines.openai.client import RetryPolicy
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import CandidateScores, Engine, Query, QueryFailure
from unprior.errors import UnpriorError
from unprior.scoring.open_answers import Call, OpenAsker, OpenScores

MAX_BATCH = 16
"""Questions in one pass of a model in this process."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model wrote about an image, and the scores of the candidates; the answer is of use without them."""

    text: str
    scored: CandidateScores | QueryFailure


Result: TypeAlias = Any


class Backend(Protocol):
    """A model that is being served."""

    @property
    def engine(self) -> Engine:
        """The engine behind it."""
        ...

    async def answer(self, queries: Sequence[Query], patience: float) -> list[Reading | QueryFailure]:
        """Original answers and scores of questions about one image; scores may take so many seconds, answers longer."""
        ...

    async def score(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores alone, for the prior."""
        ...

    async def propose(self, query: Query, caller: str = "") -> OpenScores | QueryFailure:
        """Candidates of an open question with both scores; nothing is remembered from one caller for another."""
        ...

    async def original(self, query: Query) -> str | QueryFailure:
        """The original answer alone, where nothing else can be had."""
        ...

    @property
    def epoch(self) -> int:
        """Scores of different epochs are not to be mixed."""
        ...

    async def difference(self) -> str | None:
        """Why scores are no longer those of the model that was served first; None while they are."""
        ...

    async def close(self) -> None:
        """Let go of the model."""
        ...


class LocalBackend:
    """A model in this process. One thread works on it; what waits is done together, as far as it is of one kind."""

    def __init__(self, engine: Engine) -> None:
        """``engine``: any that is not behind a server."""
        self._engine = engine
        self._askers: dict[str, OpenAsker] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="unprior-model")
        self._waiting: list[_Job] = []
        self._worker: asyncio.Task[None] | None = None

    @property
    def engine(self) -> Engine:
        """The engine behind it."""
        return self._engine

    async def answer(self, queries: Sequence[Query], patience: float) -> list[Reading | QueryFailure]:
        """Original answers and scores with the image, both in one pass that encodes it once."""
        found = await self._do("answer", queries)
        return [each if isinstance(each, QueryFailure) else Reading(each.text, each.scored) for each in found]

    async def score(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores alone, for the prior."""
        return await self._do("score", queries)

    async def propose(self, query: Query, caller: str = "") -> OpenScores | QueryFailure:
        """Candidates of an open question with both scores."""
        found: list[OpenScores | QueryFailure] = await self._do(f"propose {caller}", [query])
        return found[0]

    async def original(self, query: Query) -> str | QueryFailure:
        """The original answer alone."""
        found: list[str | QueryFailure] = await self._do("original", [query])
        return found[0]

    @property
    def epoch(self) -> int:
        """One for all: the model stays."""
        return 0

    async def difference(self) -> str | None:
        """None: the model stays."""
        return None

    async def close(self) -> None:
        """Let go of the model; what waits is cancelled."""
        if self._worker is not None:
            self._worker.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _do(self, kind: str, queries: Sequence[Query]) -> list[Result]:
        loop = asyncio.get_running_loop()
        jobs = [_Job(kind, query, loop.create_future()) for query in queries]
        self._waiting += jobs
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return list(await asyncio.gather(*(job.result for job in jobs)))
        finally:
            for job in jobs:
                job.result.cancel()  # nothing is done for a client that has left

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            self._waiting = [job for job in self._waiting if not job.result.done()]
            if not self._waiting:
                return
            kind = self._waiting[0].kind
            taken = [job for job in self._waiting if job.kind == kind][:MAX_BATCH]
            self._waiting = [job for job in self._waiting if job not in taken]
            try:
                work = partial(self._method(kind), [job.query for job in taken])
                found: Sequence[Result] = await loop.run_in_executor(self._thread, work)
            except UnpriorError as error:
                found = [QueryFailure(str(error))] * len(taken)
            except Exception as error:  # the others go on; the cause is told by the log of the server
                found = [error] * len(taken)
            for job, result in zip(taken, found, strict=True):
                if job.result.done():
                    continue
                if isinstance(result, Exception):
                    job.result.set_exception(result)
                else:
                    job.result.set_result(result)

    def _method(self, kind: str) -> Callable[[list[Query]], Sequence[Result]]:
        if kind.startswith("propose"):  # one for each key, of which there are few
            return self._askers.setdefault(kind, OpenAsker(self._engine, remembers_failures=False)).ask
        if kind == "original":
            return lambda queries: [self._engine.original_answer(query.image, query.text) for query in queries]
        return self._engine.answer_batch if kind == "answer" else self._engine.score_batch


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    kind: str
    query: Query
    result: asyncio.Future[Result]


class UpstreamBackend:
    """A model behind a server. Requests are given up when their client leaves."""

    def __init__(self, engine: HttpEngine, deadline: float | None = None) -> None:
        """``engine``: a connected one. Where clients wait until a ``deadline`` in seconds, faults are told soon."""
        self._engine = engine
        self._askers: dict[str, OpenAsker] = {}  # one for each key, of which there are few
        self._same = engine.watch()
        if deadline is not None:
            engine.retry_policy = RetryPolicy(
                max_attempts=4, first_delay=0.1, max_delay=1.0, max_wait=2.0, timeout=deadline, cooldown=5.0
            )

    @property
    def engine(self) -> Engine:
        """The engine behind it."""
        return self._engine

    async def answer(self, queries: Sequence[Query], patience: float) -> list[Reading | QueryFailure]:
        """Original answers and scores with the image; where only the scores cannot be had, the answers are."""
        image = queries[0].image
        assert image is not None
        found = await self._engine.awaited(self._engine.answer_apart(image, queries, patience))
        if isinstance(found, QueryFailure):
            return [found] * len(queries)
        return [each if isinstance(each, QueryFailure) else Reading(*each) for each in found]

    async def score(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores alone, for the prior."""
        asked = [self._engine.awaited(self._engine.score_async(query)) for query in queries]
        return list(await asyncio.gather(*asked))

    async def propose(self, query: Query, caller: str = "") -> OpenScores | QueryFailure:
        """Candidates of an open question with both scores."""
        asker = self._askers.setdefault(caller, OpenAsker(self._engine, remembers_failures=False))
        return (await asker.ask_async([query], self._call))[0]

    async def original(self, query: Query) -> str | QueryFailure:
        """The original answer alone."""
        assert query.image is not None
        return await self._engine.awaited(self._engine.answer_alone(query.image, query.text))

    @property
    def epoch(self) -> int:
        """Changes when a server behind was started anew with other scores."""
        return self._same.epoch

    async def difference(self) -> str | None:
        """What a server behind that was started anew serves otherwise."""
        found = await self._engine.awaited(self._same.difference())
        return found.reason if isinstance(found, QueryFailure) else found

    async def close(self) -> None:
        """Give up the connections."""
        await asyncio.to_thread(self._engine.close)

    async def _call(self, call: Call) -> list[Result]:
        if call.width is None:
            return await self.score(call.queries)
        found = await self._engine.awaited(self._engine.propose_async(call.queries, call.width))
        return [found] * len(call.queries) if isinstance(found, QueryFailure) else list(found)
