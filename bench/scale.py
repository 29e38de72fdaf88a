"""The cost model against what a real vLLM server and the wire between counted, in one run.

Run ``make bench-scale``; it prints the tables and puts them into docs/how-to/many-nodes.md. Sizes are found out from
pairs of the microworld that are not scored afterwards.
"""

from __future__ import annotations

import re
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from markdown import markdown, publish
from unprior.benchmarks.registry import load_benchmark
from unprior.benchmarks.schema import Benchmark, Example
from unprior.embedded import FOLDER, NAME
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.openai.sizes import Sizes
from unprior.engines.protocol import Query
from unprior.images import open_image
from unprior.scoring.cost import RunCost, predict, sample
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore
from vllm_server import running_vllm

EVERY = 6
"""One pair of so many is scored."""
IMAGES, TEXTS = 32, 64
BLOCK = 32
"""Tokens that are cached together; vLLM takes no less on a CPU."""
COUNTERS = {
    "prompt_tokens": "vllm:prompt_tokens_total",
    "cached_tokens": "vllm:prompt_tokens_cached_total",
    "generated_tokens": "vllm:generation_tokens_total",
}
WORDS = ("blue", "the red one", "the green one", "seventeen zebras")
NAMES = {
    "requests": "requests",
    "prompt_tokens": "prompt tokens",
    "cached_tokens": "… of these cached",
    "generated_tokens": "generated tokens",
    "sent_bytes": "bytes sent",
    "received_bytes": "bytes received",
    "stored_bytes": "bytes stored",
}


@dataclass
class Wire:
    """Passes bytes on and counts them."""

    url: str = ""
    sent: int = 0
    received: int = 0


@contextmanager
def counting(url: str) -> Iterator[Wire]:
    """A TCP pass-through in front of a server."""
    target, wire = httpx.URL(url), Wire()
    listener = socket.create_server(("127.0.0.1", 0))
    wire.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    lock = threading.Lock()

    def pump(source: socket.socket, sink: socket.socket, *, upward: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                with lock:
                    if upward:
                        wire.sent += len(data)
                    else:
                        wire.received += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection((target.host, target.port))
            for source, sink, upward in ((client, server, True), (server, client, False)):
                threading.Thread(target=pump, args=(source, sink), kwargs={"upward": upward}, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield wire
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def counters(url: str) -> dict[str, float]:
    page = httpx.get(f"{url}/metrics").text
    return {
        name: sum(float(value) for value in re.findall(rf"^{metric}\{{.*\}} (\S+)$", page, re.MULTILINE))
        for name, metric in COUNTERS.items()
    }


def found_out(engine: HttpEngine, benchmark: Benchmark) -> Sizes:
    """Sizes from a few examples."""
    queries = [
        Query(open_image(example.image), example.user_text(engine.layout), engine.layout.continuations(example.labels))
        for example in sample(benchmark, IMAGES)
    ]
    texts = [example.user_text(engine.layout) for example in sample(benchmark, TEXTS)]
    return replace(engine.sizes(queries, texts), cache_block=BLOCK)


def measured(url: str, benchmark: Benchmark, views: tuple[str, ...]) -> RunCost:
    """Score with a new engine and a new store, and count everything."""
    with tempfile.TemporaryDirectory() as folder, counting(url) as wire:
        engine = HttpEngine(NAME, [wire.url])
        start, before = Wire(sent=wire.sent, received=wire.received), counters(url)
        requests, path = engine.requests, Path(folder) / "store.sqlite"
        with ScoreStore(path) as store:
            empty = path.stat().st_size
            summary = ScoringRun(engine, benchmark, store, views=views).run()
        if summary.failures:
            raise SystemExit(summary.failures[0].reason)
        requests, after, size = engine.requests - requests, counters(url), path.stat().st_size - empty
        engine.close()
        sent, received = wire.sent - start.sent, wire.received - start.received
    tokens = {name: after[name] - before[name] for name in COUNTERS}
    return RunCost(len(benchmark), requests, sent_bytes=sent, received_bytes=received, stored_bytes=size, **tokens)


def in_words(example: Example) -> Example:
    """The same image with candidates of several tokens."""
    question = f"{example.question} ({', '.join(WORDS)})"
    return replace(
        example, labels=WORDS, texts=None, question=question, instruction="Answer with one of these.", answer=None
    )


def rows(title: str, predicted: RunCost, counted: RunCost) -> list[list[str]]:
    lines = []
    for name, shown in NAMES.items():
        guess, truth = getattr(predicted, name), getattr(counted, name)
        error = "–" if truth == guess == 0 else f"{100 * (guess - truth) / truth:+.1f} %" if truth else "all"
        lines.append([f"{title}: {shown}", f"{guess:,.0f}", f"{truth:,.0f}", error, f"{truth / counted.examples:,.1f}"])
    return lines


def report() -> str:
    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        whole = load_benchmark("microworld", Path(folder))
        pairs = sorted({example.pair_id for example in whole}, key=str)
        chosen = set(pairs[::EVERY])
        scored = whole.with_examples([example for example in whole if example.pair_id in chosen])
        others = whole.with_examples([example for example in whole if example.pair_id not in chosen])
        choices = [example for example in scored if example.task == "mc"][:50]
        runs = {
            "letters and yes/no": (scored, others, ()),
            "the same with a white view": (scored, others, ("white",)),
            "candidates of several tokens": (
                scored.with_examples([in_words(example) for example in choices]),
                others.with_examples([in_words(example) for example in others if example.task == "mc"]),
                (),
            ),
        }
        for title, (benchmark, rest, views) in runs.items():
            # A fresh server each time: its cache knows nothing.
            with running_vllm(FOLDER, NAME, Path(folder) / "vllm.log", "--block-size", str(BLOCK)) as url:
                engine = HttpEngine(NAME, [url])
                sizes = found_out(engine, rest)
                version = engine.served.version
                engine.close()
                predicted = predict(benchmark, sizes, views=views)
                lines += rows(f"{title}, {len(benchmark)} examples", predicted, measured(url, benchmark, views))
    return "\n\n".join(
        [
            markdown(["what", "predicted", "counted", "error", "counted per example"], lines),
            f"Measured by `make bench-scale` in one run: vLLM {version}, embedded model, blocks of {BLOCK} tokens;\n"
            f"sizes from {IMAGES} images and {TEXTS} texts of other pairs of the microworld.",
        ]
    )


if __name__ == "__main__":
    publish(report, "bench:scale", __doc__)
