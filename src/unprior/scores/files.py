"""Score tables on disk: JSONL and Parquet, and the published artefact layout of the method."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from unprior._files import as_path, is_parquet, open_to_read, read_lines, replacing
from unprior._validation import describe_validation_error
from unprior.errors import RowProblem, UnpriorError, UnpriorNote, warn
from unprior.prompts import is_cut_off, thinks
from unprior.scores.logged import LogRows, is_decision, is_header
from unprior.scores.provenance import FIELD, METADATA_KEY, Provenance, from_values, merge_provenance, to_json
from unprior.scores.published import is_published, row_from_published
from unprior.scores.schema import SCHEMA, ScoreRow, rows_to_arrow
from unprior.scores.table import ScoreTable

_NO_NOTES = ("[]", "{}")
Complete = Callable[[dict[str, Any]], dict[str, Any]]


class _QuestionsError(Exception):
    """A line that has not been scored yet."""


_OPTIONAL = {field.name for field in SCHEMA} - {
    "pair_id", "side", "task", "candidates", "image_scores", "prior_scores", "original",
}  # fmt: skip


def read_scores(
    path: str | Path,
    *,
    skip_invalid: bool = False,
    require_answers: bool = True,
    complete: Complete | None = None,
    decided_by: str | None = None,
) -> ScoreTable:
    """Read a score table and validate every row.

    Parameters
    ----------
    path
        A JSONL or Parquet file with the columns of :class:`~unprior.scores.ScoreRow`, JSON lines in the published
        artefact layout (an object ``cp_vbc`` per line), or a log of `unprior serve` (:mod:`unprior.scores.logged`).
    skip_invalid
        Leave invalid rows out instead of refusing the file; ``table.skipped`` lists them.
    require_answers
        Refuse rows without a correct answer. Applying a calibrator does not need answers.
    complete
        Called with the fields of every JSON line before they are checked, to add what only the name of the file says;
        an :class:`~unprior.errors.UnpriorError` makes the line invalid.
    decided_by
        Of a log, take only the decisions of the calibrator with this digest.

    >>> import tempfile
    >>> from unprior import synthesize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthesize(seed=0).write(Path(folder) / "scores.parquet")
    ...     len(read_scores(Path(folder) / "scores.parquet"))
    1200
    """
    path = as_path("path", path)
    with open_to_read(path) as stream:
        if not is_parquet(stream):
            rows, lines, problems, provenance = _parse_lines(stream, path, complete, LogRows(decided_by))
            return ScoreTable.from_arrow(
                rows_to_arrow(rows),
                source=str(path),
                lines=lines,
                earlier_problems=problems,
                skip_invalid=skip_invalid,
                require_answers=require_answers,
                provenance=provenance,
            )
    return ScoreTable.from_arrow(
        read_parquet(path), source=str(path), skip_invalid=skip_invalid, require_answers=require_answers
    )


def read_parquet(path: Path) -> pa.Table:
    """Read a Parquet file; one that is broken is the user's to mend."""
    if not path.is_file():
        raise UnpriorError(f"{path}: Parquet is read from its end, which a pipe does not have; give the file itself")
    with _explained(path):
        table = pq.read_table(path)
        table.validate(full=True)  # not every program checks that the text it writes is UTF-8
        return table


def read_schema(path: Path) -> pa.Schema:
    """Columns and metadata of a Parquet file."""
    with _explained(path):
        return pq.read_schema(path)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise UnpriorError(
            f"{path}: the Parquet file cannot be read, it may be truncated or not hold UTF-8 ({error})"
        ) from None


def _parse_lines(
    stream: BufferedReader, path: Path, complete: Complete | None, log: LogRows
) -> tuple[list[ScoreRow], list[int], list[RowProblem], tuple[Provenance, ...]]:
    rows: list[ScoreRow] = []
    lines: list[int] = []
    problems: list[RowProblem] = []
    noted: list[tuple[Provenance, ...]] = []
    published: list[int] = []
    for number, line in read_lines(stream, path):
        if number == 2 and not rows and b'"unprior.calibrator"' in line:
            raise UnpriorError(f"{path}: this is a calibrator, a score table is needed here")
        try:
            record = json.loads(line)
            if is_header(record) or is_decision(record):
                log.add(number, record)
                continue
            row, provenance, is_from_published = _parse_record(record, complete)
            if is_from_published:
                published.append(len(rows))
            rows.append(row)
            lines.append(number)
            noted.append(provenance)
        except _QuestionsError:
            raise UnpriorError(
                f"{path} holds questions, not scores (no `image_scores`). "
                f"Run `unprior score --benchmark {path} …` first."
            ) from None
        except ValidationError as error:
            problems.append(RowProblem(number, describe_validation_error(error)))
        except json.JSONDecodeError as error:
            problems.append(RowProblem(number, f"not a JSON object ({error.msg} at column {error.colno})"))
        except RecursionError:
            problems.append(RowProblem(number, "not a JSON object (nested too deeply)"))
        except UnpriorError as error:
            problems.append(RowProblem(number, str(error)))
        except ValueError as error:  # not UTF-8, or a number with thousands of digits
            problems.append(RowProblem(number, f"not a JSON object ({error})"))
    _drop_cut_off(rows, published)
    for number, row in log.rows():
        rows.append(row)
        lines.append(number)
    if log.repeats:
        warn(UnpriorNote(f"{path}: {log.repeats:,} requests repeat earlier ones; every example counts once"))
    return rows, lines, problems, merge_provenance([*filter(None, noted), *log.provenance])


def _drop_cut_off(rows: list[ScoreRow], published: list[int]) -> None:
    """Where one published answer shows that a model thinks, one of its answers without the closing tag is none."""
    thinking = {rows[index].model for index in published if thinks([rows[index].original_text])}
    for index in published:
        text = rows[index].original_text
        if text is not None and rows[index].model in thinking and is_cut_off(text, thinking=True):
            rows[index] = rows[index].model_copy(update={"original": None})


def _parse_record(record: Any, complete: Complete | None) -> tuple[ScoreRow, tuple[Provenance, ...], bool]:
    """The row, what it says about how scores were made, and whether it has the published layout."""
    if not isinstance(record, dict):
        raise UnpriorError(f"not a JSON object but {type(record).__name__}")
    published = is_published(record)
    if "question" in record and "image" in record and "image_scores" not in record and not published:
        raise _QuestionsError
    noted = () if record.get(FIELD) is None else from_values(record[FIELD], "")
    row = row_from_published(record) if published else record
    return ScoreRow.model_validate(row if complete is None else complete(row)), noted, published


def write_scores(table: ScoreTable, path: str | Path) -> None:
    """Write a score table as ``.jsonl`` or ``.parquet``; the file appears whole or not at all."""
    write_records(as_path("path", path), table.arrow, _json_rows(table.arrow), to_json(table.provenance))


@contextmanager
def writing_scores(path: str | Path) -> Iterator[Callable[[ScoreTable], None]]:
    """Write a score table part by part; the file appears whole or not at all, and not if there was no part.

    >>> from unprior.synthetic import synthesize
    >>> import tempfile
    >>> table = synthesize(4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing_scores(f"{folder}/scores.parquet") as add:
    ...         add(table.where(task="mc"))
    ...         add(table.where(task="qa"))
    ...     len(read_scores(f"{folder}/scores.parquet")) == len(table)
    True
    """
    kind = table_format(Path(path))
    with replacing(Path(path)) as temporary, ExitStack() as opened:
        writer: list[Callable[[ScoreTable], None]] = []

        def add(table: ScoreTable) -> None:
            note = to_json(table.provenance)
            if not writer and kind == ".parquet":
                schema = table.arrow.schema.with_metadata(_metadata(note))
                parquet = opened.enter_context(pq.ParquetWriter(temporary, schema))
                writer.append(lambda part: parquet.write_table(part.arrow.replace_schema_metadata(schema.metadata)))
            elif not writer:
                stream = opened.enter_context(temporary.open("w", encoding="utf-8"))
                writer.append(lambda part: stream.writelines(_lines(_json_rows(part.arrow), note)))
            writer[0](table)

        yield add
        if not writer:
            temporary.unlink()


def table_format(path: Path) -> str:
    """Format of a table file by the ending of its name; another ending is an error."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise UnpriorError(f"{path}: cannot tell the format; the name must end in .jsonl or .parquet")
    return path.suffix


def write_records(path: Path, arrow: pa.Table, json_rows: Iterable[dict[str, Any]], note: str = "[]") -> None:
    """Write columns to Parquet or their rows to JSONL, by the ending of the name.

    ``note`` is JSON about how they were made: metadata of the Parquet file, a field of the first JSON line.
    """
    kind = table_format(path)
    with replacing(path) as temporary:
        if kind == ".parquet":
            pq.write_table(arrow.replace_schema_metadata(_metadata(note)), temporary)
            return
        with temporary.open("w", encoding="utf-8") as stream:
            stream.writelines(_lines(json_rows, note))


def _metadata(note: str) -> dict[bytes, bytes]:
    return {} if note in _NO_NOTES else {METADATA_KEY: note.encode()}


def _lines(rows: Iterable[dict[str, Any]], note: str) -> Iterator[str]:
    """JSON lines; the note stands in the first one, where a reader of rows alone does not see it."""
    for row in rows:
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
        if note not in _NO_NOTES:
            line, note = f'{line[:-1]}, "{FIELD}": {note}}}', "[]"
        yield line + "\n"


def _json_rows(arrow: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as JSON objects; optional fields that are null are left out."""
    for batch in arrow.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            if row["views"] is not None:
                row["views"] = dict(row["views"])
            yield {name: value for name, value in row.items() if value is not None or name not in _OPTIONAL}


def finite_or_none(value: float) -> float | None:
    """JSON has no infinity and no NaN; both become null.

    >>> finite_or_none(float("inf")), finite_or_none(0.5)
    (None, 0.5)
    """
    return value if math.isfinite(value) else None
