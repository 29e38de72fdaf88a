"""How much is worked on at once: so many requests, so many waiting, the others told to come back; none for too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from unprior.serving.errors import RequestError

_RETRY_AFTER = "1"


class Admission:
    """Slots for requests, a bounded queue before them, and a deadline for both."""

    def __init__(self, concurrency: int, queue: int, deadline: float) -> None:
        """``deadline``: seconds, waiting included."""
        self._slots = asyncio.Semaphore(concurrency)
        self._most = concurrency + queue
        self._deadline = deadline
        self.inside = 0
        """Requests that are worked on or wait."""

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a slot and hold it; gives the time of the event loop at which the deadline ends."""
        if self.inside >= self._most:
            told = "too many requests wait already; try again shortly"
            raise RequestError(429, told, code="queue_full", headers={"Retry-After": _RETRY_AFTER})
        self.inside += 1
        ends = asyncio.get_running_loop().time() + self._deadline
        try:
            async with asyncio.timeout(self._deadline), self._slots:
                yield ends
        except TimeoutError:
            told = f"no answer within {self._deadline:g} seconds"
            raise RequestError(504, told, code="deadline_exceeded") from None
        finally:
            self.inside -= 1
