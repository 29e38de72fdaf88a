"""An HTTP server for tests that answers by a function and breaks as it is told."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, dict[str, Any] | None], tuple[int, Any]]
"""Status and content for a path and the body of a request."""
Plan = Callable[[int, str, dict[str, Any] | None], str | None]
"""The fault for the n-th request, or None."""


@dataclass(frozen=True)
class Raw:
    """An answer as it is sent, piece by piece; the connection ends with it."""

    pieces: Iterable[bytes]
    headers: dict[str, str] = field(default_factory=dict)


STATUS_FAULTS = {"429": 429, "500": 500, "502": 502, "503": 503}
CONTENT_FAULTS = (
    "strange tokens",
    "missing token",
    "not a number",
    "two choices",
    "no logprobs",
    "raw logits",
    "nonsense",
)
FAULTS = (*STATUS_FAULTS, "drop", "closed", "cut", "truncated", "late", *CONTENT_FAULTS)


class FaultyServer(AbstractContextManager["FaultyServer"]):
    """Serves on a free port of this machine; counts what it is asked and what it did."""

    def __init__(self, answer: Answer, plan: Plan | None = None, *, late: float = 1.0, retry_after: str = "0") -> None:
        self.answer, self.plan, self.late, self.retry_after = answer, plan, late, retry_after
        self.paths: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.keys: set[str | None] = set()
        self.in_flight = self.most_in_flight = 0
        self.hang: Callable[[], None] | None = None
        """Called instead of waiting when an answer is to be late; it then comes when the server ends."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> int:
        return self.paths.total()

    def __enter__(self) -> FaultyServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def die(self) -> str:
        """Take no more connections and hang up on those there are; the fault for the request that asked for it."""
        self.plan = lambda *_: "drop"
        self.__exit__()
        return "drop"

    def respond(self, handler: BaseHTTPRequestHandler, body: dict[str, Any] | None) -> None:
        with self._lock:
            number = self.requests
            self.paths[handler.path] += 1
            self.keys.add(handler.headers.get("Authorization"))
            fault = self.plan(number, handler.path, body) if self.plan else None
            self.faults[fault or "none"] += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            self._respond(handler, body, fault)
        finally:
            with self._lock:
                self.in_flight -= 1

    def _respond(self, handler: BaseHTTPRequestHandler, body: dict[str, Any] | None, fault: str | None) -> None:
        if fault == "drop":
            _hang_up(handler)
            return
        if fault in STATUS_FAULTS:
            _send(handler, STATUS_FAULTS[fault], b'{"error": {"message": "busy"}}', {"Retry-After": self.retry_after})
            return
        if fault == "late" and self.hang is not None:
            self.hang()
            self._ended.wait()
            _hang_up(handler)
            return
        if fault == "late":
            time.sleep(self.late)
        status, content = self.answer(handler.path, body)
        if isinstance(content, Raw):
            _send_raw(handler, status, content)
            return
        if fault in CONTENT_FAULTS:
            content = _spoilt(content, str(fault))
        payload = json.dumps(content).encode()
        if fault == "truncated":  # a whole HTTP answer with half of the JSON
            payload = payload[: len(payload) // 2]
        shown = payload if fault not in {"cut", "closed"} else payload[: 0 if fault == "closed" else len(payload) // 2]
        _send(handler, status, shown, {}, length=len(payload))
        if fault in {"cut", "closed"}:
            _hang_up(handler)


def _spoilt(content: Any, fault: str) -> Any:
    """A well-formed answer that is wrong; answers without tokens stay as they are."""
    content = json.loads(json.dumps(content))
    if "tokens" in content and fault == "strange tokens":
        content["tokens"][random.randrange(len(content["tokens"]))] += random.randrange(1, 200)
    choices = content.get("choices")
    if not choices:
        return content
    if fault == "two choices":
        choices.append(choices[0])
        return content
    if not (choices[0].get("logprobs") or {}).get("content"):
        return content
    if fault == "nonsense":  # of a kind that no check thinks of
        choices[0]["logprobs"] = ["content"]
        return content
    listed = choices[0]["logprobs"]["content"][0]["top_logprobs"]
    if fault == "strange tokens":
        for entry in listed:
            number = int(entry["token"].removeprefix("token_id:"))
            entry["token"] = f"token_id:{number + 1}"
    elif fault == "missing token":
        written = choices[0]["logprobs"]["content"][0]["token"]
        listed.remove(next(entry for entry in reversed(listed) if len(listed) == 1 or entry["token"] != written))
    elif fault == "not a number":
        listed[-1]["logprob"] = float("nan")
    elif fault == "raw logits":
        for entry in listed:
            entry["logprob"] = entry["logprob"] + 20.0
    elif fault == "no logprobs":
        choices[0]["logprobs"] = None
    return content


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)


def _send(
    handler: BaseHTTPRequestHandler, status: int, payload: bytes, headers: dict[str, str], length: int | None = None
) -> None:
    try:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(payload) if length is None else length))
        handler.end_headers()
        handler.wfile.write(payload)
        handler.wfile.flush()
    except OSError:  # the client did not wait
        handler.close_connection = True


def _send_raw(handler: BaseHTTPRequestHandler, status: int, raw: Raw) -> None:
    handler.close_connection = True
    handler.send_response(status)
    for name, value in {**raw.headers, "Connection": "close"}.items():
        handler.send_header(name, value)
    handler.end_headers()
    with suppress(OSError):  # the client had enough
        for piece in raw.pieces:
            handler.wfile.write(piece)
            handler.wfile.flush()


def _handler(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # an answer is one packet

        def do_GET(self) -> None:
            server.respond(self, None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            server.respond(self, json.loads(self.rfile.read(length)))

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # connections break on purpose here
                super().handle()

        def finish(self) -> None:
            with suppress(OSError):
                super().finish()

    return Handler
