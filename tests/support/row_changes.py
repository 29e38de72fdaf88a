"""Changes to the rows of a JSONL file, for tests that spoil one thing at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
Change = Callable[[Rows], Rows]


def read_lines(path: str | Path) -> Rows:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def edit(index: int, **values: Any) -> Change:
    """Change some fields of one row; a value of ... removes the field."""

    def change(rows: Rows) -> Rows:
        row = rows[index] | values
        rows[index] = {name: value for name, value in row.items() if value is not ...}
        return rows

    return change


def edit_all(**values: Any) -> Change:
    def change(rows: Rows) -> Rows:
        for index in range(len(rows)):
            edit(index, **values)(rows)
        return rows

    return change


def only(**values: Any) -> Change:
    return lambda rows: [row for row in rows if all(row[name] == value for name, value in values.items())]
