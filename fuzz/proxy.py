"""A web server between a client and the truth: it passes replies on, or spoils them."""

from __future__ import annotations

import gzip
import os
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import certifi

_BLOCK = 1 << 20
_BOMB = 3_000  # megabytes
_DRIP = 0.2  # seconds between two bytes
_MAX_SENT = 4_000  # megabytes that an endless reply has after all


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    number: int
    """Requests of this case before it."""
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """What it gets."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    manner: str = "whole"
    """How it is sent: ``whole``, ``cut`` in the middle, ``drip`` byte by byte, ``endless``."""


Origin = Callable[[Request], Reply]
Spoil = Callable[[Request, Reply], Reply]


class Proxy(AbstractContextManager["Proxy"]):
    """Serves on a free port of this machine."""

    def __init__(self, origin: Origin, folder: Path) -> None:
        """``origin`` gives the true replies; ``folder`` is for a file that clients need."""
        _trust_little(folder / "root.pem")
        self.origin = origin
        self.spoil: Spoil | None = None
        self.number = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def begin(self, spoil: Spoil | None) -> None:
        """Begin a case."""
        with self._lock:
            self.spoil, self.number = spoil, 0

    def reply(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        """The reply to a request, as the case wants it."""
        with self._lock:
            request, spoil = Request(self.number, method, path, headers, body), self.spoil
            self.number += 1
        reply = self.origin(request)
        return reply if spoil is None else spoil(request, reply)

    def __exit__(self, *_: object) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


def _trust_little(file: Path) -> None:
    """One root certificate instead of all: loading them takes longer than all requests of a case, and none is used."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    file.write_text(f"{begin}{first}{end}\n", encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(file)


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            reply = proxy.reply(self.command, self.path, dict(self.headers), body)
            with suppress(OSError):
                _send(self, reply)

        do_GET = do_POST = do_HEAD = _respond  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError, ValueError):
                super().handle()

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

    return Handler


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    handler.send_response_only(reply.status)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    endless = reply.manner in ("drip", "endless")
    if endless:
        handler.send_header("Connection", "close")
        handler.close_connection = True
    elif "Content-Length" not in reply.headers:
        handler.send_header("Content-Length", str(len(reply.body)))
    handler.end_headers()
    if handler.command == "HEAD":
        return
    if reply.manner == "drip":
        for byte in reply.body:
            handler.wfile.write(bytes([byte]))
            time.sleep(_DRIP)
    elif reply.manner == "endless":
        for _ in range(_MAX_SENT):
            handler.wfile.write(b" " * _BLOCK)
    elif reply.manner == "cut":
        handler.wfile.write(reply.body[: len(reply.body) // 2])
        handler.wfile.flush()
        handler.close_connection = True
        handler.connection.close()
    else:
        handler.wfile.write(reply.body)


@cache
def bomb() -> bytes:
    """Gigabytes of blanks in a few megabytes, as a raw deflate stream."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(b" " * _BLOCK) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * _BOMB + packer.flush()


TRANSPORT = (
    "status", "status", "redirect to itself", "redirect elsewhere", "cut", "longer", "shorter", "charset", "wrong gzip",
    "half gzip", "gzip", "strange headers", "retry later", "deep", "empty", "html", "digits",
)  # fmt: skip
COSTLY = ("bomb", "drip", "endless")


def spoil_transport(random: Random, kind: str, reply: Reply) -> Reply:
    """Spoil a reply in a way that has nothing to do with what it says."""
    body, headers = reply.body, dict(reply.headers)
    if kind == "status":
        return replace(
            reply, status=random.choice((201, 204, 206, 304, 400, 401, 403, 404, 413, 418, 429, 500, 503, 599))
        )
    if kind.startswith("redirect"):
        target = {"redirect to itself": "?", "redirect elsewhere": "http://127.0.0.1:1/x"}[kind]
        target = random.choice((target, target, "", "http://[", "ftp://x/y", "//", "\x01"))
        return replace(reply, status=random.choice((301, 302, 307, 308)), headers=headers | {"Location": target})
    if kind in ("cut", "drip", "endless"):
        return replace(reply, manner=kind)
    if kind == "longer":
        return replace(reply, body=body + b" " * random.randrange(1, 5000))
    if kind == "shorter":
        return replace(reply, body=body[: random.randrange(len(body) + 1)])
    if kind == "charset":
        named = random.choice(("utf-16", "no-such-thing", "\xff", "base64", "punycode", "idna", "rot13", "undefined"))
        return replace(reply, headers=headers | {"Content-Type": f"application/json; charset={named}"})
    if kind == "gzip":
        return replace(reply, body=gzip.compress(body), headers=headers | {"Content-Encoding": "gzip"})
    if kind == "wrong gzip":
        return replace(
            reply, headers=headers | {"Content-Encoding": random.choice(("gzip", "deflate", "br", "zstd", "x"))}
        )
    if kind == "half gzip":
        packed = gzip.compress(body)
        return replace(reply, body=packed[: len(packed) // 2], headers=headers | {"Content-Encoding": "gzip"})
    if kind == "bomb":
        return replace(reply, body=bomb(), headers=headers | {"Content-Encoding": "deflate"})
    if kind == "strange headers":
        name, value = random.choice(
            (("Content-Type", "text/html"), ("Link", "<"), ("Link", "; rel=next"), ("Link", "<http://[>; rel=\"next\""),
             ("Set-Cookie", "a=b"), ("X-Long", "x" * 60_000), ("Content-Range", "bytes 5-1/3"), ("ETag", "\"\""))
        )  # fmt: skip
        return replace(reply, headers=headers | {name: value})
    if kind == "retry later":
        wait = random.choice(("1e9", "-5", "NaN", "soon", "Wed, 21 Oct 2199 07:28:00 GMT", "9" * 500, ""))
        return replace(reply, status=random.choice((429, 503)), headers=headers | {"Retry-After": wait})
    bodies = {"deep": b"[" * 200_000, "empty": b"", "html": b"<html>log in</html>", "digits": b"9" * 5_000}
    return replace(reply, body=bodies[kind])
