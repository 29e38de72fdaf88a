"""Which column of a table of questions holds what: columns of known names, and those that a user names."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from unprior.errors import UnpriorError, did_you_mean, format_option

Given = Mapping[str, str | Sequence[str] | None] | Sequence[str]
"""A column by the field that it holds, or texts FIELD=COLUMN; options may stand in several columns."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "image_path"),
    "question": ("question",),
    "hint": ("hint",),
    "options": ("options", "choices"),
    "answer": ("answer",),
    "id": ("index", "id"),
    "pair": ("pair", "pair_id"),
    "side": ("side",),
    "split": ("split",),
    "category": ("category",),
    "subcategory": ("subcategory", "l2-category"),
    "claims": ("claims",),
    "open_question": ("open_question",),
    "aliases": ("aliases",),
    # Other people's columns of these names mean other things.
    "task": (),
    "group": (),
    "instruction": (),
}
"""What a column can hold, and the names by which it is found unless one is given; the first that is there."""
NEEDED = ("image", "question")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table by the field that they hold."""

    found: Mapping[str, tuple[str, ...]]
    """Of options one column, which holds a list, or one for every option; of other fields one."""

    def __contains__(self, field: object) -> bool:
        """Whether the table says something about a field."""
        return field in self.found

    def get(self, field: str) -> str | None:
        """The column of a field that has one column."""
        return self.found[field][0] if field in self.found else None

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return list(dict.fromkeys(name for columns in self.found.values() for name in columns))


def parse_columns(given: Given) -> dict[str, tuple[str, ...]]:
    """What a user says about columns; a field without a column is left out of the questions.

    >>> parse_columns(["question=text", "options=A,B,C", "side="])
    {'question': ('text',), 'options': ('A', 'B', 'C'), 'side': ()}
    """
    parsed: dict[str, tuple[str, ...]] = {}
    for field, column in _pairs(given):
        if field not in FIELDS:
            like = did_you_mean(field, FIELDS)
            raise UnpriorError(f"{_told(field, column)}: no field {field!r}{like}; fields are {', '.join(FIELDS)}")
        if field in parsed:
            raise UnpriorError(f"{_told(field, column)}: {field} is given twice; give it once")
        if not column and field in NEEDED:
            raise UnpriorError(f"{_told(field, column)}: every question needs its {field}; name a column")
        if len(set(column)) < len(column):
            raise UnpriorError(f"{_told(field, column)}: a column is named twice; name one for every option")
        parsed[field] = column
    return parsed


def _pairs(given: Given) -> list[tuple[str, tuple[str, ...]]]:
    if isinstance(given, Mapping):
        several = {field: each if isinstance(each, list | tuple) else [each] for field, each in given.items()}
        return [(str(field), tuple(str(name) for name in names if name)) for field, names in several.items()]
    pairs = []
    for text in given:
        field, equals, column = str(text).partition("=")
        if not equals:
            raise UnpriorError(f"{format_option('column', text)}: write FIELD=COLUMN, such as question=text")
        parts = column.split(",") if field.strip() == "options" else [column]
        pairs.append((field.strip(), tuple(part for each in parts if (part := each.strip()))))
    return pairs


def find_columns(source: Path, present: Sequence[str], given: Mapping[str, tuple[str, ...]]) -> Columns:
    """The columns of a file by what they hold.

    >>> find_columns(Path("a.tsv"), ["index", "image", "question", "A", "B", "answer"], {}).found["options"]
    ('A', 'B')
    """
    found: dict[str, tuple[str, ...]] = {}
    for field, known in FIELDS.items():
        columns = given[field] if field in given else _known(field, known, present)
        if missing := [name for name in columns if name not in present]:
            like = did_you_mean(missing[0], present)
            raise UnpriorError(
                f"{source}: no column {missing[0]!r}{like}, which {format_option('column', _written(field, columns))} "
                f"names; its columns are {_listed(present)}"
            )
        if len(columns) > 1 and field != "options":
            raise UnpriorError(f"{_told(field, columns)}: only options may stand in several columns; name one")
        if columns:
            found[field] = columns
        elif field in NEEDED:
            raise UnpriorError(
                f"{source}: no column for the {field}; its columns are {_listed(present)}. Name the right one by "
                f"{format_option('column', f'{field}=NAME')}."
            )
    counts = Counter(present)
    if twice := next((name for columns in found.values() for name in columns if counts[name] > 1), None):
        raise UnpriorError(f"{source}: two columns are called {twice!r}; rename one of them")
    return Columns(found)


def _known(field: str, known: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    if field == "options":  # a column for every option, as in VLMEvalKit's tables
        lettered = tuple(takewhile(lambda letter: letter in present, string.ascii_uppercase))
        if len(lettered) > 1:
            return lettered
    return next(((name,) for name in known if name in present), ())


def _written(field: str, columns: Sequence[str]) -> str:
    return f"{field}={','.join(columns)}"


def _told(field: str, columns: Sequence[str]) -> str:
    return format_option("column", _written(field, columns))


def _listed(present: Sequence[str]) -> str:
    shown = [name for name in present if name][:30]
    return ", ".join(shown) + (" and more" if len(present) > len(shown) + 1 else "") if shown else "without names"
