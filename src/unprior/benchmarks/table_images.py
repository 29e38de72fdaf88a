"""Images of a table of questions: bytes and base64 written into files once, paths taken as they are."""

from __future__ import annotations

import ast
import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unprior._files import is_file
from unprior.benchmarks.hub_rows import write_image

FOLDER = "tables"
"""Where unpacked images lie in the data directory, in a folder for every table."""
_LONGEST_NAME = 64
"""Of a text that may be the name of another row; VLMEvalKit's own rule."""
_LONGEST_PATH = 4096
_LONGEST_LIST = 1 << 28


@dataclass(frozen=True, slots=True)
class OtherRow:
    """The image is that of another row."""

    name: str


class NoImageError(ValueError):
    """What is wrong with the image of a row."""


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """Where the images of one table lie."""

    unpacked: Path
    """For those that are bytes in the table."""
    beside: tuple[Path, ...]
    """Folders that paths may be relative to."""

    @classmethod
    def from_file(cls, data: Path, file: Path, beside: Sequence[Path]) -> ImageFolder:
        """A folder for a file as it is now: when it changes, its images are unpacked again."""
        state = (str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns)
        digest = hashlib.sha256(json.dumps(state).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        return cls(data / FOLDER / f"{file.stem[:60]}-{digest}", tuple(beside))

    def place(self, name: str, value: Any) -> Path | OtherRow:
        """The file of an image, written if it is not there; ``name`` tells the row."""
        value = _single(value)
        if isinstance(value, dict):  # as `datasets` keeps images: bytes, or where they are
            value = value.get("bytes") if value.get("bytes") is not None else value.get("path")
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is None or value in ("", b""):
            raise NoImageError("has no image")
        if isinstance(value, str):
            value = self._from_text(value.strip(), self.unpacked / name)
        if isinstance(value, bytes):
            write_image(self.unpacked / name, value)
            return self.unpacked / name
        if isinstance(value, Path | OtherRow):
            return value
        raise NoImageError(f"has a {type(value).__name__} for an image; give bytes, base64 or a path")

    def _from_text(self, text: str, target: Path) -> Path | OtherRow | bytes:
        if text.startswith(("http://", "https://")):
            raise NoImageError(f"names its image by an address, which is not fetched ({text[:60]}); download it first")
        if len(text) <= _LONGEST_PATH and (found := self._find(text)) is not None:
            return found
        if len(text) <= _LONGEST_NAME:
            return OtherRow(text)
        if is_file(target):
            return target
        _, comma, encoded = text.partition(",") if text.startswith("data:") else ("", ",", text)
        try:
            if not comma:
                raise binascii.Error("no comma after data:")
            return base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError):
            shown = f"{text[:30]}…"
            raise NoImageError(f"has an image that is neither base64 nor a file that is there ({shown!r})") from None

    def _find(self, text: str) -> Path | None:
        return next((path for folder in self.beside if is_file(path := folder / text)), None)


def _single(value: Any) -> Any:
    """The only one of a list of images, which a text may spell."""
    if isinstance(value, str) and value.lstrip()[:1] == "[" and len(value) < _LONGEST_LIST:
        value = parse_list(value)
    if not isinstance(value, list):
        return value
    if len(value) > 1:
        raise NoImageError(f"has {len(value)} images; a question here is about one")
    return value[0] if value else None


def parse_list(text: str) -> list[Any] | str:
    """A list in the words of JSON or Python, or else the text itself.

    >>> parse_list("['a', 'b']"), parse_list('["a"]'), parse_list("[a")
    (['a', 'b'], ['a'], '[a')
    """
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(parsed, list):
            return parsed
    return text


def resolve(places: Sequence[Path | OtherRow], names: Sequence[str]) -> list[Path | str]:
    """The file of every image, those of other rows included; a text is what is wrong with one."""
    own = {name: place for name, place in zip(names, places, strict=True) if isinstance(place, Path)}

    def find(place: Path | OtherRow) -> Path | str:
        if isinstance(place, Path):
            return place
        return own.get(place.name) or (
            f"image {place.name!r} is neither base64, nor a file that is there, nor the name of a row with an image"
        )

    return [find(place) for place in places]
