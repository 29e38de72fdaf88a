"""Where benchmarks are downloaded from: lists of files with their addresses and checksums."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from urllib.parse import quote

from unprior.benchmarks.schema import Benchmark
from unprior.errors import UnpriorError

_MAX_PAGES = 10_000
_MAX_NAME, _MAX_PATH = 255, 1024
"""Bytes: what file systems permit in one name, and more than any path of a dataset has."""
_COMMIT = re.compile(r"[0-9A-Za-z]+")

GetJson = Callable[[str], tuple[Any, str | None]]
"""Fetches a document; gives it and the address of its continuation, if there is one."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download."""

    path: str
    """Where it goes, relative to the benchmark's folder."""
    url: str
    size: int | None = None
    checksum: str | None = None
    """``sha256:…``, or ``git:…`` for the name that git gives to the content; None where none is published."""

    def __post_init__(self) -> None:
        """A list from the network must not lead out of the folder, nor promise what cannot be."""
        if not _is_inside(self.path):
            raise UnpriorError(
                f"{self.path!r}: this name leads out of the folder or is none; the list of files is not to be trusted"
            )
        if self.size is not None and (type(self.size) is not int or self.size < 0):
            raise UnpriorError(f"{self.path}: its size is {self.size!r}; the list of files is not to be trusted")
        if not isinstance(self.url, str) or not isinstance(self.checksum, str | None):
            raise UnpriorError(f"{self.path}: its address or checksum is no text; the list of files is not as expected")

    def matches(self, path: Path) -> bool:
        """Whether a file on disk is this one; without a checksum its size (or being there) must do."""
        if self.size is not None and path.stat().st_size != self.size:
            return False
        return self.checksum is None or checksum_of(path, self.checksum.partition(":")[0]) == self.checksum


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a source at one commit."""

    origin: str
    """The source, for a person."""
    commit: str | None
    files: tuple[RemoteFile, ...]


class Source(Protocol):
    """Something that can list its files."""

    def listing(self, get: GetJson, benchmark: Callable[[], Benchmark]) -> Listing:
        """List the files; ``benchmark`` loads what was downloaded so far, for a source that goes by its images."""
        ...


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A dataset on the Hugging Face hub; ``HF_ENDPOINT`` names another hub."""

    repo: str
    revision: str = "main"
    patterns: tuple[str, ...] = ("*",)

    def listing(self, get: GetJson, benchmark: Callable[[], Benchmark]) -> Listing:
        """All files of the repository that fit the patterns."""
        hub = hub_address()
        commit = _commit(get(f"{hub}/api/datasets/{self.repo}/revision/{self.revision}")[0])
        entries: list[dict[str, Any]] = []
        page: str | None = f"{hub}/api/datasets/{self.repo}/tree/{commit}?recursive=true"
        seen: set[str] = set()
        while page:
            seen.add(page)
            more, page = get(page)
            entries += more
            if page in seen or len(seen) > _MAX_PAGES:
                raise UnpriorError(
                    f"{self}: the list of files has no end (page {page} follows itself); try again later"
                )
        files = tuple(
            RemoteFile(
                entry["path"],
                f"{hub}/datasets/{self.repo}/resolve/{commit}/{quote(entry['path'])}",
                entry["size"],
                f"sha256:{entry['lfs']['oid']}" if entry.get("lfs") else f"git:{entry['oid']}",
            )
            for entry in entries
            if entry["type"] == "file" and _fits(entry["path"], self.patterns)
        )
        return Listing(str(self), commit, files)

    def __str__(self) -> str:
        """The source, for a person."""
        return f"hub dataset {self.repo}"


@dataclass(frozen=True, slots=True)
class GitHubFiles:
    """Files of a repository on GitHub."""

    repo: str
    patterns: tuple[str, ...]
    revision: str = "HEAD"
    api: str = "https://api.github.com"
    raw: str = "https://raw.githubusercontent.com"

    def listing(self, get: GetJson, benchmark: Callable[[], Benchmark]) -> Listing:
        """All files of the repository that fit the patterns."""
        commit = _commit(get(f"{self.api}/repos/{self.repo}/commits/{self.revision}")[0])
        tree = get(f"{self.api}/repos/{self.repo}/git/trees/{commit}?recursive=1")[0]["tree"]
        files = tuple(
            RemoteFile(
                entry["path"],
                f"{self.raw}/{self.repo}/{commit}/{quote(entry['path'])}",
                entry["size"],
                f"git:{entry['sha']}",
            )
            for entry in tree
            if entry["type"] == "blob" and _fits(entry["path"], self.patterns)
        )
        return Listing(str(self), commit, files)

    def __str__(self) -> str:
        """The source, for a person."""
        return f"GitHub {self.repo}"


@dataclass(frozen=True, slots=True)
class NamedImages:
    """Images that are published one by one under their names, without checksums."""

    origin: str
    base: str
    """Address of the folder they are in."""
    pattern: str
    """Which of the benchmark's images are there, by the end of their path."""
    into: str
    """Folder they go to, inside the benchmark's."""

    def listing(self, get: GetJson, benchmark: Callable[[], Benchmark]) -> Listing:
        """The benchmark's images that fit the pattern."""
        names = [path.name for path in benchmark().images() if fnmatch(path.as_posix(), self.pattern)]
        return Listing(
            self.origin, None, tuple(RemoteFile(f"{self.into}/{name}", f"{self.base}/{quote(name)}") for name in names)
        )


def hub_address() -> str:
    """The Hugging Face hub, or the one that ``HF_ENDPOINT`` names."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def checksum_of(path: Path, kind: str) -> str:
    """Checksum of a file: ``sha256``, or ``git`` for git's name of its content.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     checksum_of(Path(empty.name), "git")
    'git:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return f"{kind}:{digest.hexdigest()}"


def _commit(answer: dict[str, Any]) -> str:
    commit: str = answer["sha"]
    if not _COMMIT.fullmatch(commit):
        raise TypeError(f"commit {commit!r}")
    return commit


def _is_inside(path: Any) -> bool:
    """Whether a path names a file below a folder, on any system.

    >>> [_is_inside(path) for path in ("data/a.png", "", ".", "a/..", "/a", "C:/a", "a\\b", "x" * 300)]
    [True, False, False, False, False, False, False, False]
    """
    if not isinstance(path, str) or not path.isprintable() or set(path) & set("\\:"):
        return False
    names = path.split("/")
    longest = max(len(os.fsencode(name)) for name in names)
    plain = all(name.strip(". ") for name in names) and not PurePosixPath(path).is_absolute()
    return plain and longest <= _MAX_NAME and len(os.fsencode(path)) <= _MAX_PATH


def _fits(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)
