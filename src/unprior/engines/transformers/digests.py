"""Digests of a model's folder: every byte counts, but a large file is read again only when it has changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from unprior._files import parse_json, replacing
from unprior.benchmarks.data_dir import platform_cache
from unprior.errors import UnpriorError

_LARGE = 1 << 24
"""Smaller files are read every time: that costs less than asking whether they have changed."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which another write must show in a file's time stamp, on any file system."""
_MAX_REMEMBERED = 2_000
_DIGEST = re.compile("[0-9a-f]{64}")
_ABOUT_THE_MODEL = ("license", "notice", "readme")


def folder_digest(folder: Path) -> str:
    """Digest of names and contents of all files of a folder but hidden ones, readmes and licences.

    Digests of large files are remembered in the user's cache by path, size, times and inode; without a cache, or with a
    broken one, they are computed again.
    """
    cache = _cache_file()
    known = {} if cache is None else _remembered(cache)
    fresh: dict[str, str] = {}
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.lower().startswith(_ABOUT_THE_MODEL) or not path.is_file():
            continue
        digest.update(f"{path.name}:{_file_digest(path, known, fresh)}\n".encode("utf-8", "surrogateescape"))
    if fresh and cache is not None:
        _remember(cache, fresh)
    return digest.hexdigest()


def _file_digest(path: Path, known: dict[str, str], fresh: dict[str, str]) -> str:
    """Digest of one file, taken from ``known`` or noted in ``fresh`` where that is safe."""
    try:
        before, started = path.stat(), time.time_ns()
        key = _key(path, before)
        if before.st_size >= _LARGE and key in known:
            return known[key]
        with path.open("rb", buffering=0) as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        # A file that was written a moment ago may be written again without a change of its time stamps.
        settled = before.st_mtime_ns + _SETTLED < started and _key(path, path.stat()) == key
    except OSError as error:
        raise UnpriorError(f"{path}: cannot be read ({error.strerror or error})") from None
    if before.st_size >= _LARGE and settled:
        fresh[key] = content
    return content


def _key(path: Path, state: os.stat_result) -> str:
    return f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}|{state.st_ctime_ns}|{state.st_dev}:{state.st_ino}"


def _cache_file() -> Path | None:
    try:
        return platform_cache() / "unprior" / "digests.json"
    except RuntimeError:  # a user without a home
        return None


def _remembered(cache: Path) -> dict[str, str]:
    """Digests by file and state; whatever is not a digest is left out."""
    try:
        content = parse_json(cache.read_bytes())
        return {key: value for key, value in content.items() if isinstance(value, str) and _DIGEST.fullmatch(value)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _remember(cache: Path, fresh: dict[str, str]) -> None:
    """Add to what is there now; of two processes at the same moment one may lose, and its digests are made again."""
    places = {key.partition("|")[0] for key in fresh}
    kept = {key: value for key, value in _remembered(cache).items() if key.partition("|")[0] not in places}
    newest = dict(list({**kept, **fresh}.items())[-_MAX_REMEMBERED:])
    with suppress(UnpriorError, OSError, UnicodeError), replacing(cache) as temporary:
        temporary.write_text(json.dumps(newest, indent=0), encoding="utf-8")
