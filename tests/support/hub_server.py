"""A stand-in for the Hugging Face hub on this machine: the few routes that move the files of one repository."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOKEN = "hf_only_for_this_test"


@dataclass
class Hub:
    """What the server holds, and what it was asked."""

    branches: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    """Files by repository and branch."""
    private: dict[str, bool] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Method and path of every request."""
    url: str = ""


def _commit(files: dict[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


@contextmanager
def serve_models() -> Iterator[Hub]:
    """A hub of models on a free port."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            hub.asked.append(f"POST {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = self.path.partition("?")[0].strip("/").split("/")
            if self.path.startswith("/api/validate-yaml"):
                self._answer({"errors": [], "warnings": []})
                return
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._refuse(401, "Invalid username or password.")
                return
            if parts == ["api", "repos", "create"]:
                self._create(json.loads(body))
                return
            _, _, owner, name, action, revision = parts
            repo = f"{owner}/{name}"
            if action == "branch":
                hub.branches.setdefault((repo, revision), dict(hub.branches[repo, "main"]))
                self._answer({})
            elif action == "preupload":
                mode = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
                files = [{"path": each["path"], **mode} for each in json.loads(body)["files"]]
                self._answer({"files": files})
            else:
                self._take(repo, revision, [json.loads(line) for line in body.splitlines()])

        def _create(self, wanted: dict[str, Any]) -> None:
            repo = f"{wanted['organization']}/{wanted['name']}"
            if (repo, "main") in hub.branches:
                self._refuse(409, "You already created this model repo", url=f"{hub.url}/{repo}")
                return
            hub.branches[repo, "main"] = {}
            hub.private[repo] = wanted.get("visibility") == "private" or bool(wanted.get("private"))
            self._answer({"url": f"{hub.url}/{repo}"})

        def _take(self, repo: str, revision: str, lines: list[dict[str, Any]]) -> None:
            files = hub.branches[repo, revision]
            for line in lines:
                if line["key"] == "header":
                    hub.messages.append(line["value"]["summary"])
                else:
                    assert line["value"]["encoding"] == "base64"
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = _commit(files)
            self._answer({"commitUrl": f"{hub.url}/{repo}/commit/{commit}", "commitOid": commit})

        def do_HEAD(self) -> None:
            self._file(with_body=False)

        def do_GET(self) -> None:
            self._file(with_body=True)

        def _file(self, *, with_body: bool) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            parts = self.path.strip("/").split("/")
            repo, rest = "/".join(parts[:2]), parts[2:]
            revision, name = (rest[1], "/".join(rest[2:])) if rest[:1] == ["resolve"] else ("main", "")
            if (repo, "main") not in hub.branches:
                self._refuse(404, "Repository not found", code="RepoNotFound")
                return
            named = {_commit(files): files for (other, _), files in hub.branches.items() if other == repo}
            files = hub.branches.get((repo, revision), named.get(revision))
            if files is None:
                self._refuse(404, f"Invalid rev id: {revision}", code="RevisionNotFound")
            elif name not in files:
                self._refuse(404, "Entry not found", code="EntryNotFound", commit=_commit(files))
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(files[name])))
                self.send_header("ETag", f'"{hashlib.sha1(files[name]).hexdigest()}"')
                self.send_header("X-Repo-Commit", _commit(files))
                self.end_headers()
                if with_body:
                    self.wfile.write(files[name])

        def _answer(self, content: dict[str, Any], status: int = 200, **headers: str) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _refuse(
            self, status: int, message: str, *, code: str | None = None, commit: str | None = None, **more: str
        ) -> None:
            headers = {"X-Error-Message": message}
            headers |= {} if code is None else {"X-Error-Code": code}
            headers |= {} if commit is None else {"X-Repo-Commit": commit}
            self._answer({"error": message, **more}, status, **headers)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
