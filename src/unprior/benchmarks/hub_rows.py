"""Datasets in the layout of the hub: Parquet files whose images are columns, unpacked once into files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unprior._files import replacing
from unprior.benchmarks.annotations import not_there
from unprior.benchmarks.card import Card
from unprior.errors import UnpriorError

UNPACKED = "unpacked"
"""Folder for the images, inside the benchmark's."""
_BATCH = 32
_elsewhere: ContextVar[Path | None] = ContextVar("_elsewhere", default=None)


def shards(folder: Path, pattern: str, card: Card) -> list[Path]:
    """The Parquet files of a split, in order."""
    found = sorted(path for path in folder.rglob(pattern) if UNPACKED not in path.parts)
    if not found:
        raise not_there(folder, pattern, card)
    return found


def unpacked(folder: Path) -> Path:
    """Where the images of a folder's datasets are unpacked to."""
    return _elsewhere.get() or folder / UNPACKED


@contextmanager
def unpacking_into(folder: Path) -> Iterator[None]:
    """Unpack into another folder, for who must not write beside the dataset."""
    token = _elsewhere.set(folder)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def read_rows(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of several files, one after the other, without their images; each with its place for a person."""
    for path in paths:
        try:
            rows = pq.read_table(path, columns=list(columns)).to_pylist()
            yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows, start=1))
        except (OSError, pa.ArrowException, UnicodeError) as error:
            raise UnpriorError(
                f"{path}: cannot be read as Parquet with the columns {', '.join(columns)} ({error})"
            ) from None


def unpack_images(paths: Sequence[Path], column: str, targets: Sequence[Path | None]) -> None:
    """Write the images of a column to files; None for a row whose image is not needed. What is there already stays."""
    if all(target is None or target.is_file() for target in targets):
        return
    for target, content in zip(targets, read_images(paths, column), strict=True):
        if target is not None and content:
            write_image(target, content)


def read_images(paths: Sequence[Path], column: str) -> Iterator[bytes | None]:
    """The images of a column, row by row; None where a row has none."""
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                if column not in file.schema_arrow.names:
                    raise UnpriorError(f"{path}: no column {column}, which holds the images; get the dataset again")
                for batch in file.iter_batches(batch_size=_BATCH, columns=[column]):
                    yield from map(_content, batch.column(0).to_pylist())
        except (OSError, pa.ArrowException) as error:
            raise UnpriorError(f"{path}: the images of column {column} cannot be read ({error})") from None


def write_image(target: Path, content: bytes) -> None:
    """Write an image, unless it is there already."""
    if not target.is_file():
        with replacing(target) as temporary:
            temporary.write_bytes(content)


def _content(value: Any) -> bytes | None:
    """The hub keeps an image as bytes and a name, or a list of such."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("bytes")
    return value if isinstance(value, bytes) else None
