"""Scores without the image, which repeat with every question that repeats: kept, and asked for once at a time."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from unprior.engines.protocol import CandidateScores, QueryFailure

Prior = CandidateScores | QueryFailure


class PriorCache:
    """The priors that were asked for last. Failures are told to all who wait, and not kept.

    Keys hold who asked: whoever times another's questions learns nothing.
    """

    def __init__(self, size: int) -> None:
        """``size``: how many are kept; 0 keeps none."""
        self._size = size
        self._kept: OrderedDict[Hashable, CandidateScores] = OrderedDict()
        self._asked: dict[Hashable, asyncio.Task[Prior]] = {}
        self._waiting: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._kept)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Prior]]) -> tuple[Prior, bool]:
        """The prior, and whether it was there already; ``ask`` gets it."""
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept, True
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.ensure_future(ask())
            task.add_done_callback(lambda done: self._finish(key, done))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task), False
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:  # given up with the last client that leaves, not with the first
                del self._waiting[key]
                self._forget(key, task)
                task.cancel()

    def _finish(self, key: Hashable, task: asyncio.Task[Prior]) -> None:
        self._forget(key, task)
        if task.cancelled() or task.exception() is not None:
            return
        found = task.result()
        if isinstance(found, CandidateScores) and self._size:
            self._kept[key] = found
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def _forget(self, key: Hashable, task: asyncio.Task[Prior]) -> None:
        if self._asked.get(key) is task:
            del self._asked[key]

    async def close(self) -> None:
        """Give up what is being asked."""
        for task in list(self._asked.values()):
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
