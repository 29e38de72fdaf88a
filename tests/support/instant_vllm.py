"""A server that speaks vLLM's protocol and answers at once: scores are drawn from the question, so any mix-up shows.

`python instant_vllm.py PORT [SALT]` runs it in a process of its own; it breaks as `POST /faults` tells. Another salt is
another model under the same name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

MODEL = "instant"
SUFFIX = "\nFinal answer:"
_WORDS = ("<user>", "<assistant>", "<system>", "<end>", " yes", " no", *(f" {chr(65 + n)}" for n in range(26)))
_PIECES = re.compile(
    "|".join(rf"{re.escape(word)}\b" if word[-1] != ">" else word for word in _WORDS) + "|.", re.DOTALL
)
_LABELS = re.compile(r"^([A-Z])\. ", re.MULTILINE)


def drawn(*what: str) -> float:
    """A number from 0 to 1 that depends on all the texts."""
    digest = hashlib.blake2b("\x00".join(what).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def score(text: str, image: str, label: str) -> float:
    """Log-probability of a label after a question; ``image``: a data URL, or nothing."""
    return math.log((0.05 + 0.9 * drawn("score", text, image, label)) / 26)


def answer(text: str, image: str) -> str:
    """The greedy answer: a letter, or yes or no."""
    labels: list[str] = _LABELS.findall(text) or ["yes", "no"]
    return max(labels, key=lambda label: drawn("answer", text, image, label))


class InstantVllm:
    """An ASGI application."""

    def __init__(self, salt: str = "") -> None:
        self.salt = salt
        self.counts: Counter[str] = Counter()
        self.faults: dict[str, Any] = {}
        self.chance = random.Random(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        path = scope["path"]
        if path == "/faults":
            self.faults = json.loads(body)
            self.chance.seed(0)
            await _send(send, 200, {})
            return
        self.counts[path] += 1
        if path == "/v1/chat/completions":
            draw = self.chance.random()
            if draw < self.faults.get("drop", 0):
                self.counts["dropped"] += 1
                start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"999")]}
                await send(start)
                await send({"type": "http.response.body", "body": b'{"choices": [', "more_body": True})
                raise ConnectionAbortedError("dropped, as told")
            if draw < self.faults.get("drop", 0) + self.faults.get("late", 0):
                self.counts["late"] += 1
                await asyncio.sleep(self.faults["seconds"])
        status, content = self.answer(path, json.loads(body) if body else {})
        await _send(send, status, content)

    def answer(self, path: str, asked: dict[str, Any]) -> tuple[int, Any]:
        fixed = {
            "/v1/models": {"data": [{"id": MODEL, "owned_by": "vllm", "root": MODEL, "max_model_len": 4096}]},
            "/version": {"version": "0.32.0"},
            "/counts": dict(self.counts),
        }
        if path in fixed:
            return 200, fixed[path]
        if path == "/tokenize":
            tokens = _tokens(asked["prompt"] if "prompt" in asked else _render(asked))
            return 200, {"count": len(tokens), "tokens": tokens}
        if path == "/detokenize":
            return 200, {"prompt": "".join(map(_piece, asked["tokens"]))}
        if path != "/v1/chat/completions" or "structured_outputs" in asked:
            return 400, {"error": {"message": "not known here"}}
        return 200, self.complete(asked)

    def complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        image, text = _read(asked["messages"])
        prompt = _tokens(_render(asked)[-200:])
        reply: dict[str, Any] = {
            "model": MODEL,
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": 1},
            "prompt_token_ids": prompt,
        }
        if "logprob_token_ids" not in asked:
            content = answer(text, image) if asked["max_tokens"] > 1 else "yes"
            return reply | {"choices": [{"message": {"content": content}, "logprobs": None, "finish_reason": "stop"}]}
        named: list[dict[str, Any]] = [
            {
                "token": f"token_id:{number}",
                "logprob": score(text.removesuffix(SUFFIX) + self.salt, image, _piece(number).strip()),
            }
            for number in asked["logprob_token_ids"]
        ]
        best = max(named, key=lambda entry: entry["logprob"])
        logprobs = {"content": [best | {"top_logprobs": named}]}
        return reply | {"choices": [{"message": {"content": "A"}, "logprobs": logprobs, "finish_reason": "length"}]}


def _tokens(text: str) -> list[int]:
    """Some words, and characters; the same on every server."""
    return [_WORDS.index(piece) if piece in _WORDS else len(_WORDS) + ord(piece) for piece in _PIECES.findall(text)]


def _piece(token: int) -> str:
    return _WORDS[token] if token < len(_WORDS) else chr(token - len(_WORDS))


def _read(messages: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The image's address and the text of the first message."""
    content = messages[0]["content"]
    if isinstance(content, str):
        return "", content
    image = next((part["image_url"]["url"] for part in content if part["type"] == "image_url"), "")
    return image, "".join(part["text"] for part in content if part["type"] == "text")


def _render(asked: dict[str, Any]) -> str:
    text = ""
    for message in asked["messages"]:
        text += f"<{message['role']}>{_read([message])[1]}" + ("\n" if message["role"] == "user" else "<end>")
    if asked.get("continue_final_message"):
        return text.removesuffix("<end>")
    return text + ("<assistant>" if asked.get("add_generation_prompt", True) else "")


async def _send(send: Any, status: int, content: Any) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def running_instant(port: int | None = None, salt: str = "") -> Iterator[str]:
    """Serve in a process of its own; gives the address."""
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(Path(__file__)), str(port), salt], stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            assert process.poll() is None, "the server ended"
            try:
                httpx.get(f"{url}/version", timeout=5)
                break
            except httpx.TransportError:
                continue
        yield url
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(InstantVllm(sys.argv[2]), port=int(sys.argv[1]), log_level="critical", access_log=False, lifespan="off")
