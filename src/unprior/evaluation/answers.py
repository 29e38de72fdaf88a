"""Final answers from a decisions file, matched line by line with the score table they were made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unprior._files import is_parquet, open_to_read, parse_json, read_lines
from unprior.calibration.decisions import method_name
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.files import read_parquet, read_schema
from unprior.scores.provenance import FIELD, METADATA_KEY, Provenance, from_values
from unprior.scores.schema import IntArray, position_in_row

_COLUMNS = ("pair_id", "side", "task", "original", "final")
_REMEDY = "Decisions belong to the table they were made from: run `unprior apply` on this table again."


def read_final_answers(path: str | Path, table: ScoreTable, rows: IntArray | None = None) -> IntArray:
    """Candidate positions (-1 for none) of the final answers to the rows of ``table``, or to some of them.

    With ``rows`` the file may hold decisions about all rows of the table or about these alone.

    >>> import tempfile
    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     decisions.write(f"{folder}/decisions.jsonl")
    ...     bool((read_final_answers(f"{folder}/decisions.jsonl", table) == decisions.final_positions).all())
    True
    """
    path = Path(path)
    lines, columns = _read_columns(path)
    if rows is not None and len(lines) != len(rows):
        return _match(path, lines, columns, table)[rows]
    return _match(path, lines, columns, table if rows is None else table.take(rows))


@dataclass(frozen=True, slots=True)
class Origin:
    """What a decisions file says about how it was made; empty for files of version 0.1.0."""

    scores: tuple[Provenance, ...] = ()
    """How the scores were made that were decided on."""
    fitted_on: tuple[Provenance, ...] = ()
    """How the scores were made that the calibrator was fitted on."""
    method: str | None = None
    """The method that decided, with its version and limit."""
    certificate: dict[str, Any] | None = None
    """What the calibrator promised about new pairs."""


def read_origin(path: str | Path) -> Origin:
    """Read where decisions come from, if their file says so."""
    path = Path(path)
    with open_to_read(path) as stream:
        if is_parquet(stream):
            raw = (read_schema(path).metadata or {}).get(METADATA_KEY)
            note = None if raw is None else _json(raw)
        else:
            first = _json(next((line for line in stream if line.strip()), b""))
            note = first.get(FIELD) if isinstance(first, dict) else None
    if not isinstance(note, dict):
        return Origin()
    calibrator = note.get("calibrator")
    made_with = calibrator if isinstance(calibrator, dict) else {}
    version, epsilon = made_with.get("version"), made_with.get("epsilon_cs")
    return Origin(
        from_values(note.get("scores", []), f"{path}: "),
        from_values(made_with.get("scores", []), f"{path}: "),
        method_name(version, epsilon) if isinstance(version, str) and isinstance(epsilon, float) else None,
        _certificate(made_with.get("certificate"), path),
    )


def _certificate(noted: Any, path: Path) -> dict[str, Any] | None:
    if not isinstance(noted, dict | None):
        raise UnpriorError(f"{path}: its certificate is not valid. Make the decisions again with `unprior apply`.")
    return noted


def _json(raw: bytes) -> Any:
    try:
        return parse_json(raw)
    except (ValueError, RecursionError):
        return None  # reading the decisions themselves says what is wrong


def _match(path: Path, lines: Sequence[int], columns: dict[str, list[Any]], table: ScoreTable) -> IntArray:
    if len(lines) != len(table):
        raise UnpriorError(f"{path}: {len(lines)} decisions for {len(table)} rows of the score table. {_REMEDY}")
    for name in ("pair_id", "side", "task", "original"):
        for row, (here, there) in enumerate(zip(columns[name], table.column(name), strict=True)):
            if here != there:
                difference = f"{name} is {here!r}, but row {row + 1} of the score table has {there!r}"
                raise UnpriorError(f"{path}, line {lines[row]}: {difference}. {_REMEDY}")
    try:
        final = pa.array(columns["final"], pa.string())
    except (pa.ArrowException, UnicodeError) as error:
        raise UnpriorError(f"{path}: every final answer must be a candidate or null ({error})") from None
    position = position_in_row(final, table.candidate_lists)
    for row in np.flatnonzero(position == -2)[:1].tolist():
        raise UnpriorError(
            f"{path}, line {lines[row]}: final answer {columns['final'][row]!r} is not one of the candidates"
        )
    return position


def _read_columns(path: Path) -> tuple[Sequence[int], dict[str, list[Any]]]:
    """Line numbers and the columns of a decisions file."""
    with open_to_read(path) as stream:
        if not is_parquet(stream):
            return _read_lines(stream, path)
    arrow = read_parquet(path)
    for name in _COLUMNS:
        if name not in arrow.column_names:
            raise UnpriorError(f"{path}: no column {name}; `unprior apply` writes decisions")
    return range(1, len(arrow) + 1), {name: arrow.column(name).to_pylist() for name in _COLUMNS}


def _read_lines(stream: BufferedReader, path: Path) -> tuple[list[int], dict[str, list[Any]]]:
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    lines: list[int] = []
    for number, line in read_lines(stream, path):
        lines.append(number)
        try:
            record = parse_json(line)
            for name in _COLUMNS:
                columns[name].append(record[name])
        except (ValueError, TypeError, RecursionError):
            raise UnpriorError(f"{path}, line {number}: not a JSON object; the file may be truncated") from None
        except KeyError as error:
            missing = error.args[0]
            raise UnpriorError(f"{path}, line {number}: no {missing}; `unprior apply` writes decisions") from None
    return lines, columns
