"""What goes out when the model cannot be asked in full: the original answer with the reason, or nothing; no guess."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving.conftest import Serve, body, choice, data_url
from unprior.benchmarks.schema import Benchmark
from unprior.engines.protocol import CandidateScores, Engine, Query, QueryFailure
from unprior.errors import UnpriorError
from unprior.scoring.open_answers import OpenScores
from unprior.serving.backend import LocalBackend, Reading
from unprior.serving.priors import PriorCache
from unprior.serving.settings import ServeSettings


class Faulty(LocalBackend):
    """The real model, of which some part fails."""

    def __init__(self, engine: Engine, fault: str) -> None:
        super().__init__(engine)
        self.fault = fault
        self.entered, self.cancelled, self.go_on = 0, 0, asyncio.Event()

    async def answer(self, queries: Sequence[Query], patience: float) -> list[Reading | QueryFailure]:
        found = await super().answer(queries, patience)
        if self.fault == "slow":
            self.entered += 1
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.fault == "bug":
            raise RuntimeError("a secret")
        if self.fault == "answer":
            return [QueryFailure("the server is gone")] * len(queries)
        if self.fault == "scores":
            return [
                each if isinstance(each, QueryFailure) else Reading(each.text, QueryFailure("lost")) for each in found
            ]
        return found

    async def propose(self, query: Query, caller: str = "") -> OpenScores | QueryFailure:
        if self.fault == "hang":
            await asyncio.Event().wait()
        return QueryFailure("lost") if self.fault == "proposals" else await super().propose(query, caller)

    async def score(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        if self.fault == "prior":
            return [QueryFailure("lost")] * len(queries)
        found = await super().score(queries)
        if self.fault == "nan":
            return [CandidateScores((float("nan"),) * 2, (1, 1)) for _ in found]
        return found


@pytest.fixture(scope="module")
def asked(choices: Benchmark) -> dict[str, Any]:
    """A question whose answer is revised."""
    example = next(each for each in choices if each.side == "cf" and each.pair_id == 11)
    return body(data_url(example.image), choice(example.question, *(example.texts or ())[:2]))


def send(address: str, content: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{address}/v1/decisions", json=content, timeout=60)


@pytest.mark.parametrize("fault", ["proposals", "hang"])
def test_of_an_open_question_the_original_answer_goes_out(
    start: Serve, embedded: Engine, asked: dict[str, Any], fault: str
) -> None:
    openly = asked | {"questions": [*asked["questions"], {"type": "open", "instructions": "How many arms?"}]}
    with start(Faulty(embedded, fault), deadline=5.0) as address:
        reply = send(address, openly)
    assert reply.status_code == 200
    closed, answer = reply.json()["answers"]
    assert closed["unprior"]["reason"] != "scores_unavailable"
    assert (answer["unprior"]["decision"], answer["unprior"]["reason"]) == ("kept", "scores_unavailable")
    assert answer["choice"] == answer["unprior"]["original"]


def test_who_waits_for_a_slot_in_vain_is_told_so(start: Serve, embedded: Engine, asked: dict[str, Any]) -> None:
    with start(Faulty(embedded, "slow"), deadline=1.0, concurrency=1) as address, ThreadPoolExecutor(3) as pool:
        statuses = [each.status_code for each in pool.map(lambda _: send(address, asked), range(3))]
    assert statuses == [504] * 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("prior", "prior_unavailable"), ("scores", "scores_unavailable"), ("nan", "scores_unavailable")],
)
def test_without_scores_the_original_answer_goes_out(
    start: Serve, embedded: Engine, asked: dict[str, Any], fault: str, reason: str
) -> None:
    with start(Faulty(embedded, fault)) as address:
        reply = send(address, asked)
        assert reply.status_code == 200
        (answer,) = reply.json()["answers"]
        assert (answer["unprior"]["decision"], answer["unprior"]["reason"]) == ("kept", reason)
        assert answer["choice"] == answer["unprior"]["original"]
        assert reply.headers["x-unprior-reason"] == reason
        assert f'unprior_unavailable_total{{reason="{reason}"}} 1.0' in httpx.get(f"{address}/metrics").text
    with start(Faulty(embedded, fault), on_error="error") as address:
        assert send(address, asked).status_code == 502


def test_without_an_answer_there_is_none(start: Serve, embedded: Engine, asked: dict[str, Any]) -> None:
    with start(Faulty(embedded, "answer")) as address:
        assert send(address, asked).status_code == 502


def test_a_fault_of_the_server_is_told_without_its_cause(
    start: Serve, embedded: Engine, asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with start(Faulty(embedded, "bug")) as address:
        reply = send(address, asked)
    assert reply.status_code == 500
    assert reply.json()["error"]["code"] == "internal_error"
    assert "secret" not in reply.text


def test_a_deadline_a_full_queue_and_a_client_that_leaves(
    start: Serve, embedded: Engine, asked: dict[str, Any]
) -> None:
    with start(Faulty(embedded, "slow"), deadline=1.0) as address:
        assert send(address, asked).status_code == 504
    slow = Faulty(embedded, "slow")
    with start(slow, concurrency=1, queue=1) as address, ThreadPoolExecutor(8) as pool:
        leaving = HTTPConnection(address.removeprefix("http://"))
        leaving.request("POST", "/v1/decisions", json.dumps(asked))
        while slow.entered == 0:
            threading.Event().wait(0.01)
        leaving.close()
        while slow.cancelled == 0:
            threading.Event().wait(0.01)
        replies = [pool.submit(send, address, asked) for _ in range(6)]
        while sum(each.done() for each in replies) < 4:
            threading.Event().wait(0.01)
        refused = [each.result() for each in replies if each.done()]
        assert {each.status_code for each in refused} == {429}
        assert refused[0].headers["retry-after"] == "1"
        slow.fault = ""
        slow.go_on._loop.call_soon_threadsafe(slow.go_on.set)  # type: ignore[attr-defined]
        assert sorted(each.result().status_code for each in replies) == [200, 200, 429, 429, 429, 429]


def test_a_prior_is_asked_for_once_and_a_failure_is_not_kept() -> None:
    async def check() -> None:
        cache, asked = PriorCache(2), []

        async def ask(name: str, fails: bool = False) -> CandidateScores | QueryFailure:
            asked.append(name)
            await asyncio.sleep(0)
            return QueryFailure("lost") if fails else CandidateScores((0.0,), (1,))

        both = await asyncio.gather(*(cache.get("a", lambda: ask("a")) for _ in range(3)))
        assert [known for _, known in both] == [False, False, False]
        assert asked == ["a"]
        assert (await cache.get("a", lambda: ask("a")))[1]
        await cache.get("b", lambda: ask("b", fails=True))
        await cache.get("b", lambda: ask("b"))
        await cache.get("c", lambda: ask("c"))
        assert asked == ["a", "b", "b", "c"]
        assert len(cache) == 2
        assert not (await cache.get("a", lambda: ask("a")))[1]  # the oldest one was given up

    with ThreadPoolExecutor(1) as pool:  # the browser of other tests has an event loop in this thread
        pool.submit(lambda: asyncio.run(check())).result()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"host": "0.0.0.0"}, "it needs a key"),
        ({"key": "short"}, "at least 16"),
        ({"mode": "both"}, "observe or enforce"),
        ({"on_error": "nothing"}, "original or error"),
        ({"deadline": 0.0}, "above 0"),
        ({"queue": -1}, "0 or more"),
        ({"port": 70_000}, "65535"),
        ({"allowed_hosts": ("*",)}, "only with a key"),
    ],
)
def test_settings_that_cannot_work(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UnpriorError, match=words):
        ServeSettings(**wrong).check()


def test_a_log_that_cannot_be_written_is_refused_at_the_start(start: Serve, tmp_path: Path) -> None:
    with (
        pytest.raises(UnpriorError, match="decisions cannot be logged there"),
        start(log=tmp_path / "no" / "log.jsonl"),
    ):
        pass
