"""Connections: what is too large or too slow ends, a client that leaves takes its work along, a signal drains."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import httpx
import pytest

from faulty_server import FaultyServer
from image_server import png, send_image, serving
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import HASTY
from tests.serving.conftest import Serve, body, choice, running
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import CandidateScores
from unprior.engines.transformers.engine import TransformersEngine
from unprior.serving.backend import UpstreamBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.priors import Prior, PriorCache
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings

ASKED = choice("Which is it?", "a", "b")
CHUNKED = b"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"10000\r\n" + bytes(65536) + b"\r\n"


def until(condition: Callable[[], Any]) -> None:
    for _ in range(6_000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it does not happen")


def connect(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


@contextmanager
def command(*options: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command itself in a process of its own, and its address."""
    started = subprocess.Popen(
        [sys.executable, "-c", "from unprior.cli import main; main()", "serve", "--port", "0", *options],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    try:
        assert started.stdout is not None
        found = next((match[1] for line in started.stdout if (match := re.search(r"Listening on (\S+)", line))), None)
        assert found is not None, started.communicate()
        yield started, found
    finally:
        started.kill()
        started.communicate()


def resident(process: subprocess.Popen[str], name: str) -> int:
    """Megabytes of memory."""
    found = re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


def test_bodies_without_end_are_refused_and_take_no_memory(tmp_path: Path) -> None:
    def send(address: str) -> bytes:
        with connect(address) as client:
            client.sendall(CHUNKED)
            try:
                for _ in range(1600):  # 100 MB
                    client.sendall(CHUNK)
            except OSError:  # it hangs up
                return client.recv(1 << 16)
            raise AssertionError("all of it was read")

    with command(cwd=tmp_path) as (process, address):
        httpx.post(f"{address}/v1/decisions", json={})
        before = resident(process, "VmHWM")
        with ThreadPoolExecutor(50) as pool:
            replies = list(pool.map(send, [address] * 50))
        assert {reply[:12] for reply in replies} == {b"HTTP/1.1 413"}
        assert all(b'"body_too_large"' in reply for reply in replies)
        assert resident(process, "VmHWM") - before < 200  # of 5,000 that were sent
        assert httpx.get(f"{address}/health").status_code == 200


def test_a_declared_body_is_refused_before_it_is_read(start: Serve) -> None:
    with start() as address, connect(address) as client:
        client.sendall(b"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000000\r\n\r\n")
        reply = b"".join(iter(lambda: client.recv(1 << 16), b""))  # it hangs up although nothing was sent
    assert reply.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"", b""),
        (b"", b"G"),
        (b"GET /health HTTP/1.1\r\n", b"x: y\r\n"),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"G"),
        (CHUNKED, b"1\r\na\r\n"),
        (CHUNKED.replace(b"127.0.0.1", b"evil.example"), b"1\r\na\r\n"),  # answered before it has ended
    ],
    ids=["silent", "first line", "head", "second request", "body", "body after the reply"],
)
def test_a_client_that_drips_is_hung_up_on(start: Serve, head: bytes, drop: bytes) -> None:
    with start(deadline=0.5) as address, connect(address) as client:
        client.sendall(head)
        client.settimeout(0.02)
        received, has_ended = b"", False
        while not has_ended:
            try:
                part = client.recv(1 << 16)
                received, has_ended = received + part, not part
            except TimeoutError:
                try:
                    client.sendall(drop)
                except OSError:
                    has_ended = True
            except OSError:
                has_ended = True
        assert httpx.get(f"{address}/health").status_code == 200
        if head == CHUNKED:
            assert received.startswith(b"HTTP/1.1 408")
            assert b"did not arrive within 0.5 seconds" in received


def test_a_slow_request_that_arrives_in_time_is_answered(server: str, plain: str) -> None:
    content = json.dumps(body(plain, ASKED)).encode()
    head = f"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    with connect(server) as client:
        for _ in range(2):  # on one connection
            sent = head + content
            for place in range(0, len(sent), 40):
                client.sendall(sent[place : place + 40])
            reply = HTTPResponse(client)
            reply.begin()
            assert (reply.status, reply.read()[:8]) == (200, b'{"model"')


class Hanging:
    """An upstream server that stops to answer when it is told to."""

    def __init__(self, engine: TransformersEngine) -> None:
        self.server = FaultyServer(ReplayedVllm(engine), plan=self._plan)
        self.hangs: Callable[[dict[str, Any]], bool] = lambda _: False
        self.hung = threading.Event()
        self.server.hang = self.hung.set

    def _plan(self, _: int, __: str, content: dict[str, Any] | None) -> str | None:
        return "late" if content is not None and self.hangs(content) else None


def shows_image(content: dict[str, Any]) -> bool:
    return "image_url" in json.dumps(content)


@pytest.mark.parametrize(
    ("question", "hangs"),
    [
        (ASKED, shows_image),
        (ASKED, lambda content: not shows_image(content)),
        ({"type": "open", "instructions": "What is it?"}, shows_image),
        ({"type": "open", "instructions": "What is it?"}, lambda content: not shows_image(content)),
    ],
    ids=["with the image", "prior", "open with the image", "open without"],
)
def test_a_client_that_leaves_ends_the_work_upstream(
    embedded: TransformersEngine,
    plain: str,
    question: dict[str, Any],
    hangs: Callable[[dict[str, Any]], bool],
    caplog: pytest.LogCaptureFixture,
) -> None:
    upstream = Hanging(embedded)
    with upstream.server:
        engine = HttpEngine(MODEL, [upstream.server.url], retry_policy=HASTY)
        service = Service(ServeSettings(), UpstreamBackend(engine), Calibrators({}))
        asked = body(plain, question) | {"model": MODEL}
        with running(service) as address:
            upstream.hangs = hangs
            leaving = HTTPConnection(address.removeprefix("http://"))
            leaving.request("POST", "/v1/decisions", json.dumps(asked))
            upstream.hung.wait(60)
            leaving.close()
            until(lambda: service.admission.inside == 0)
            until(lambda: not _tasks(engine))
            sent = upstream.server.requests
            upstream.hangs = lambda _: False
            reply = httpx.post(f"{address}/v1/decisions", json=asked, timeout=60)
            assert reply.status_code == 200, reply.text
            metrics = httpx.get(f"{address}/metrics").text
        assert 'unprior_requests_total{route="decisions",status="499"} 1.0' in metrics
        assert upstream.server.requests > sent
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def _tasks(engine: HttpEngine) -> set[Any]:
    """What the engine still works on."""
    return asyncio.all_tasks(engine._loop)


def test_a_prior_is_given_up_with_the_last_who_waits_for_it() -> None:
    async def check() -> None:
        cache, ended = PriorCache(2), []

        async def ask() -> Prior:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(True)
                raise
            raise AssertionError

        async def answer() -> Prior:
            return CandidateScores((0.0,), (1,))

        waiting = [asyncio.ensure_future(cache.get("a", ask)) for _ in range(2)]
        for task in waiting:
            await asyncio.sleep(0)
            assert ended == []
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        found, was_known = await cache.get("a", answer)  # at once: who comes next is not given up, too
        assert (isinstance(found, CandidateScores), was_known, ended) == (True, False, [True])

    with ThreadPoolExecutor(1) as pool:  # the browser of other tests has an event loop in this thread
        pool.submit(lambda: asyncio.run(check())).result()


def test_a_signal_lets_requests_finish_and_takes_no_new_ones(tmp_path: Path) -> None:
    released, log = threading.Event(), tmp_path / "log.jsonl"

    def slow(handler: Any) -> None:
        released.wait(60)
        send_image(png())(handler)

    with serving() as images, command("--log", str(log), "--image-host", images.origin, cwd=tmp_path) as running_one:
        process, address = running_one
        images.answer = slow
        idle, half = connect(address), connect(address)
        half.sendall(b"GET /hea")
        with ThreadPoolExecutor(8) as pool:
            asked = body(f"{images.origin}/a.png", ASKED, choice("Which other?", "c", "d"))
            waiting = [pool.submit(httpx.post, f"{address}/v1/decisions", json=asked, timeout=60) for _ in range(8)]
            until(lambda: len(images.paths) == 8)
            process.send_signal(signal.SIGTERM)
            until(lambda: _is_refused(address))
            assert not any(each.done() for each in waiting)
            released.set()
            replies = [each.result() for each in waiting]
        assert [reply.status_code for reply in replies] == [200] * 8
        _, problems = process.communicate(timeout=60)
        idle.close()
        half.close()
    assert (process.returncode, problems) == (0, "")
    lines = log.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 16
    assert all(line.endswith("\n") for line in lines)
    logged = {json.loads(line)["example_id"].partition("/")[0] for line in lines[1:]}
    assert logged == {reply.headers["x-request-id"] for reply in replies}


def _is_refused(address: str) -> bool:
    try:
        connect(address).close()
    except ConnectionRefusedError:
        return True
    return False


def test_ctrl_c_ends_a_server_without_a_traceback(tmp_path: Path) -> None:
    with command(cwd=tmp_path) as (process, address):
        assert httpx.get(f"{address}/health").status_code == 200
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=60)
        assert "Traceback" not in problems
        assert process.returncode in {0, 130}
