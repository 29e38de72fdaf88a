"""Changes to inputs of any kind: bytes and JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

Place = tuple[Any, ...]
"""Keys and positions that lead to a value inside JSON."""

_DEEP, _DIGITS, _INFINITE = "@deep@", "@digits@", "@infinite@"
_RAW = {_DEEP: "[" * 60_000 + "]" * 60_000, _DIGITS: "9" * 5_000, _INFINITE: "1e999"}
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-320, 1e308, -1e308, 1e7, -4.5, float("nan"), float("inf"),
    float("-inf"), 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, "", " ", "0", "NaN", "yes", "A", "null", "\ud800",
    "\x00", "\x1b[31m", "é", "e\u0301", "=1+1", "[/x]", "../../x", "a" * 70_000, "🙂" * 300, [], {}, [[]], [None],
    {"": None}, ["A", "A"], [0.0] * 3, _DEEP, _DIGITS, _INFINITE,
)  # fmt: skip
"""Values that programs like to stumble over."""
_PIECES = (
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"NaN",
    b"Infinity", b"-", b"1e999", b"null", b"\\ud800", b"\xc3", b"\xed\xa0\x80", b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff", b"9" * 40,
)  # fmt: skip


def changed_bytes(random: Random, content: bytes) -> bytes:
    """One to four changes anywhere: flipped, deleted, doubled, inserted, cut."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.randrange(len(data) + 1)
        length = random.choice((1, 1, 2, 4, 8, 64, 1024))
        kind = random.choice(("flip", "set", "delete", "double", "insert", "cut", "swap", "fill"))
        if kind == "insert" or not data:
            data[place:place] = random.choice(_PIECES)
        elif kind == "flip":
            data[min(place, len(data) - 1)] ^= 1 << random.randrange(8)
        elif kind == "set":
            data[min(place, len(data) - 1)] = random.choice((0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x30, 0x39))
        elif kind == "delete":
            del data[place : place + length]
        elif kind == "double":
            data[place:place] = data[place : place + length]
        elif kind == "cut":
            del data[place:]
        elif kind == "swap":
            other = random.randrange(len(data) + 1)
            data[place : place + length], data[other : other + length] = (
                data[other : other + length],
                data[place : place + length],
            )
        else:
            data[place : place + length] = bytes([random.randrange(256)]) * length
    return bytes(data)


def changed_json(random: Random, value: Any, strange: tuple[Any, ...] = STRANGE) -> tuple[Any, str]:
    """A copy with one to three changes at random places, and what was changed."""
    value = copy.deepcopy(value)
    notes = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        path = some_place(random, value)
        value, note = change_at(random, value, path, strange)
        notes.append(note)
    return value, "; ".join(notes)


def change_at(random: Random, value: Any, path: Place, strange: tuple[Any, ...] = STRANGE) -> tuple[Any, str]:
    """Change what lies at a place: replaced, deleted, doubled, renamed, wrapped, moved, or with something added."""
    found = at(value, path)
    kinds = ["replace", "replace", "replace", "wrap"]
    if path:
        kinds += ["delete", "double"]
        if isinstance(path[-1], str):
            kinds.append("rename")
    if isinstance(found, list) and len(found) > 1:
        kinds += ["shuffle", "reverse"]
    if isinstance(found, dict | list):
        kinds.append("add")
    kind = random.choice(kinds)
    alike = [value for value in strange if _kind(value) == _kind(found)]  # what passes the first check
    new: Any = random.choice(alike if alike and random.random() < 0.6 else strange)
    where = "/".join(map(str, path)) or "everything"
    if kind == "replace":
        return put(value, path, new), f"{where}: replaced by {_short(new)}"
    if kind == "wrap":
        return put(value, path, random.choice(([found], {"value": found}, str(found)))), f"{where}: wrapped"
    if kind == "shuffle":
        return put(value, path, random.sample(found, len(found))), f"{where}: shuffled"
    if kind == "reverse":
        return put(value, path, found[::-1]), f"{where}: reversed"
    if kind == "add":
        if isinstance(found, list):
            found.insert(random.randrange(len(found) + 1), new)
        else:
            found[random.choice(("extra", "", "é", "format", "answer"))] = new
        return value, f"{where}: added {_short(new)}"
    parent, last = at(value, path[:-1]), path[-1]
    if kind == "delete":
        del parent[last]
    elif kind == "rename":
        parent[random.choice((f"{last} ", str(last).upper(), f"{last}_2", ""))] = parent.pop(last)
    elif isinstance(parent, list):
        parent.insert(last, copy.deepcopy(found))
    else:
        parent[f"{last}2"] = copy.deepcopy(found)
    return value, f"{where}: {kind}d"


def some_place(random: Random, value: Any) -> Place:
    """A place by lot, step by step: what holds many values is not chosen more often than what holds few."""
    path: Place = ()
    while isinstance(value, dict | list) and value and random.random() < 0.85:
        step = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
        path, value = (*path, step), value[step]
    return path


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place inside a JSON value, the whole first."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from places(inner, (*path, position))


def at(value: Any, path: Place) -> Any:
    """What lies at a place."""
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: Place, new: Any) -> Any:
    """Put something at a place; gives the whole, which is the new value itself if the place is everything."""
    if not path:
        return new
    at(value, path[:-1])[path[-1]] = new
    return value


def dumps(value: Any, **options: Any) -> bytes:
    """JSON text, with what Python cannot hold (endless nesting, endless digits) spelled out."""
    text = json.dumps(value, **options)
    for marker, spelled in _RAW.items():
        text = text.replace(f'"{marker}"', spelled)
    return text.encode("utf-8", "surrogatepass")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "number" if value in (_DIGITS, _INFINITE) else "list" if value == _DEEP else "text"
    if isinstance(value, bool) or value is None:
        return "word"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
