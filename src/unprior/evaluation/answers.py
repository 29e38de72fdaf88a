"""Final answers from a decisions file, matched line by line with the score table they were made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unprior._files import open_to_read
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray, position_in_row

_COLUMNS = ("pair_id", "side", "task", "original", "final")
_REMEDY = "Decisions belong to the table they were made from: run `unprior apply` on this table again."


def read_final_answers(path: str | Path, table: ScoreTable) -> IntArray:
    """Candidate positions (-1 for none) of the final answers to the rows of ``table``.

    >>> import tempfile
    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     decisions.write(f"{folder}/decisions.jsonl")
    ...     bool((read_final_answers(f"{folder}/decisions.jsonl", table) == decisions.final).all())
    True
    """
    path = Path(path)
    columns = _read_columns(path)
    count = len(columns["final"])
    if count != len(table):
        raise UnpriorError(f"{path}: {count} decisions for {len(table)} rows of the score table. {_REMEDY}")
    for name in ("pair_id", "side", "task", "original"):
        for line, (here, there) in enumerate(zip(columns[name], table.column(name), strict=True), start=1):
            if here != there:
                raise UnpriorError(
                    f"{path}, line {line}: {name} is {here!r}, but row {line} of the score table has {there!r}. "
                    f"{_REMEDY}"
                )
    try:
        final = pa.array(columns["final"], pa.string())
    except pa.ArrowException as error:
        raise UnpriorError(f"{path}: every final answer must be a candidate or null ({error})") from None
    position = position_in_row(final, table.candidate_lists)
    for row, value in enumerate(position.tolist()):
        if value == -2:
            raise UnpriorError(
                f"{path}, line {row + 1}: final answer {columns['final'][row]!r} is not one of the candidates"
            )
    return position


def _read_columns(path: Path) -> dict[str, list[Any]]:
    with open_to_read(path) as stream:
        is_parquet = stream.read(4) == b"PAR1"
    if is_parquet:
        try:
            arrow = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise UnpriorError(f"{path}: the Parquet file cannot be read, it may be truncated ({error})") from None
        for name in _COLUMNS:
            if name not in arrow.column_names:
                raise UnpriorError(f"{path}: no column {name}; `unprior apply` writes decisions")
        return {name: arrow.column(name).to_pylist() for name in _COLUMNS}
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    with open_to_read(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                record = json.loads(line)
                for name in _COLUMNS:
                    columns[name].append(record[name])
            except (ValueError, TypeError):
                raise UnpriorError(f"{path}, line {number}: not a JSON object; the file may be truncated") from None
            except KeyError as error:
                raise UnpriorError(
                    f"{path}, line {number}: no {error.args[0]}; `unprior apply` writes decisions"
                ) from None
    return columns
