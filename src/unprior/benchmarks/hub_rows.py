"""Datasets in the layout of the hub: Parquet files whose images are columns, unpacked once into files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unprior._files import replacing
from unprior.benchmarks.card import Card
from unprior.errors import UnpriorError

UNPACKED = "unpacked"
"""Folder for the images, inside the benchmark's."""
_BATCH = 32


def shards(folder: Path, pattern: str, card: Card) -> list[Path]:
    """The Parquet files of a split, in order."""
    found = sorted(path for path in folder.rglob(pattern) if UNPACKED not in path.parts)
    if not found:
        raise UnpriorError(
            f"{folder}: no {pattern}, so {card.name} is not there; `unprior data get {card.name}` downloads it, and "
            f"--data-dir or UNPRIOR_DATA name the folder that holds {card.name} ({card.published})"
        )
    return found


def read_rows(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of several files, one after the other, without their images."""
    for path in paths:
        try:
            yield from pq.read_table(path, columns=list(columns)).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise UnpriorError(
                f"{path}: cannot be read as Parquet with the columns {', '.join(columns)} ({error})"
            ) from None


def unpack_images(paths: Sequence[Path], column: str, targets: Sequence[Path | None]) -> None:
    """Write the images of a column to files; None for a row whose image is not needed. What is there already stays."""
    if all(target is None or target.is_file() for target in targets):
        return
    row = 0
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_BATCH, columns=[column]):
            for value in batch.column(0).to_pylist():
                target = targets[row]
                row += 1
                content = _content(value)
                if target is not None and content and not target.is_file():
                    with replacing(target) as temporary:
                        temporary.write_bytes(content)


def _content(value: Any) -> bytes | None:
    """The hub keeps an image as bytes and a name, or a list of such."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("bytes")
    return value if isinstance(value, bytes) else None
