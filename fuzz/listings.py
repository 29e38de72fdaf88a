"""Downloads: ``unprior data get`` from a hub that lies, and ``data check`` of what lies on the disk."""

from __future__ import annotations

import http.client
import io
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

import unprior.benchmarks.download as downloads
from file_server import serve, serve_hub
from fuzz.case import Case, Target, require
from fuzz.commands import Ran, command
from fuzz.mutate import STRANGE, at, changed_bytes, changed_json, dumps, places, put
from fuzz.proxy import TRANSPORT, Proxy, Reply, Request, spoil_transport

_NAME = "cdh-bench"
_COSTLY = ("bomb", "endless")  # a slow connection alone is no fault, progress is shown
_ELSEWHERE = Path(tempfile.gettempdir()) / "unprior-outside"
_PATHS = (
    "", ".", "..", "/", "../outside", str(_ELSEWHERE), "a/../../outside", "data", "data/", "data/benchmark.jsonl/x",
    "a" * 300, "a\x00b", "\ud800", "con", "download.json", "questions.jsonl", "data/benchmark.jsonl.part", "-rf", "~",
    "data//x", "./x", "data\\x", "é", "%2e%2e/x", "a?b#c", "\x1b[31m",
)  # fmt: skip
_SIZES = (0, -1, 1, 5, 10**12, 2**70, 1.5, "7", "x", None, True, float("nan"))


def make(folder: Path) -> Target:
    """A hub on this machine with one pair, behind a proxy that spoils what it says."""
    return _Listings(folder).run


class _Listings:
    def __init__(self, folder: Path) -> None:
        if hasattr(downloads, "_PAUSE"):
            downloads._PAUSE = 0.0  # what is waited for does not matter here
        self.known: dict[tuple[str, str, str | None], Reply] = {}
        self.serving = serve()
        self.hub = self.serving.__enter__()
        self.address = self.hub.url.removeprefix("http://")
        self.proxy = Proxy(self._origin, folder)
        self.hub.url = self.proxy.url  # so that continued lists come through the proxy, too
        self.content = _one_pair()
        serve_hub(self.hub, _repository(), self.content)
        os.environ["HF_ENDPOINT"] = self.proxy.url
        self.folder = folder / "whole"
        whole = command("data", "get", _NAME, "--out", self.folder, "--json")
        require(whole.code == 0, f"the untouched hub does not work: {whole.err}")
        self.files = _files(self.folder)

    def run(self, case: Case) -> bool:
        random = case.random
        if random.random() < 0.25:
            return self._check(case)
        kind = random.choices(
            ("listing", "path", "size", "bytes", "file", "page", "transport", "costly"), (6, 3, 3, 3, 3, 2, 6, 0.4)
        )[0]
        way = random.choice(TRANSPORT) if kind == "transport" else random.choice(_COSTLY) if kind == "costly" else ""
        spoiler = _Spoiler(random, kind, way, self.proxy.url)
        case.note(f"{kind} {way}".strip())
        out = case.folder / "inside" / _NAME
        self.proxy.begin(spoiler)
        try:
            ran = command("data", "get", _NAME, "--out", out, "--json")
        finally:
            self.proxy.begin(None)
            for note in spoiler.notes[:20]:
                case.note(note)
        self._inside(case, out, ran, strict=spoiler.once)
        again = command("data", "get", _NAME, "--out", out, "--json") if random.random() < 0.5 else None
        if again is not None and spoiler.harmless_names:
            require(again.code == 0, f"after a spoilt download the next one does not mend it: {again.err}")
            self._same(out, "after a spoilt download and a good one")
        return ran.accepted

    def _inside(self, case: Case, out: Path, ran: Ran, *, strict: bool) -> None:
        """Nothing lies beside the folder, nothing is larger than it was listed, and what was accepted is right."""
        beside = [path for path in case.folder.rglob("*") if path.is_file() and not path.is_relative_to(out)]
        beside = [path for path in beside if path.parent != case.folder]
        require(not beside, f"files were written beside the folder: {beside}")
        require(not _ELSEWHERE.exists(), f"a file was written to {_ELSEWHERE}")
        if ran.accepted and strict:
            self._same(out, "accepted")

    def _same(self, out: Path, when: str) -> None:
        found = _files(out)
        for name, content in self.content.items():
            require(found.get(name) == content, f"{when}, a file is not what was published: {name}")

    def _check(self, case: Case) -> bool:
        """A folder that was changed: sound only if every file is what was published."""
        random = case.random
        out = case.folder / "inside" / _NAME
        for name, content in self.files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        name = random.choice(list(self.files))
        changed = changed_bytes(random, self.files[name])
        if name.endswith(("json", "jsonl")) and random.random() < 0.7:
            lines = [line for line in self.files[name].split(b"\n") if line.strip()]
            value = json.loads(lines[0] if name.endswith("jsonl") else self.files[name])
            new, note = changed_json(random, value)
            case.note(note)
            changed = dumps(new)
        case.note(f"check, {name}")
        (out / name).write_bytes(changed)
        ran = command("data", "check", _NAME, out, "--json", codes=(0, 1, 2))
        if ran.accepted and name in self.content and changed != self.content[name]:
            require(name in ran.json["changed"], f"a changed file is not noticed: {name}")
        command(*random.choice((["data", "list"], ["data", "show", _NAME])), "--data-dir", out.parent)
        return ran.accepted

    def _origin(self, request: Request) -> Reply:
        key = (request.method, request.path, request.headers.get("Range"))
        if key not in self.known:
            self.known[key] = self._fetch(request)
        return self.known[key]

    def _fetch(self, request: Request) -> Reply:
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            connection.request(request.method, request.path, headers=_passed_on(request.headers))
            got = connection.getresponse()
            body = got.read()
            headers = {
                name: value
                for name, value in got.getheaders()
                if name.lower() not in ("content-length", "connection", "date", "server")
            }
            if request.method == "HEAD":
                headers["Content-Length"] = got.getheader("Content-Length") or "0"
            return Reply(got.status, headers, body)
        finally:
            connection.close()


class _Spoiler:
    """Spoils the list of files, or the files."""

    def __init__(self, random: Random, kind: str, way: str, url: str) -> None:
        self.random, self.kind, self.way, self.url = random, kind, way, url
        self.first, self.done = random.randrange(4), False
        self.always = random.random() < 0.5
        self.once = kind in ("transport", "costly", "file", "page")
        """Whether the list, as far as it was believed, is the true one."""
        self.harmless_names = kind != "path"
        self.notes: list[str] = []

    def __call__(self, request: Request, reply: Reply) -> Reply:
        listing = "/api/" in request.path
        wanted = (
            not listing
            if self.kind == "file"
            else self.kind in ("transport", "costly") or (listing and "tree" in request.path)
        )
        if self.kind in ("listing", "bytes"):
            wanted = listing
        if not wanted or request.number < self.first or (self.done and not self.always):
            return reply
        self.done = True
        self.notes.append(f"{request.method} {request.path}")
        random = self.random
        if self.kind in ("transport", "costly"):
            return spoil_transport(random, self.way, reply)
        if self.kind == "page":
            target = random.choice(
                (f"{self.url}{request.path}", f"{self.url}{request.path}&again", "http://[", "", "ftp://x", "x")
            )
            return replace(reply, headers=reply.headers | {"Link": f'<{target}>; rel="next"'})
        if self.kind in ("bytes", "file"):
            return replace(
                reply, body=self._other_file(reply.body) if self.kind == "file" else changed_bytes(random, reply.body)
            )
        value = json.loads(reply.body)
        if self.kind == "listing":
            value, note = changed_json(random, value)
        else:
            names = [path for path in places(value) if path and path[-1] == self.kind]
            if not names:
                return reply
            place = random.choice(names)
            new: Any = random.choice((*(_PATHS if self.kind == "path" else _SIZES), *STRANGE[:12]))
            note = f"{at(value, place)!r} becomes {str(new)[:40]!r}"
            value = put(value, place, new)
        self.notes.append(note)
        return replace(reply, body=dumps(value))

    def _other_file(self, body: bytes) -> bytes:
        longer = body + b"x" * self.random.choice((1, 1000, 50_000_000))
        return self.random.choice((longer, changed_bytes(self.random, body), b"", body[:-1]))


def _passed_on(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in ("range", "accept-encoding", "if-range")}


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _repository() -> str:
    from unprior.benchmarks.registry import find_entry

    (source,) = find_entry(_NAME).sources
    return str(source.repo)  # type: ignore[attr-defined]  # a hub dataset


def _one_pair() -> dict[str, bytes]:
    """The published layout with one pair."""
    choice = {"question": "Which color?", "options": ["A. red", "B. blue", "C. pink", "D. green"]}
    record = {
        "category": "Attribute Anomalies", "subcategory": "Color", "pair_id": "Pair 201", "pair_name": "a vs b",
        "multiple_choice": choice | {"counterfactual_gt": "B", "commonsense_gt": "A"},
        "direct_qa": {"question": "Is it red and not blue?", "counterfactual_gt": "no", "commonsense_gt": "yes"},
    }  # fmt: skip
    images = {
        f"data/images/Color/Pair_201/{side}.png": _image(color)
        for side, color in (("counterfactual", "blue"), ("commonsense", "red"))
    }
    return {"data/benchmark.jsonl": json.dumps(record).encode()} | images


def _image(color: str) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (8, 8), color).save(sink, "PNG")
    return sink.getvalue()
