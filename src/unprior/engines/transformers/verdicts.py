"""What the self-test found out about large models, remembered so that the next start need not find it out again."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from unprior._files import parse_json, replacing
from unprior.benchmarks.data_dir import platform_cache
from unprior.errors import UnpriorError

_MAX_REMEMBERED = 200


def recall(key: str) -> dict[str, Any] | None:
    """The verdict on exactly this model, precision, library and prompt; None if there is none that can be read."""
    cache = _cache_file()
    found = None if cache is None else _read(cache).get(key)
    if not isinstance(found, dict) or not isinstance(found.get("level"), str):
        return None
    numbers = found.get("difference"), found.get("noise")
    sound = all(number is None or (isinstance(number, float) and math.isfinite(number)) for number in numbers)
    return found if sound and numbers[0] is not None else None


def remember(key: str, verdict: dict[str, Any]) -> None:
    """Keep a verdict in the user's cache; where that cannot be written, the next start tests again."""
    cache = _cache_file()
    if cache is None:
        return
    newest = dict(list({**_read(cache), key: verdict}.items())[-_MAX_REMEMBERED:])
    with suppress(UnpriorError, OSError, UnicodeError), replacing(cache) as temporary:
        temporary.write_text(json.dumps(newest, indent=0), encoding="utf-8")


def _read(cache: Path) -> dict[str, Any]:
    try:
        content = parse_json(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _cache_file() -> Path | None:
    try:
        return platform_cache() / "unprior" / "self-tests.json"
    except RuntimeError:  # a user without a home
        return None
