"""What the HTTP client costs: requests per second against bare loops that send the very same bytes, and its memory.

Run ``make bench-client``; it prints the tables and puts them into docs/how-to/servers.md. The servers are one that
answers at once and, where ``UNPRIOR_VLLM_PYTHON`` names a Python with vLLM, a real one with the embedded model.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from client_memory import Used, measure_memory, show_bytes
from instant_server import MODEL, running_instant_server
from markdown import markdown, publish
from unprior.embedded import FOLDER, NAME
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Query, QueryFailure
from vllm_server import VARIABLE, running_vllm

CONCURRENCIES = (1, 8, 64)
SIZES = (1_000, 10_000, 100_000)
_IMAGES = 20
_OVER = ("time over the faster loop", "per request", "waiting at ends of batches")

Request = tuple[str, bytes]
"""Path and body."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked in one round."""

    examples: int
    side: int
    """Of the images, in pixels."""
    rounds: int


INSTANT = {"instant server, 72 × 72 pixels": Load(512, 72, 5), "instant server, 512 × 512 pixels": Load(48, 512, 3)}
REAL = {"vLLM on this CPU, embedded model, 72 × 72 pixels": Load(96, 72, 3)}


def make_queries(load: Load) -> tuple[list[Query], list[Query]]:
    """Different questions with photo-like images, and the same ones without."""
    generator = np.random.default_rng(0)
    images = []
    for _ in range(_IMAGES):
        coarse = Image.fromarray(generator.integers(0, 256, (load.side // 8, load.side // 8, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((load.side, load.side), Image.Resampling.BICUBIC), dtype=np.float64)
        grainy = smooth + generator.normal(0, 4, smooth.shape)
        images.append(Image.fromarray(grainy.clip(0, 255).astype(np.uint8)))
    texts = [f"Is thing {number} in the picture blue?\nAnswer with yes or no." for number in range(load.examples)]
    shown = [Query(images[number % _IMAGES], text, (" yes", " no")) for number, text in enumerate(texts)]
    return shown, [Query(None, query.text, query.candidates) for query in shown]


def ask(engine: HttpEngine, queries: tuple[list[Query], list[Query]], batch_size: int) -> float:
    """As a scoring run does: answers and scores with the image, scores without, batch by batch; gives the seconds."""
    shown, blind = queries
    clock = time.perf_counter()
    for start in range(0, len(shown), batch_size):
        _check(engine.answer_batch(shown[start : start + batch_size]))
    for start in range(0, len(blind), batch_size):
        _check(engine.score_batch(blind[start : start + batch_size]))
    return time.perf_counter() - clock


def _check(results: Sequence[Any]) -> None:
    for result in results:
        if isinstance(result, QueryFailure):
            raise SystemExit(result.reason)


def record(engine: HttpEngine, action: Callable[[], object]) -> list[Request]:
    """The requests that the engine sends meanwhile."""
    sent: list[Request] = []
    client = engine._client
    send = client._send

    async def noting(method: str, url: str, body: bytes | None) -> Any:
        sent.append((httpx.URL(url).path, body or b""))
        return await send(method, url, body)

    client._send = noting  # type: ignore[method-assign]
    try:
        action()
    finally:
        client._send = send  # type: ignore[method-assign]
    return sent


async def bare_loop(url: str, requests: Sequence[Request], concurrency: int, *, clients: int = 1) -> float:
    """Send requests and read JSON, nothing else; gives the seconds it takes with connections that are open already."""
    slots = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    tls = httpx.create_ssl_context()
    headers = {"Content-Type": "application/json"}
    free = [httpx.AsyncClient(headers=headers, timeout=300, limits=limits, verify=tls) for _ in range(clients)]
    shared = free[0]

    async def one(path: str, body: bytes) -> Any:
        async with slots:
            client = free.pop() if clients > 1 else shared
            response = await client.post(url + path, content=body)
            if clients > 1:
                free.append(client)
            return json.loads(response.content)

    await asyncio.gather(*(one(*request) for request in requests[:concurrency]))
    start = time.perf_counter()
    answers = await asyncio.gather(*(one(*request) for request in requests))
    seconds = time.perf_counter() - start
    for client in free:
        await client.aclose()
    if not all("choices" in answer for answer in answers):
        raise SystemExit("a bare loop got an answer that is none")
    return seconds


def compare(url: str, model: str, load: Load, concurrency: int) -> list[str]:
    """A line of the table."""
    queries = make_queries(load)
    engine = HttpEngine(model, [url], concurrency=concurrency)
    batch = engine.capabilities.batch_size
    ask(engine, queries, batch)  # warms up both sides; the tokens of the candidates are known from now on
    requests = record(engine, lambda: ask(engine, queries, batch))

    ways: dict[str, Callable[[], float]] = {
        "unprior": lambda: ask(engine, queries, batch),
        "shared": lambda: asyncio.run(bare_loop(url, requests, concurrency)),
        "each": lambda: asyncio.run(bare_loop(url, requests, concurrency, clients=concurrency)),
        "one batch": lambda: ask(engine, queries, load.examples),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    before = engine.requests
    for number in range(load.rounds):
        for name in [*ways][:: 1 if number % 2 == 0 else -1]:  # what disturbs the machine disturbs all
            seconds[name].append(ways[name]())
    if engine.requests - before != 2 * load.rounds * len(requests):
        raise SystemExit("the client and the bare loops did not send equally many requests")
    engine.close()
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    fastest = min(middle["shared"], middle["each"])
    over = middle["unprior"] - fastest
    rates = [_rate(len(requests), seconds[name]) for name in ("unprior", "shared", "each")]
    waiting = f"{1 - middle['one batch'] / middle['unprior']:.0%}" if batch < load.examples else "–"
    return [str(concurrency), *rates, f"{over / fastest:+.0%}", f"{1e6 * over / len(requests):+,.0f} µs", waiting]


def _rate(requests: int, seconds: Sequence[float]) -> str:
    middle, slowest, quickest = (requests / pick(seconds) for pick in (statistics.median, max, min))
    return f"{middle:,.0f} ({slowest:,.0f}–{quickest:,.0f})"


def speed(url: str, model: str, loads: dict[str, Load]) -> list[str]:
    """One table per load."""
    parts = []
    for name, load in loads.items():
        lines = [compare(url, model, load, concurrency) for concurrency in CONCURRENCIES]
        first = f"{name}: requests/s at concurrency"
        header = [first, "unprior", "loop, one client", "loop, a client per slot", *_OVER]
        parts.append(markdown(header, lines))
        print(parts[-1], flush=True)
    return parts


def memory(url: str) -> str:
    return memory_table([measure_memory(url, examples) for examples in SIZES])


def memory_table(measured: Sequence[Used]) -> str:
    lines = []
    for examples, used in zip(SIZES, measured, strict=True):
        cells = [show_bytes(value) for value in (used.loaded, used.scoring, used.table)]
        lines.append([f"{examples:,}", *cells, f"{used.seconds:,.0f} s", f"{3 * examples / used.seconds:,.0f}"])
    header = [
        "examples",
        "questions loaded",
        "peak while scoring and writing",
        "peak reading the whole table",
        "scoring",
        "requests/s",
    ]
    return markdown(header, lines)


def report() -> str:
    with running_instant_server() as url:
        parts = speed(url, MODEL, INSTANT)
        remembered = memory(url)
    if os.environ.get(VARIABLE):
        with tempfile.TemporaryDirectory() as folder, running_vllm(FOLDER, NAME, Path(folder) / "server.log") as url:
            parts += speed(url, NAME, REAL)
    else:
        print(f"without vLLM: `make engines` builds one, or name a Python that has it in {VARIABLE}")
    versions = f"httpx {httpx.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores"
    measured = (
        f"Measured by `make bench-client` in one run ({versions}), the servers on the same machine: median "
        f"(slowest–fastest) of interleaved rounds, three requests per example."
    )
    return "\n\n".join([*parts, remembered, measured])


if __name__ == "__main__":
    publish(report, "bench:client", __doc__)
