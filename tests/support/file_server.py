"""A small web server in a thread: serves bytes with ranges, and breaks connections when told to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Files:
    """What the server serves, how it misbehaves, and what it was asked."""

    content: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """Link headers by path."""
    break_after: list[int] = field(default_factory=list)
    """For each of the next requests for a file (not for a list): bytes after which the connection breaks."""
    ranges: bool = True
    status: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    encodings: dict[str, str] = field(default_factory=dict)
    """Content-Encoding by path."""
    tokens: list[str | None] = field(default_factory=list)
    """Authorization of every request."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and range of every request."""
    url: str = ""


@contextmanager
def serve() -> Iterator[Files]:
    """A server on a free port of this machine."""
    files = Files()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            files.asked.append((self.path, wanted))
            files.tokens.append(self.headers.get("Authorization"))
            content = files.content.get(self.path)
            if self.path in files.redirects:
                self._send(302, b"")
                return
            if self.path in files.status or content is None:
                self._send(files.status.get(self.path, 404), b"")
                return
            start = int(re.findall(r"\d+", wanted)[0]) if wanted and files.ranges else 0
            if start >= len(content) > 0 and start:
                self._send(416, b"")
                return
            self._send(206 if start else 200, content[start:])

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if self.path in files.redirects:
                self.send_header("Location", files.redirects[self.path])
            if self.path in files.encodings:
                self.send_header("Content-Encoding", files.encodings[self.path])
            if self.path in files.links:
                self.send_header("Link", files.links[self.path])
            self.end_headers()
            if files.break_after and body and not self.path.startswith("/api/"):
                self.wfile.write(body[: files.break_after.pop(0)])
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()
                return
            with suppress(ConnectionError):  # who has enough goes away
                self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    files.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def git_name(content: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def serve_hub(server: Files, repo: str, content: dict[str, bytes], commit: str = "c0ffee") -> None:
    """The answers of a hub about one dataset: half of the files in large-file storage, the list on two pages."""
    entries = []
    for number, (path, data) in enumerate(content.items()):
        lfs = {"lfs": {"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}} if number % 2 else {}
        entries.append({"type": "file", "path": path, "size": len(data), "oid": git_name(data), **lfs})
        server.content[f"/datasets/{repo}/resolve/{commit}/{path}"] = data
    tree = f"/api/datasets/{repo}/tree/{commit}?recursive=true"
    server.content[f"/api/datasets/{repo}/revision/main"] = json.dumps({"sha": commit}).encode()
    server.content[tree] = json.dumps([*entries[:1], {"type": "directory", "path": "data"}]).encode()
    server.links[tree] = f'<{server.url}{tree}&cursor=2>; rel="next"'
    server.content[f"{tree}&cursor=2"] = json.dumps(entries[1:]).encode()
