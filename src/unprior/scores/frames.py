"""Score tables as data frames and back, and in a notebook; pandas is optional."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.errors import InvalidScoresError, UnpriorError, did_you_mean, warn
from unprior.scores.provenance import FIELD, from_values
from unprior.scores.schema import REQUIRED, SCHEMA
from unprior.scores.table import ScoreTable

if TYPE_CHECKING:
    import pandas as pd

_LISTS = ("candidates", "image_scores", "prior_scores", "token_counts", "censored", "claims", "aliases", "sources")
_FIRST_ROWS = 5


def table_to_pandas(table: ScoreTable) -> pd.DataFrame:
    """One row per example: labels, lists as Python lists; columns that no row has are left out."""
    from unprior.tables.records import to_pandas

    present = [name for name in SCHEMA.names if table.arrow.column(name).null_count < len(table)]
    frame = to_pandas(list(_rows(table, [name for name in SCHEMA.names if name in {*present, *REQUIRED}])))
    if table.provenance:
        frame.attrs[FIELD] = [record.record() for record in table.provenance]
    return frame


def table_from_pandas(frame: pd.DataFrame, *, skip_invalid: bool, require_answers: bool) -> ScoreTable:
    """Validate a data frame with the columns of a score table; missing values count as not given."""
    if not hasattr(frame, "columns") or not hasattr(frame, "attrs"):
        raise UnpriorError(f"a score table is made from a pandas DataFrame, not from {type(frame).__name__}")
    absent = [name for name in REQUIRED if name not in frame.columns]
    if absent:
        raise UnpriorError(
            f"the data frame has no column {', '.join(absent)}; a score table needs the columns {', '.join(REQUIRED)}"
        )
    columns = [name for name in SCHEMA.names if name in frame.columns]
    strangers = [str(name) for name in frame.columns if name not in SCHEMA.names]
    if strangers:
        like = did_you_mean(strangers[0], SCHEMA.names)
        warn(f"the data frame has columns that a score table does not: {', '.join(strangers)}{like}; they are left out")
    repeated = [name for name in columns if list(frame.columns).count(name) > 1]
    if repeated:
        raise UnpriorError(f"the data frame has the column {', '.join(repeated)} more than once; keep one of them")
    cells = [[_plain(value) for value in frame[name].tolist()] for name in columns]
    for name, values in zip(columns, cells, strict=True):
        for row, value in enumerate(values, start=1):
            if name in _LISTS and isinstance(value, str):
                raise UnpriorError(
                    f"row {row} of the data frame has text in {name}: {value[:60]!r}. It must hold lists, which CSV "
                    f"files do not keep; write and read Parquet or JSON lines instead."
                )
    noted = from_values(frame.attrs.get(FIELD, []), "data frame: ")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
    try:
        return ScoreTable.from_rows(rows, skip_invalid=skip_invalid, require_answers=require_answers, provenance=noted)
    except InvalidScoresError as error:
        raise InvalidScoresError("data frame", len(rows), error.problems) from None


def table_html(table: ScoreTable) -> str:
    """Size, models, benchmarks, tasks, splits, and the first rows."""
    from unprior.tables.html import as_html
    from unprior.tables.model import Table

    facts = [f"{len(table):,} examples", f"{_numbers(np.unique(table.candidate_counts).tolist())} candidates each"]
    for name, plural in (("model", "models"), ("benchmark", "benchmarks"), ("task", "tasks"), ("split", "splits")):
        code, labels = table.codes(name)
        sizes = {str(label[0]): int(count) for label, count in zip(labels, np.bincount(code), strict=True) if label[0]}
        if sizes:
            shown = ", ".join(f"{value} ({count:,})" for value, count in sorted(sizes.items()))
            facts.append(f"{name if len(sizes) == 1 else plural}: {shown}")
    columns = ["pair_id", "side", "task", "split", "candidates", "image_scores", "prior_scores", "original", "answer"]
    first = table.take(np.arange(min(_FIRST_ROWS, len(table))))
    rows = [[_shown(value) for value in row.values()] for row in _rows(first, columns)]
    head = f"<p>{escape('; '.join(facts))}.</p>"
    return head + as_html(Table.plain("First rows", columns, rows, "", text_columns=len(columns)))


def _rows(table: ScoreTable, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for row in table.arrow.select(list(columns)).to_pylist():
        if row.get("views") is not None:
            row["views"] = dict(row["views"])
        yield row


def _plain(value: Any) -> Any:
    """A cell as Python has it; NaN, NaT and pandas' NA are None."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:  # noqa: PLR0124  only NaN
        return None
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{each:.2f}" if isinstance(each, float) else str(each) for each in value)
    return "–" if value is None else str(value)


def _numbers(values: Sequence[int]) -> str:
    return " or ".join(map(str, values)) if len(values) < 4 else f"{values[0]} to {values[-1]}"
