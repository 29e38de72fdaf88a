"""Tables of questions as benchmarks: VLMEvalKit's TSV files, and Parquet or Arrow files of Hugging Face's datasets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from unprior._validation import describe_validation_error
from unprior.benchmarks.schema import OPEN, Benchmark, Example
from unprior.benchmarks.table_columns import FIELDS, Columns, Given, find_columns, parse_columns
from unprior.benchmarks.table_images import ImageFolder, NoImageError, OtherRow, parse_list, resolve
from unprior.benchmarks.table_rows import Row, column_names, known_split, read_rows, shards_of, split_of
from unprior.benchmarks.user_file import UserQuestion, make_example
from unprior.errors import InvalidScoresError, RowProblem, UnpriorError, format_option
from unprior.prompts import YES_NO

_LISTS = ("options", "claims", "aliases")
_DIGITS = 18
"""Of a number that fits into 64 bits."""
_SIDES = {"counterfactual": "cf", "commonsense": "cs"}


def read_table(path: Path, columns: Given = (), *, data: Path) -> Benchmark:
    """Read a table of questions, or a folder of such; every invalid row is named.

    Parameters
    ----------
    path
        A TSV, Parquet or Arrow file, or a folder with Parquet or Arrow files.
    columns
        Columns by the field that they hold, where they are not called as expected.
    data
        The data directory: images that are bytes in the table are unpacked there once.
    """
    given = parse_columns(columns)
    files = shards_of(path)
    folder = path if path.is_dir() else path.parent
    found = {file: find_columns(file, column_names(file), given) for file in files}
    parts = []
    for file, names in found.items():
        images = ImageFolder.from_file(data, file, [file.parent, folder])
        prefix = "" if len(files) == 1 else f"{file.relative_to(folder).with_suffix('')}-"
        parts.append(_Part(file, names, images, prefix, None if "split" in names else split_of(file, folder)))
        parts[-1].read()
    _tell_tasks([row for part in parts for row in part.rows])
    examples = _examples(parts)
    if not examples:
        raise UnpriorError(f"{path}: no questions")
    has_split = all("split" in part.columns or part.split is not None for part in parts)
    lacking = [name for name in FIELDS if any(name not in part.columns for part in parts)]
    unmapped = tuple(name for name in lacking if name != "split" or not has_split)
    return Benchmark(path.stem if path.is_file() else path.name, examples, source=str(path), unmapped=unmapped)


@dataclass(slots=True)
class _Question:
    """A row on its way to an example."""

    number: int
    values: dict[str, Any]
    image: Path | OtherRow | None
    problem: str | None = None


class _Part:
    """One file of a table."""

    def __init__(self, file: Path, columns: Columns, images: ImageFolder, prefix: str, split: str | None) -> None:
        self.file, self.columns, self.images, self.prefix, self.split = file, columns, images, prefix, split
        self.rows: list[_Question] = []

    def read(self) -> None:
        """Read all rows; images go into files one by one, so that a large table needs little memory."""
        self.rows = [self._question(row) for row in read_rows(self.file, self.columns.names)]
        pairs = [row.values["pair"] for row in self.rows if row.values.get("pair") is not None]
        if all(isinstance(pair, str) and _is_number(pair) for pair in pairs):
            for row in self.rows:  # numbers that a text spells
                if row.values.get("pair") is not None:
                    row.values["pair"] = int(row.values["pair"])

    def _question(self, row: Row) -> _Question:
        if row.problem is not None:
            return _Question(row.number, {}, None, row.problem)
        try:
            values = self._values(row.values)
            image = self.images.place(f"row-{row.number}.image", row.values[self.columns.found["image"][0]])
            return _Question(row.number, values, image)
        except (NoImageError, _CellError) as error:
            return _Question(row.number, {}, None, str(error))

    def _values(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a question as a file of questions has them."""
        values: dict[str, Any] = {}
        for field, columns in self.columns.found.items():
            if field == "image":
                continue
            value = [row[name] for name in columns] if len(columns) > 1 else row[columns[0]]
            read = _read_list(field, value, columns) if field in _LISTS else _read_text(field, value)
            if read is not None:
                values[field] = read
        hint = values.pop("hint", None)
        if hint is not None and "question" in values:
            values["question"] = f"Hint: {hint}\n{values['question']}"
        if "answer" in self.columns and "options" in values:
            values |= _numbered_answer(row[self.columns.found["answer"][0]], values["options"])
        if (side := values.get("side")) is not None:
            values["side"] = _SIDES.get(side.casefold(), side.casefold())
        if values.get("split") is not None:
            values["split"] = known_split(values["split"])
        elif self.split is not None:
            values["split"] = self.split
        return values


def _is_number(text: str) -> bool:
    """Whether a text spells a whole number that a table can hold; Python refuses to read thousands of digits."""
    return len(text) <= _DIGITS and text.isdecimal() and str(int(text)) == text


class _CellError(ValueError):
    """What is wrong with a cell."""


def _read_text(field: str, value: Any) -> Any:
    """The value of a cell as text; None for one that is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):  # pandas writes NaN where nothing is
        return None
    if isinstance(value, bool) and field == "answer":
        return YES_NO[0] if value else YES_NO[1]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if field == "pair" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _CellError(f"{field} is a {type(value).__name__}; it must be text")
    text = str(value)
    if "\0" in text:
        raise _CellError(f"{field} has a NUL byte; remove it")
    text = text if field in ("question", "hint") else text.strip()
    return text or None


def _read_list(field: str, value: Any, columns: Sequence[str]) -> list[str] | None:
    if isinstance(value, str):
        value = parse_list(value)
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise _CellError(f"{field}: column {columns[0]!r} has no list, but {str(value)[:40]!r}")
    texts = [_read_text("option" if field == "options" else field, each) for each in value]
    while texts and texts[-1] is None:  # questions of one table may have different numbers of options
        texts.pop()
    if None in texts:
        which = columns[texts.index(None)] if len(columns) > 1 else f"number {texts.index(None) + 1}"
        raise _CellError(f"{field}: {which} is empty, and one after it is not")
    return texts or None


def _numbered_answer(value: Any, options: Sequence[str]) -> dict[str, str]:
    """A whole number names the right option by its place, from 0, as in many datasets."""
    if not isinstance(value, int) or isinstance(value, bool):
        return {}
    if str(value) in options:
        if not 0 <= value < len(options) or options.index(str(value)) == value:
            return {}
        raise _CellError(
            f"answer {value} is the text of one option and the place of another; write the text or the letter"
        )
    if not 0 <= value < len(options):
        raise _CellError(f"answer {value} is neither an option nor the place of one (0 to {len(options) - 1})")
    return {"answer": chr(ord("A") + value)}


def _tell_tasks(rows: Sequence[_Question]) -> None:
    """Rows without options are yes/no questions where the answers say so, and open where none does."""
    unclear = [row for row in rows if row.problem is None and not {"options", "task"} & set(row.values)]
    yes_no = [row.values.get("answer", "").casefold() in YES_NO for row in unclear]
    for row, is_yes_no in zip(unclear, yes_no, strict=True):
        answer = row.values.get("answer")
        if is_yes_no:
            row.values["task"] = "qa"
        elif answer is None:
            row.problem = (
                f"has neither options nor an answer, so nobody can tell how it is answered; name a column that says "
                f"qa or open, by {format_option('column', 'task=NAME')}"
            )
        elif any(yes_no):
            row.problem = (
                f"answer {answer!r} is neither yes nor no, as other rows without options have; correct it, or name a "
                f"column that says qa or open, by {format_option('column', 'task=NAME')}"
            )
        else:
            row.values["task"] = OPEN


def _examples(parts: Sequence[_Part]) -> list[Example]:
    """The examples of all files; rows that cannot be one are named, by file."""
    examples: list[Example] = []
    seen: dict[str, str] = {}
    for part in parts:
        made = [row for row in part.rows if row.problem is None]
        names = [row.values.get("id") or f"{part.prefix}{row.number}" for row in made]
        images = resolve([row.image for row in made if row.image is not None], names)
        for row, name, image in zip(made, names, images, strict=True):
            if name in seen:
                row.problem = (
                    f"is called {name!r}, as {seen[name]} is; rename one, or leave the names out by "
                    f"{format_option('column', 'id=')}"
                )
                continue
            seen[name] = f"line {row.number}" if len(parts) == 1 else f"line {row.number} of {part.file}"
            if isinstance(image, str):
                row.problem = image
                continue
            try:
                question = UserQuestion.model_validate(row.values | {"image": "-", "id": name})
            except ValidationError as error:
                row.problem = _explained(error, row.values, part.columns)
                continue
            examples.append(make_example(question, image, row.number))
        problems = tuple(RowProblem(row.number, row.problem) for row in part.rows if row.problem is not None)
        if problems:
            raise InvalidScoresError(str(part.file), len(part.rows), problems, skippable=False)
    return [replace(example, line=example.line if len(parts) == 1 else None) for example in examples]


def _explained(error: ValidationError, values: Mapping[str, Any], columns: Columns) -> str:
    """What is wrong with a question, and how to leave out a column that means something else."""
    told = describe_validation_error(error, UserQuestion.model_fields)
    if told == "question: missing":
        return "has no question"
    field = next((name for name in ("side", "pair", "task", "claims", "aliases") if told.startswith(name)), None)
    if field is None or field not in columns:
        return told
    return f"{told} (column {columns.get(field)!r}; {format_option('column', f'{field}=')} leaves it out)"
