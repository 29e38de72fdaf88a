"""A real web server of this machine with images, which answers as it is told."""

from __future__ import annotations

import io
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image


def png(side: int = 64) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (side, side), "red").save(stream, "PNG")
    return stream.getvalue()


class ImageServer:
    """A real server of this machine that answers by a function, and keeps what it was sent."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.heads: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.left = threading.Event()
        self.answer: Callable[[BaseHTTPRequestHandler], None] = send_image(png())
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.heads.append({name.lower(): value for name, value in self.headers.items()})
                outer.paths.append(self.path)
                try:
                    outer.answer(self)
                except OSError:
                    outer.left.set()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = int(self.server.server_address[1])
        self.origin = f"http://127.0.0.1:{self.port}"


def send_image(content: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(content)), "Set-Cookie": "a=b", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Never ends, and fails when the client has left."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"\x89")
        handler.wfile.flush()
        threading.Event().wait(0.01)


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[ImageServer]:
    images = ImageServer(context)
    thread = threading.Thread(target=images.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield images
    finally:
        images.server.shutdown()
        images.server.server_close()
