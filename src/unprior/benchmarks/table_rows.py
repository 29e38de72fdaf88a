"""Rows of tables of questions: tab-separated text, and the Parquet and Arrow files of Hugging Face's datasets."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unprior._files import MAX_BYTES, is_file, is_parquet, open_to_read, parse_json
from unprior.errors import UnpriorError

TEXT, ARROW = ".tsv", ".arrow"
_SUFFIXES = (TEXT, ARROW, ".parquet")
_BATCH = 32
_POINTER = b"version https://git-lfs.github.com/spec/"
_SHARD = re.compile(r"(?P<split>.+?)-\d{5}-of-\d{5}(-[0-9a-f]+)?")
_KEYWORDS = {
    "train": ("train", "training"),
    "dev": ("dev", "val", "valid", "validation"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""Words for a split, as Hugging Face's datasets read them from names of files."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, or what is wrong with it."""

    number: int
    """Line of a text, row of another file; from 1."""
    values: Mapping[str, Any]
    problem: str | None = None


def is_table(path: Path) -> bool:
    """Whether a path is a table of questions, or a folder with such: by its name, or by how it begins."""
    if path.is_dir():
        return bool(shards_of(path))
    if path.suffix.lower() in _SUFFIXES:
        return True
    if not is_file(path):  # reading a pipe would consume it
        return False
    with open_to_read(path) as stream:
        return is_parquet(stream)


def shards_of(path: Path) -> list[Path]:
    """The files of a table, in order: of a folder all Parquet files in it, or else all Arrow files."""
    if not path.is_dir():
        return [path]
    for suffix in (".parquet", ARROW):
        found = sorted(
            each
            for each in path.rglob(f"*{suffix}")
            # `datasets` keeps intermediate results beside its own files.
            if each.is_file() and not each.name.startswith(("cache-", "."))
        )
        if found:
            return found
    return []


def split_of(shard: Path, folder: Path) -> str | None:
    """The split that the name of a file, or of a folder around it, stands for.

    >>> split_of(Path("set/data/validation-00000-of-00002.parquet"), Path("set"))
    'dev'
    >>> split_of(Path("set/test/data-00000-of-00001.arrow"), Path("set")), split_of(Path("all.parquet"), Path("."))
    ('test', None)
    """
    matched = _SHARD.fullmatch(shard.stem)
    name = matched["split"] if matched else shard.stem
    if (known := known_split(name)) in _KEYWORDS:
        return known
    if matched and name != "data":
        return name
    parts = shard.parent.relative_to(folder).parts if shard.is_relative_to(folder) else ()
    return next((split for part in reversed(parts) if (split := known_split(part)) in _KEYWORDS), None)


def known_split(name: str) -> str:
    """A split by the name that it has here: ``validation`` and the like are ``dev``.

    >>> known_split("Validation"), known_split("hard")
    ('dev', 'hard')
    """
    return next((split for split, words in _KEYWORDS.items() if name.casefold() in words), name)


def column_names(path: Path) -> list[str]:
    """The columns of a file."""
    with _opened(path) as stream:
        if path.suffix.lower() == TEXT:
            return _header(next(_records(stream, path), (1, []))[1], path)
        return list(_schema(stream, path).names)


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file with some of its columns, one after the other; large files need little memory."""
    with _opened(path) as stream:
        if path.suffix.lower() == TEXT:
            yield from _text_rows(stream, path, columns)
        else:
            yield from _typed_rows(stream, path, columns)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    with open_to_read(path) as stream:
        if stream.peek(len(_POINTER)).startswith(_POINTER):
            raise UnpriorError(
                f"{path}: this is a Git LFS pointer, a note that stands for the file; get the file itself with "
                f"`git lfs pull`, or download it again"
            )
        yield stream


def _text_rows(stream: BufferedReader, path: Path, columns: Sequence[str]) -> Iterator[Row]:
    records = _records(stream, path)
    header = _header(next(records, (1, []))[1], path)
    places = {name: header.index(name) for name in columns}
    for number, cells in records:
        if len(cells) != len(header):
            told = f"has {len(cells)} cells, the first line names {len(header)} columns; separate them by single tabs"
            yield Row(number, {}, told)
            continue
        # An empty cell is one without a value, as in files that pandas writes.
        yield Row(number, {name: cells[place] or None for name, place in places.items()})


def _records(stream: BufferedReader, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a text as cells, each with its number; a cell in quotes may have several lines."""
    before, line = csv.field_size_limit(MAX_BYTES), 0
    try:
        reader = csv.reader(_decoded_lines(stream, path), delimiter="\t", strict=True)
        for cells in reader:
            if cells:
                yield line + 1, cells
            line = reader.line_num
    except csv.Error as error:
        raise UnpriorError(
            f"{path}, line {line + 1}: no row of a table ({error}); a cell with a quotation mark stands in quotation "
            f"marks, and those inside are doubled"
        ) from None
    finally:
        csv.field_size_limit(before)


def _decoded_lines(stream: BufferedReader, path: Path) -> Iterator[str]:
    number = 0
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        try:
            if len(line) > MAX_BYTES:
                raise UnpriorError(f"{path}, line {number}: longer than {MAX_BYTES >> 20} MB; make its image smaller")
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UnpriorError(f"{path}, line {number}: this is no UTF-8 text; save the table as UTF-8") from None


def _header(cells: Sequence[str], path: Path) -> list[str]:
    if not cells:
        raise UnpriorError(f"{path}: no questions, the file is empty")
    if any("\0" in name for name in cells):
        raise UnpriorError(f"{path}: the first line has NUL bytes, so this is no UTF-8 text; save the table as UTF-8")
    names = [name.strip() for name in cells]
    if twice := next((name for name, count in Counter(names).items() if name and count > 1), None):
        raise UnpriorError(f"{path}: two columns are called {twice!r}; rename one of them")
    return names


def _typed_rows(stream: BufferedReader, path: Path, columns: Sequence[str]) -> Iterator[Row]:
    labels = _class_labels(_schema(stream, path), path)
    number = 0
    with _reading(path):
        for batch in _batches(stream, columns):
            for values in batch.to_pylist():
                number += 1
                named = {name: _named(labels[name], values[name]) for name in columns if name in labels}
                yield Row(number, values | named)


def _batches(stream: BufferedReader, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    stream.seek(0)
    if is_parquet(stream):
        with pq.ParquetFile(stream) as file:
            yield from file.iter_batches(batch_size=_BATCH, columns=list(columns))
        return
    with pa.ipc.open_stream(stream) as reader:
        for batch in reader:
            batch.validate(full=True)  # unlike Parquet's, these bytes are used as they are
            chosen = batch.select(list(columns))
            yield from (chosen.slice(start, _BATCH) for start in range(0, batch.num_rows, _BATCH))


def _schema(stream: BufferedReader, path: Path) -> pa.Schema:
    if not stream.peek(1):
        raise UnpriorError(f"{path}: no questions, the file is empty")
    with _reading(path):
        if is_parquet(stream):
            return pq.read_schema(stream)
        if path.suffix.lower() != ARROW:
            raise pa.ArrowInvalid("it does not begin like one")
        with pa.ipc.open_stream(stream) as reader:
            return reader.schema


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except UnpriorError:
        raise
    except (pa.ArrowException, ValueError, KeyError, OverflowError) as error:
        kind = "an Arrow stream" if path.suffix.lower() == ARROW else "a Parquet file"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnpriorError(f"{path}: cannot be read as {kind} ({reason}); get or write it again") from None


def _class_labels(schema: pa.Schema, path: Path) -> dict[str, list[str]]:
    """Names of the classes of columns that hold numbers of classes, from the note that `datasets` leaves."""
    raw = (schema.metadata or {}).get(b"huggingface")
    try:
        features = {} if raw is None else parse_json(raw)["info"]["features"]
        labels = {name: each["names"] for name, each in features.items() if each.get("_type") == "ClassLabel"}
        assert all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in labels.values())
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
        raise UnpriorError(f"{path}: the note of `datasets` on its columns cannot be read; write it again") from None
    return labels


def _named(names: Sequence[str], value: Any) -> Any:
    is_class = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names)
    return names[value] if is_class else value
