"""Records as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from unprior._text import visible


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    r"""Records with a header; what is undefined is empty.

    A spreadsheet takes text that begins with one of ``= + - @`` for a formula; such text gets an apostrophe in front.

    >>> as_csv([{"task": "mc", "delta": -0.5}, {"task": "=cmd()", "delta": None}])
    "task,delta\nmc,-0.5\n'=cmd(),\n"
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in record.items()} for record in records)
    return stream.getvalue()


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = visible(value)
    if not value.startswith(("=", "+", "-", "@", "\t")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
