"""What `unprior serve` adds to a model's own answer: time, requests per second, memory, and how soon it is there.

Run ``make bench-serve``; it prints the tables and puts them into docs/how-to/serve.md. Behind it are a server that
answers at once and, where ``UNPRIOR_VLLM_PYTHON`` names a Python with vLLM, real ones: with the embedded model, and
with a larger model of random weights, whose passes take longer than its HTTP.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

from instant_vllm import MODEL, running_instant
from load import Served, send_all, serving
from markdown import markdown, publish
from unprior.embedded import FOLDER, NAME
from unprior.engines.openai.images import encode_image
from unprior.prompts import PromptLayout
from vllm_models import build_for_vllm
from vllm_server import VARIABLE, running_vllm

ROUNDS = 100
ANSWER_TOKENS = 2
"""A letter and the end of the turn, as instructed models answer; random weights would go on."""
PROXIED = (16, 64)
"""Requests at once; the larger model takes a second for each, so it is asked less."""
SMALL = 72
"""Pixels on a side of what the embedded model sees."""
_TEXTS = ("red", "green", "blue", "white")
_MANY, _PART = 20_000, 4_000
_numbers = itertools.count()
Send = Callable[[httpx.AsyncClient, int], Awaitable[None]]


def picture(number: int, side: int) -> str:
    """An image that nobody showed before, as it is sent."""
    coarse = np.random.default_rng(number).integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)
    return (encode_image(image) or b"").decode().strip('"')


class Asking:
    """Three ways to the same answer about one model."""

    def __init__(self, upstream: str, served: str, model: str, side: int) -> None:
        """``side``: of the images in pixels."""
        self.upstream, self.served, self.model, self.side = upstream, served, model, side

    def question(self, number: int) -> str:
        """One of many."""
        return f"Which colour has thing number {number}?"

    async def own(self, client: httpx.AsyncClient, number: int, url: str | None = None) -> None:
        """The model's own answer, without `unprior serve`."""
        text = PromptLayout().user_text(self.question(number), "ABCD", _TEXTS)
        content = [
            {"type": "image_url", "image_url": {"url": picture(next(_numbers), self.side)}},
            {"type": "text", "text": text},
        ]
        asked = {"model": self.model, "messages": [{"role": "user", "content": content}]}
        limits = {"max_tokens": ANSWER_TOKENS, "temperature": 0}
        reply = await client.post(f"{url or self.upstream}/v1/chat/completions", json=asked | limits)
        reply.raise_for_status()

    async def decision(self, client: httpx.AsyncClient, number: int) -> None:
        """A decision about a question."""
        content = [{"type": "input_image", "image_url": picture(next(_numbers), self.side)}]
        choices = [{"value": text} for text in _TEXTS]
        asked = {
            "model": self.model,
            "input": [{"role": "user", "content": content}],
            "questions": [{"type": "choice", "instructions": self.question(number), "choices": choices}],
        }
        reply = await client.post(f"{self.served}/v1/decisions", json=asked)
        reply.raise_for_status()
        (answer,) = reply.json()["answers"]
        if answer["unprior"]["candidates"][0]["without_image"] is None:
            raise SystemExit("a decision without its prior")


async def latencies(asking: Asking) -> dict[str, list[float]]:
    """Seconds of single requests, in turn, so that what disturbs the machine disturbs all."""
    found: dict[str, list[float]] = {"own": [], "first": [], "repeated": []}
    async with httpx.AsyncClient(timeout=120) as client:
        for number in range(-5, ROUNDS):
            ways: dict[str, tuple[Send, int]] = {
                "own": (asking.own, number),
                "first": (asking.decision, 1000 + number),
                "repeated": (asking.decision, 7),
            }
            for name in [*ways][:: 1 if number % 2 == 0 else -1]:
                way, asked = ways[name]
                started = time.perf_counter()
                await way(client, asked)
                if number >= 0:  # the first ones warm up
                    found[name].append(time.perf_counter() - started)
    return found


def latency_line(name: str, found: dict[str, list[float]]) -> list[str]:
    cells = [name]
    own = np.percentile(found["own"], (50, 99))
    cells.append(" / ".join(f"{1000 * value:.1f}" for value in own))
    for way in ("first", "repeated"):
        values = np.percentile(found[way], (50, 99))
        cells.append(" / ".join(f"{1000 * value:.1f}" for value in values))
        cells.append(" / ".join(f"{a / b:.2f}×" for a, b in zip(values, own, strict=True)))
    return cells


async def rate(send: Send, concurrency: int, count: int) -> float:
    """Requests per second, so many at a time."""
    waiting = iter(range(count))

    async def worker() -> None:
        async with httpx.AsyncClient(timeout=120, verify=False) as client:
            for number in waiting:
                await send(client, number % 20)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return count / (time.perf_counter() - started)


def rate_lines(name: str, asking: Asking, proxy: str, count: int, at_once: tuple[int, ...]) -> list[list[str]]:
    """Decisions beside a proxy that only passes requests on, and beside the server behind."""
    lines = []

    async def proxied(client: httpx.AsyncClient, number: int) -> None:
        await asking.own(client, number, proxy)

    for concurrency in at_once:
        found: dict[str, list[float]] = {"decision": [], "proxied": [], "own": []}
        ways: dict[str, Send] = {"decision": asking.decision, "proxied": proxied, "own": asking.own}
        for turn in range(4):
            for way in [*ways][:: 1 if turn % 2 == 0 else -1]:
                measured = asyncio.run(rate(ways[way], concurrency, count))
                if turn:
                    found[way].append(measured)
        middle = {way: statistics.median(values) for way, values in found.items()}
        cells = [f"{middle[way]:,.0f}" if middle[way] >= 10 else f"{middle[way]:.2f}" for way in ways]
        lines.append([f"{name}, {concurrency} at once", *cells, f"{middle['decision'] / middle['proxied']:.2f}"])
    return lines


PROXY = """
import sys
import httpx, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

free = []

async def forward(request):
    client = free.pop() if free else httpx.AsyncClient(timeout=120, verify=False)
    headers = {"content-type": "application/json"}
    reply = await client.post(sys.argv[1] + request.url.path, content=await request.body(), headers=headers)
    free.append(client)
    return Response(reply.content, reply.status_code, media_type="application/json")

app = Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[2]), log_level="critical", access_log=False)
"""


@contextmanager
def running_proxy(upstream: str) -> Iterator[str]:
    """A proxy that passes requests on and does nothing else, with the same libraries."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", PROXY, upstream, str(port)])
    try:
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def memory(server: Served) -> list[list[str]]:
    """Memory of the server's process as requests go by."""
    lines = [["0", f"{server.resident / 2**20:.0f} MB", "–"]]
    for start in range(0, _MANY, _PART):
        began = time.perf_counter()
        tally = asyncio.run(send_all(server.url, range(start, start + _PART), 32))
        if tally.answered != _PART or tally.wrong or tally.lost:
            raise SystemExit(f"{tally.statuses}, {tally.lost} lost, {tally.wrong[:3]}")
        speed = _PART / (time.perf_counter() - began)
        lines.append([f"{start + _PART:,}", f"{server.resident / 2**20:.0f} MB", f"{speed:,.0f}"])
        print(lines[-1], flush=True)
    return lines


def start_up() -> list[str]:
    """Seconds until the embedded model is there, by what is asked for."""
    found: dict[str, list[float]] = {"/health": [], "/": [], "/ready": []}
    for _ in range(3):
        began = time.perf_counter()
        with serving() as server:
            for path, seconds in found.items():
                httpx.get(server.url + path, timeout=60).raise_for_status()
                seconds.append(time.perf_counter() - began)
    return [f"{statistics.median(seconds):.1f} s" for seconds in found.values()]


def on_vllm(name: str, folder: Path, model: str, side: int, work: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Lines of both tables about one model behind a real vLLM; with the paper's wording, and with one for both."""
    longest = ("--max-model-len", "2048") if side > SMALL else ()
    options = ("--model", model, "--max-new-tokens", str(ANSWER_TOKENS))
    with (
        running_vllm(folder, model, work / f"{model}.log", *longest) as upstream,
        serving("--upstream", upstream, *options) as server,
        serving("--upstream", upstream, *options, "--scoring-suffix", "") as same,
        running_proxy(upstream) as proxy,
    ):
        lines = []
        for about, served in (("", server), (", one wording", same)):
            asking = Asking(upstream, served.url, model, side)
            lines.append(latency_line(name + about, asyncio.run(latencies(asking))))
            print(lines[-1], flush=True)
        count, at_once = (128, PROXIED) if side <= SMALL else (8, (4,))
        rates = rate_lines(name, Asking(upstream, server.url, model, side), proxy, count, at_once)
        print(rates, flush=True)
    return lines, rates


def report() -> str:
    times, rates = [], []
    with (
        running_instant() as upstream,
        serving("--upstream", upstream, "--model", MODEL) as server,
        running_proxy(upstream) as proxy,
    ):
        asking = Asking(upstream, server.url, MODEL, SMALL)
        times.append(latency_line("instant server", asyncio.run(latencies(asking))))
        rates += rate_lines("instant server", asking, proxy, 512, PROXIED)
        print(times, rates, flush=True)
        held = memory(server)
    if os.environ.get(VARIABLE):
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            larger = build_for_vllm("qwen3_vl", work / "larger", size="bench")
            models = [
                ("vLLM, embedded model", FOLDER, NAME, SMALL),
                ("vLLM, larger random model", larger, "larger", 224),
            ]
            for name, place, model, side in models:
                lines, more = on_vllm(name, place, model, side, work)
                times += lines
                rates += more
    else:
        print(f"without vLLM: `make engines` builds one, or name a Python that has it in {VARIABLE}")
    soon = start_up()
    versions = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    header = ["p50 / p99 in ms, one at a time", "the model's own answer", "first time", "", "repeated question", ""]
    return "\n\n".join(
        [
            markdown(header, times),
            markdown(["requests/s", "decisions", "bare proxy", "the model itself", "decisions / proxy"], rates),
            markdown(["requests so far, 32 at once", "memory of the server", "requests/s"], held),
            f"With the embedded model, `/health` answers {soon[0]} after the command was given, the page {soon[1]}, "
            f"`/ready` {soon[2]} (median of three).",
            f"Measured by `make bench-serve` in one run ({versions}), clients and servers on the same machine.",
        ]
    )


if __name__ == "__main__":
    publish(report, "bench:serve", __doc__)
