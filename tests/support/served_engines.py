"""The HTTP engine with a server on this machine, and a clock that tests turn themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from faulty_server import FaultyServer, Plan
from replayed_vllm import MODEL
from unprior.engines.openai.client import RetryPolicy
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Answered, CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine

SHORT, LONG = (" A", " B", " yes"), (" seventeen zebras", " seventeen", " seven cats", " no")
QUESTION = "Is this a zebra?\nAnswer with yes or no."
HASTY = RetryPolicy(max_attempts=9, first_delay=0.001, max_delay=0.01, timeout=60.0)
CHAT = "/v1/chat/completions"


@contextmanager
def served(
    answer: Any, plan: Plan | None = None, *, concurrency: int = 4, retry_policy: RetryPolicy = HASTY, **options: Any
) -> Iterator[tuple[HttpEngine, FaultyServer]]:
    with FaultyServer(answer, **options) as server:
        engine = HttpEngine(MODEL, [server.url], concurrency=concurrency, retry_policy=retry_policy)
        server.plan = plan
        try:
            yield engine, server
        finally:
            engine.close()


def assert_right(
    truth: TransformersEngine, queries: Sequence[Query], results: Sequence[Answered | CandidateScores | QueryFailure]
) -> None:
    for query, result in zip(queries, results, strict=True):
        assert not isinstance(result, QueryFailure), result.reason
        scored = result.scored if isinstance(result, Answered) else result
        expected = truth.score_candidates(query.image, query.text, query.candidates)
        np.testing.assert_allclose(scored.scores, expected.scores, atol=1e-4)
        assert scored.token_counts == expected.token_counts
        if isinstance(result, Answered):
            assert result.text == truth.original_answer(query.image, query.text)


class TimeLimits:
    """Time limits of requests that end when a server that hangs says so, however fast or slow this machine is.

    One request at a time: the limit that ends is the last one that began.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("unprior.engines.openai.client._time_limit", self._begin)
        self.asked: list[float] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last: asyncio.Timeout | None = None

    def _begin(self, seconds: float) -> asyncio.Timeout:
        self.asked.append(seconds)
        self._loop, self._last = asyncio.get_running_loop(), asyncio.timeout(None)
        return self._last

    def end(self) -> None:
        """End the limit of the request in flight; called by the server's thread."""
        assert self._loop is not None
        assert self._last is not None
        self._loop.call_soon_threadsafe(self._last.reschedule, 0.0)
