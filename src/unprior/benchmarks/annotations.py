"""Annotation files as they are published: finding and reading them, with errors that name the place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unprior._files import open_to_read, parse_json, read_lines, read_whole
from unprior.benchmarks.card import Card
from unprior.errors import UnpriorError, format_option

_PLACES = (".", "data")
"""Repositories keep their files at the top or in ``data``."""


def find_file(folder: Path, name: str, card: Card, *places: str, downloaded: bool = True) -> Path:
    """The annotation file of a benchmark, at the top of its folder, in ``data`` or in the places of its repository."""
    tried = [folder / place / name for place in (*_PLACES, *places)]
    found = next((path for path in tried if path.is_file()), None)
    if found is None:
        remedy = None if downloaded else f"it cannot be downloaded; get {card.by_hand}"
        raise not_there(folder, name, card, remedy)
    return found


def not_there(folder: Path, lacks: str, card: Card, remedy: str | None = None) -> UnpriorError:
    """What to say of a folder that does not hold the files of a benchmark."""
    remedy = remedy or f"`unprior data get {card.name}` downloads it"
    return UnpriorError(
        f"{folder}: no {lacks}, so {card.name} is not there; {remedy}, and "
        f"{format_option('data_dir')} or UNPRIOR_DATA name the folder that holds {card.name} ({card.published})"
    )


def find_folder(folder: Path, *names: str) -> Path:
    """The folder of the images: the first of the names that is there, at the top or in ``data``."""
    places = [folder / place / name for name in names for place in _PLACES]
    return next((place for place in places if place.is_dir()), folder / names[0])


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not empty."""
    with open_to_read(path) as stream:
        for number, line in read_lines(stream, path):
            record = _parsed(line, f"{path}, line {number}")
            if not isinstance(record, dict):
                raise UnpriorError(f"{path}, line {number}: not a JSON object; the file may be truncated")
            yield number, record


def read_json_list(path: Path) -> list[dict[str, Any]]:
    """A file that is one JSON list of objects."""
    records = _parsed(read_whole(path), str(path))
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise UnpriorError(f"{path}: not a JSON list of objects; get the file again")
    return records


def _parsed(content: bytes, where: str) -> Any:
    try:
        return parse_json(content)
    except (ValueError, RecursionError):
        raise UnpriorError(f"{where}: not JSON; the file may be truncated, get it again") from None
