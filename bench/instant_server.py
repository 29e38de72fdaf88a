"""A server that speaks vLLM's protocol and answers at once, in a process of its own: what is left is the client's time.

Words are its tokens and its log-probabilities are made up, but every answer is whole and belongs to its request, so
that all checks of the client run.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

MODEL = "instant"
ANSWER = "yes"
_IMAGE_TOKENS = 256  # as many as Qwen3-VL makes of 512 × 512 pixels
_WORD = re.compile(r" ?\w+|\W")


@contextmanager
def running_instant_server() -> Iterator[str]:
    """Serve until the end of the block; gives the address."""
    server = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.terminate()
        server.communicate()


class _Model:
    """Answers by path."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: list[str] = []
        self._known = {
            b"/v1/models": lambda _: {"data": [{"id": MODEL, "root": MODEL, "max_model_len": 4096}]},
            b"/version": lambda _: {"version": "0.32.0"},
            b"/tokenize": self._tokenize,
            b"/detokenize": lambda asked: {"prompt": "".join(self._words[token] for token in asked["tokens"])},
            b"/v1/chat/completions": self._complete,
        }

    def __call__(self, path: bytes, body: bytes) -> tuple[int, Any]:
        answer = self._known.get(path)
        return (404, {}) if answer is None else (200, answer(json.loads(body or b"{}")))

    def _tokens(self, text: str) -> list[int]:
        tokens = []
        for word in _WORD.findall(text):
            if word not in self._numbers:
                self._numbers[word] = len(self._words)
                self._words.append(word)
            tokens.append(self._numbers[word])
        return tokens

    def _prompt(self, body: dict[str, Any]) -> list[int]:
        """The chat template, and places for an image in front."""
        turn = body["messages"][0]["content"]
        continued = body["messages"][1]["content"] if len(body["messages"]) > 1 else ""
        image = [0] * _IMAGE_TOKENS if len(turn) > 1 else []
        return [*image, *self._tokens(f"USER: {turn[-1]['text']}\nASSISTANT:{continued}")]

    def _tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens = self._tokens(body["prompt"]) if "prompt" in body else self._prompt(body)
        return {"count": len(tokens), "tokens": tokens}

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"message": {"role": "assistant", "content": ANSWER}, "logprobs": None}
        listed = [
            {"token": f"token_id:{token}", "logprob": -1.0 - place}
            for place, token in enumerate(body.get("logprob_token_ids", ()))
        ]
        if listed:
            answer["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}]}
        return {
            "object": "chat.completion",
            "model": MODEL,
            "choices": [{"index": 0, "finish_reason": "length", **answer}],
            "prompt_token_ids": self._prompt(body) if body.get("return_token_ids") else None,
        }


class _Connection(asyncio.Protocol):
    """HTTP/1.1 as the client speaks it: requests with a length, one after the other."""

    def __init__(self, model: _Model) -> None:
        self._model, self._received, self._whole = model, bytearray(), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._whole:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            length = re.search(rb"(?i)\ncontent-length: *(\d+)", self._received[:end])
            self._start = end + 4
            self._whole = self._start + (int(length[1]) if length else 0)
        if len(self._received) >= self._whole:
            path = bytes(self._received[: self._start].split(b" ", 2)[1])
            status, answer = self._model(path, bytes(self._received[self._start : self._whole]))
            self._received, self._whole = self._received[self._whole :], 0
            payload = json.dumps(answer).encode()
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
            self._transport.write(head.encode() + payload)


async def _serve() -> None:
    model = _Model()
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(model), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
