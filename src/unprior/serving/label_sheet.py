"""Files that are filled in: a table for spreadsheets (CSV), or what the page saves (CSV or JSON lines)."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unprior._files import parse_json, read_whole
from unprior.errors import UnpriorError
from unprior.serving.label_log import LoggedExample

NONE, SKIP = "(none)", "(skip)"
"""What to write where no candidate is right, and where nobody can tell (or nothing); a candidate of that name wins."""
COLUMNS = ("example", "image", "question", "candidates", "answer", "side")
GIVEN = ("original", "decided")
"""What was answered: not shown unless it is asked for, since who sees an answer tends to agree with it."""
ALIASES = "aliases"
BETWEEN = " | "
_NEEDED = ("example", "answer")
_SEPARATOR = re.compile(r'[^\S\n]*"?sep=([^\w\s"]|\t)"?[^\n]*\r?(?:\n|$)', re.IGNORECASE)
"""The line by which Excel tells what stands between cells."""
# Spreadsheets run what begins like this; the apostrophe tells them that it is text. A text that begins with apostrophes
# before such a sign gets one more, so that taking one away always gives the text again.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


@dataclass(frozen=True, slots=True)
class Label:
    """What somebody wrote about an example."""

    line: int
    example: str
    answer: str
    """The text as it was written, or ``(none)``, or nothing."""
    side: str
    aliases: tuple[str, ...] = ()


def guard(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    >>> guard("=1+1"), guard("five"), unguard(guard("'=x")), unguard("-5")
    ("'=1+1", 'five', "'=x", '-5')
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguard(cell: str) -> str:
    """The text of a guarded cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def sheet(examples: Iterable[LoggedExample], images: Mapping[str, str], *, show_answers: bool = False) -> str:
    """A table to fill in; ``images``: where the image with a digest is."""
    examples = list(examples)
    stream = io.StringIO()
    writer = csv.writer(stream)
    further = [ALIASES] if any(each.is_open for each in examples) else []
    columns = (*COLUMNS, *further, *(GIVEN if show_answers else ()))
    writer.writerow(columns)
    for example in examples:
        record = example.record
        cells = {
            "example": example.name,
            "image": images.get(example.image, example.image),
            "question": record["question"],
            "candidates": BETWEEN.join(example.candidates),
            "answer": NONE if record.get("label") == "none" else record.get("answer"),
            "side": record.get("side"),
            "original": record.get("original"),
            "decided": record.get("decided"),
            ALIASES: BETWEEN.join(record.get("aliases") or ()),
        }
        values = (cells[name] for name in columns)
        writer.writerow(["" if value is None else guard(str(value)) for value in values])
    return stream.getvalue()


def read_labels(path: Path) -> list[Label]:
    """Read a file that was filled in."""
    content = read_whole(path)
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise UnpriorError(f"{path}: the text is not UTF-8; save the table as “CSV UTF-8”") from None
    if not text.strip():
        raise UnpriorError(f"{path}: the file is empty; `unprior label` writes one to fill in")
    records = _json_lines(text, path) if text.lstrip().startswith("{") else _csv_rows(text, path)
    return [
        Label(line, each["example"].strip(), each["answer"].strip(), each["side"].strip(), _split(each[ALIASES]))
        for line, each in records
    ]


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(BETWEEN.strip()) if part.strip())


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    told = _SEPARATOR.match(text)
    text = text[told.end() :] if told else text
    head = next(iter(text.lstrip().splitlines()), "")
    delimiter = told[1] if told else max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    before = 1 if told else 0
    line = before + 1
    try:
        for row in reader:
            if not any(names):
                names = [cell.strip().casefold() for cell in row]
                if any(names):
                    _check_names(names, f"{path}, line {line}")
            elif any(cell.strip() for cell in row):
                cells = {name: unguard(cell) for name, cell in zip(names, row, strict=False)}
                yield line, {name: cells.get(name, "") for name in (*_NEEDED, "side", ALIASES)}
            line = before + reader.line_num + 1
    except csv.Error as error:
        told_by = "a quote is opened and not closed" if "unexpected end" in str(error) else str(error)
        raise UnpriorError(
            f"{path}, line {line}: the table cannot be read ({told_by}); correct it, or save it as CSV again"
        ) from None


def _check_names(names: list[str], where: str) -> None:
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise UnpriorError(
            f"{where}: no column {' and '.join(missing)}; keep the first line of the file that `unprior label` wrote"
        )
    double = next((name for name in (*_NEEDED, "side", ALIASES) if names.count(name) > 1), None)
    if double is not None:
        raise UnpriorError(f"{where}: several columns are named {double}; keep the one that counts")


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for line, each in enumerate(text.split("\n"), 1):
        if not each.strip():
            continue
        try:
            record = parse_json(each)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("example"), str):
            raise UnpriorError(f"{path}, line {line}: not a JSON object with an example; save the labels again")
        cells = {name: _text(record.get(name)) for name in (*_NEEDED, "side", ALIASES)}
        try:
            "".join(cells.values()).encode()
        except UnicodeEncodeError:
            raise UnpriorError(f"{path}, line {line}: half of a character (a surrogate) is no text") from None
        yield line, cells


def _text(value: Any) -> str:
    return "" if value is None else BETWEEN.join(map(str, value)) if isinstance(value, list) else str(value)
