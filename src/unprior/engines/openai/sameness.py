"""Whether servers serve the same: all of them when a program starts, and each one again after a connection broke."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unprior.engines.openai.asking import Asking
from unprior.engines.openai.exchanges import recording
from unprior.engines.openai.images import Shown
from unprior.engines.openai.server import identify
from unprior.engines.protocol import Query
from unprior.errors import UnpriorError, warn
from unprior.prompts import YES_NO

_QUESTION = "Is the sky blue?"
_NOISE, _OTHER = 1e-3, 0.25
"""Differences of scores in nats: smaller ones are rounding; larger ones than half precision makes are another model."""
_UNKNOWN = "a connection broke, and the server behind cannot be asked whether it is still the same"


@dataclass(frozen=True, slots=True)
class _Told:
    """What a server makes of a fixed question: its scores, which change with model, precision and prompt."""

    scores: tuple[float, ...]
    names: tuple[Any, ...] = ()
    """What it calls itself, where it tells no exact scores."""

    def apart(self, other: _Told) -> float:
        """The largest difference of scores; infinite where anything else differs."""
        if self.names != other.names or len(self.scores) != len(other.scores):
            return float("inf")
        return max((abs(one - two) for one, two in zip(self.scores, other.scores, strict=True)), default=0.0)


class SameServers:
    """Compares servers with each other at the start, and with what they were then after a connection broke."""

    def __init__(self, asking: Asking, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        """Ask all servers; those that differ are refused. ``run``: until it is done."""
        self._asking = asking
        self._lock = asyncio.Lock()
        self._checked = asking.client.interruptions
        self._difference: str | None = None
        self.epoch = 0
        """Changes with the scores: what was kept before is not to be mixed with what comes after."""
        self._first, *others = (run(self._ask(server)) for server in range(len(asking.client.base_urls)))
        widest = max((each.apart(self._first) for each in others), default=0.0)
        if widest > _OTHER:
            raise UnpriorError("the servers answer one question differently; give only servers with the same model")
        if widest > _NOISE:
            warn(
                f"the servers score one question up to {widest:.2g} nats apart; see that all have the same weights, "
                f"precision and settings"
            )

    async def difference(self) -> str | None:
        """What is different since the start, or cannot be known; None if nothing is. For the engine's event loop."""
        seen = self._asking.client.interruptions
        if seen == self._checked:
            return self._difference
        async with self._lock:
            if seen > self._checked:  # a check that began later counts for all that broke before
                seen = self._asking.client.interruptions
                self._difference = await self._compare()
                if self._difference != _UNKNOWN:
                    self._checked = seen
            return self._difference

    async def _compare(self) -> str | None:
        told: list[_Told] = []
        with recording():  # apart from what the request itself takes
            await self._ask_all(told)
        if not told:
            return _UNKNOWN
        widest = max(each.apart(self._first) for each in told)
        if widest > _OTHER:
            return "a server behind was started anew and serves something else; start this one again, too"
        self.epoch += widest > _NOISE
        return None

    async def _ask_all(self, told: list[_Told]) -> None:
        for server in range(len(self._asking.client.base_urls)):
            with suppress(UnpriorError):  # one that is gone answers nobody
                told.append(await self._ask(server))

    async def _ask(self, server: int) -> _Told:
        asking, layout = self._asking, self._asking.layout
        if asking.served.top_k is not None:
            return _Told((), await identify(asking.client, asking.served.model, server))
        query = Query(None, layout.user_text(_QUESTION, YES_NO, None), layout.continuations(YES_NO))
        return _Told(tuple((await asking.score(query, Shown(None, server))).scores))
