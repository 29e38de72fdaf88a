"""Under load and with a faulty server behind: nothing lost, doubled or mixed up, and never a wrong answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from instant_vllm import MODEL, running_instant
from load import Marked, Served, Tally, send_all, serving
from unprior.engines.openai.engine import HttpEngine

_numbers = itertools.count(0, 10_000)
_TOLD = {"no_calibrator", "prior_unavailable", "scores_unavailable"}


def awaited(work: Coroutine[Any, Any, Tally]) -> Tally:
    """Run it in a thread: the browser of other tests has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def send(url: str, count: int, concurrency: int, **more: Any) -> Tally:
    """Send requests whose images nobody sent before."""
    start = next(_numbers)
    return awaited(send_all(url, range(start, start + count), concurrency, **more))


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    with running_instant() as url:
        yield url


@pytest.fixture(scope="module")
def served(upstream: str) -> Iterator[Served]:
    with serving("--upstream", upstream, "--model", MODEL) as server:
        yield server


@pytest.mark.parametrize("concurrency", [1, 16, 64, 256])
def test_every_request_gets_its_own_reply(served: Served, concurrency: int) -> None:
    tally = send(served.url, 64 if concurrency == 1 else 256, concurrency)
    assert (dict(tally.statuses), tally.wrong, tally.lost) == ({200: tally.answered}, [], 0)
    assert len(tally.ids) == tally.answered == (64 if concurrency == 1 else 256)
    assert set(tally.reasons) == {"no_calibrator"}


def test_of_a_thousand_at_once_those_beyond_the_queue_are_told_to_come_back(upstream: str) -> None:
    with serving("--upstream", upstream, "--model", MODEL, "--concurrency", "4", "--queue", "16") as server:
        assert send(server.url, 200, 100, retry=True).answered == 200
        before = server.resident
        tally = send(server.url, 1000, 1000)
        assert set(tally.statuses) == {200, 429}
        assert (tally.statuses.total(), tally.wrong, tally.lost) == (1000, [], 0)
        assert server.resident - before < 64 << 20
        assert "unprior_requests_inside 0.0" in httpx.get(f"{server.url}/metrics").text


def test_dropped_and_late_replies_give_no_wrong_answer(upstream: str, served: Served) -> None:
    before = httpx.get(f"{upstream}/counts").json()
    httpx.post(f"{upstream}/faults", json={"drop": 0.1, "late": 0.1, "seconds": 0.3})
    try:
        tally = send(served.url, 400, 32)
    finally:
        httpx.post(f"{upstream}/faults", json={})
    after = httpx.get(f"{upstream}/counts").json()
    assert after["dropped"] - before.get("dropped", 0) > 40
    assert after["late"] - before.get("late", 0) > 40
    assert (tally.wrong, tally.lost) == ([], 0)
    assert set(tally.statuses) <= {200, 502}
    assert set(tally.reasons) <= _TOLD
    assert tally.answered > 390  # what is dropped is asked for again


def test_most_replies_dropped_give_the_original_answer_with_the_reason_or_none(upstream: str, served: Served) -> None:
    httpx.post(f"{upstream}/faults", json={"drop": 0.7})
    try:
        tally = send(served.url, 100, 32)
    finally:
        httpx.post(f"{upstream}/faults", json={})
    assert (tally.wrong, tally.lost) == ([], 0)
    assert set(tally.statuses) == {200, 502}
    assert tally.reasons["scores_unavailable"] > 0
    assert set(tally.reasons) <= _TOLD
    assert send(served.url, 50, 16).reasons == {"no_calibrator": 50}


def test_a_server_behind_that_is_killed_and_comes_back(upstream: str) -> None:
    with running_instant() as first:
        port = int(first.rpartition(":")[2])
        with serving("--upstream", first, "--model", MODEL) as server:
            assert send(server.url, 40, 16).answered == 40
            httpx.post(f"{first}/faults", json={"late": 1.0, "seconds": 60})
            with ThreadPoolExecutor(1) as pool:
                dying = pool.submit(send, server.url, 16, 16)
                while httpx.get(f"{first}/counts").json().get("late", 0) < 16:
                    pass
                _kill(port)
                tally = dying.result()
            assert (tally.answered, tally.wrong, tally.lost, set(tally.statuses)) == (0, [], 0, {502})
            assert httpx.get(f"{server.url}/health").status_code == 200
            assert httpx.get(f"{server.url}/ready").status_code == 503
            with running_instant(port):
                tally = send(server.url, 40, 16)
    assert (tally.answered, tally.wrong, tally.lost) == (40, [], 0)


@pytest.mark.parametrize("salt", ["", "another"])
def test_a_server_behind_that_comes_back_as_another_model_is_noticed(salt: str) -> None:
    asked = Marked(7).body()
    with running_instant() as first:
        port = int(first.rpartition(":")[2])
        with serving("--upstream", first, "--model", MODEL) as server:
            assert ask(server.url, asked)["reason"] == "no_calibrator"
            _kill(port)
            assert httpx.post(f"{server.url}/v1/decisions", json=asked, timeout=60).status_code == 502
            with running_instant(port, salt):
                told = ask(server.url, asked)
                ready = httpx.get(f"{server.url}/ready").status_code
    assert (told["reason"], ready) == (("prior_unavailable", 503) if salt else ("no_calibrator", 200))


def test_a_long_silence_counts_as_an_interruption(upstream: str) -> None:
    engine = HttpEngine(MODEL, [upstream])
    engine.score_candidates(None, "Is it?", (" yes", " no"))
    before = engine._client.interruptions
    engine._client._last_reply -= 3600
    engine.score_candidates(None, "Is it?", (" yes", " no"))
    assert engine._client.interruptions == before + 1
    engine.close()


def test_servers_with_different_models_are_refused(upstream: str) -> None:
    with (
        running_instant(salt="another") as other,
        pytest.raises(RuntimeError, match="only servers with the same model"),
        serving("--upstream", upstream, "--upstream", other, "--model", MODEL),
    ):
        pass


def ask(url: str, content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = httpx.post(f"{url}/v1/decisions", json=content, timeout=60).json()["answers"][0]["unprior"]
    return found


def test_with_two_servers_behind_one_may_die(upstream: str) -> None:
    with (
        running_instant() as other,
        serving("--upstream", other, "--upstream", upstream, "--model", MODEL) as server,
    ):
        assert send(server.url, 40, 16).answered == 40
        _kill(int(other.rpartition(":")[2]))
        tally = send(server.url, 200, 32)
    assert (tally.answered, tally.wrong, tally.lost) == (200, [], 0)
    assert tally.reasons == {"no_calibrator": 200}


@pytest.mark.slow
def test_memory_is_flat_over_many_requests(served: Served) -> None:
    send(served.url, 2000, 32)
    before = served.resident
    for _ in range(3):
        tally = send(served.url, 2000, 32)
        assert (tally.answered, tally.wrong) == (2000, [])
    assert served.resident - before < 16 << 20


def _kill(port: int) -> None:
    """End the process that listens there, as the system does when memory runs out."""
    import os
    import signal
    from pathlib import Path

    for place in Path("/proc").glob("[0-9]*/cmdline"):
        words = place.read_bytes().split(b"\0")
        if str(port).encode() in words and any(b"instant_vllm" in word for word in words):
            os.kill(int(place.parent.name), signal.SIGKILL)
