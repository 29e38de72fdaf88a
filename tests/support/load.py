"""Many requests at once to `unprior serve` in front of an instant server; every reply is checked for being its own."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from instant_vllm import MODEL, answer, score
from unprior.engines.openai.images import encode_image
from unprior.prompts import PromptLayout

LETTERS = "ABCDEF"
QUESTIONS = 200
"""Different questions; they come back with other images, so most priors are known."""


@dataclass
class Tally:
    """What became of many requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Replies that belong to another request, or to none."""
    seconds: list[float] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    lost: int = 0
    """Requests without any reply."""

    @property
    def answered(self) -> int:
        """Replies with an answer."""
        return self.statuses[200]


@dataclass(frozen=True)
class Marked:
    """A request whose right reply can be told by its number alone."""

    number: int

    @property
    def image(self) -> Image.Image:
        """An image that no other number has."""
        return Image.new("RGB", (8, 8), (self.number >> 16 & 255, self.number >> 8 & 255, self.number & 255))

    @property
    def texts(self) -> list[str]:
        """Two to six candidates."""
        return [f"{word} {self.number % QUESTIONS}" for word in ("red", "green", "blue", "white", "black", "grey")][
            : 2 + self.number % QUESTIONS % 5
        ]

    @property
    def question(self) -> str:
        """One that comes back with other images."""
        return f"Which colour is it, in case {self.number % QUESTIONS}?"

    def body(self) -> dict[str, Any]:
        """As it is sent."""
        stream = io.BytesIO()
        self.image.save(stream, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
        return {
            "model": MODEL,
            "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}],
            "questions": [
                {
                    "type": "choice",
                    "name": f"n{self.number}",
                    "instructions": self.question,
                    "choices": [{"value": text} for text in self.texts],
                }
            ],
        }

    def fault(self, reply: dict[str, Any]) -> str | None:
        """What is wrong with a reply; None if all of it belongs to this request."""
        (told,) = reply["answers"]
        if told["name"] != f"n{self.number}":
            return f"{self.number}: a reply to {told['name']}"
        labels = LETTERS[: len(self.texts)]
        text = PromptLayout().user_text(self.question, labels, self.texts)
        seen = (encode_image(self.image) or b"").decode().strip('"')
        original = self.texts[labels.index(answer(text, seen))]
        if told["choice"] != original:
            return f"{self.number}: {told['choice']} instead of {original}"
        for label, each in zip(labels, told["unprior"]["candidates"] or (), strict=False):
            for value, expected in (
                (each["with_image"], score(text, seen, label)),
                (each["without_image"], score(text, "", label)),
            ):
                if value is not None and abs(value - expected) > 1e-6:
                    return f"{self.number}: a score of another request"
        return None


async def send_all(
    url: str, numbers: Sequence[int], concurrency: int, *, key: str | None = None, retry: bool = False
) -> Tally:
    """Send marked requests, so many at a time. ``retry``: those that are told to come back do so."""
    tally, waiting = Tally(), iter(numbers)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    async def worker() -> None:
        # Without certificates, whose loading takes longer than a request.
        async with httpx.AsyncClient(base_url=url, timeout=120, headers=headers, verify=False) as client:
            for number in waiting:
                await one(client, Marked(number))

    async def one(client: httpx.AsyncClient, marked: Marked) -> None:
        while True:
            started = time.perf_counter()
            try:
                reply = await client.post("/v1/decisions", json=marked.body())
            except httpx.TransportError:
                tally.lost += 1
                return
            tally.statuses[reply.status_code] += 1
            if reply.status_code == 429 and retry:
                await asyncio.sleep(0.05)
                continue
            tally.ids.add(reply.headers["x-request-id"])
            if reply.status_code == 200:
                tally.seconds.append(time.perf_counter() - started)
                content = reply.json()
                tally.reasons[content["answers"][0]["unprior"]["reason"]] += 1
                if (fault := marked.fault(content)) is not None:
                    tally.wrong.append(fault)
            return

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return tally


@dataclass
class Served:
    """A server in a process of its own."""

    url: str
    process: subprocess.Popen[str]

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) << 10


@contextmanager
def serving(*options: str, environment: dict[str, str] | None = None) -> Iterator[Served]:
    """Run the command with these options on a free port."""
    command = [sys.executable, "-c", "from unprior.cli import main; main()", "serve", "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"COLUMNS": "200"} | (environment or {}),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"Listening on (http://\S+)", line):
                yield Served(found[1], process)
                break
        else:
            assert process.stderr is not None
            raise RuntimeError(f"it did not start: {process.stderr.read()}")
    finally:
        process.terminate()
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
