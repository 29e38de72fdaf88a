"""Answers of other methods to the questions of a benchmark, in one file for all methods, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from unprior._files import is_parquet, open_to_read, parse_json, replacing
from unprior.baselines.activity import GateActivity
from unprior.errors import UnpriorError
from unprior.evaluation.free_texts import right_texts, text_positions
from unprior.scores import ScoreTable
from unprior.scores.files import read_parquet
from unprior.scores.schema import BoolArray, IntArray

_ABOUT = b"unprior.baselines"
_VERSION = 1
_TEXT = (
    "method", "model", "benchmark", "example_id", "pair_id", "side", "task", "text", "answer", "matched_text",
    "matched_answer",
)  # fmt: skip
_COUNTS = ("positions", "active_positions")
SCHEMA = pa.schema([*((name, pa.string()) for name in _TEXT), *((name, pa.int64()) for name in _COUNTS)])
"""One row per method and example. ``answer`` is null where none was found in ``text``, and of an open question what the
method wrote; ``matched_text`` is null where
the method has no correction that could be switched off; counts of positions are null where it has no gate on them."""
_REMEDY = "Methods answer the test examples, and `unprior baseline` computes what is missing."


@dataclass(frozen=True, slots=True)
class Cost:
    """What one example costs: means over examples on which all methods were measured together."""

    images: float
    """Images encoded."""
    passes: float
    """Forward passes of the language model."""
    seconds: float
    examples: int
    """How many examples were measured."""


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """A method as it was run."""

    name: str
    label: str
    """The name for people."""
    kind: str
    """``prompt`` (other words), ``decoder`` (other choice of tokens) or ``edit`` (other activations)."""
    settings: dict[str, Any]
    """Plain values."""
    cost: Cost | None


@dataclass(frozen=True, slots=True, eq=False)
class MethodAnswers:
    """What a method answered to the rows of a score table, in their order."""

    info: MethodInfo
    answers: IntArray
    """Candidate positions, -1 for none; of another text that answers an open question what is known about it, see
    :func:`unprior.evaluation.free_texts.text_positions`."""
    matched: IntArray | None
    """Answers of the same decoder with its correction switched off; None where there is no such thing."""
    activity: tuple[GateActivity, ...] | None = None
    """By row, of a method with a gate on hidden states; None for others, and in files of 0.1.0."""
    texts: tuple[str | None, ...] = ()
    """What was answered, as the file has it: labels, or the words of an answer to an open question."""
    right: BoolArray | None = None
    """By row, whether the answer is right; False where the right answer is not known, None where texts are not."""
    matched_right: BoolArray | None = None
    """The same of the decoder with its correction switched off."""

    def take(self, rows: BoolArray) -> MethodAnswers:
        """The answers to some of the rows."""
        places = np.flatnonzero(rows).tolist()
        return MethodAnswers(
            self.info,
            self.answers[rows],
            None if self.matched is None else self.matched[rows],
            None if self.activity is None else tuple(self.activity[place] for place in places),
            tuple(self.texts[place] for place in places) if self.texts else (),
            None if self.right is None else self.right[rows],
            None if self.matched_right is None else self.matched_right[rows],
        )


def write_answers(
    path: Path,
    infos: Sequence[MethodInfo],
    rows: Iterable[Mapping[str, Any]],
    *,
    references: Mapping[str, Cost] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> None:
    """Write the answers of all methods to one Parquet file; it appears whole or not at all.

    Parameters
    ----------
    path
        The file to write.
    infos
        All methods, in the order of tables.
    rows
        One mapping per method and example with the fields of ``SCHEMA``; what is not there is null, and pair ids
        become text.
    references
        Costs of the ``original`` answers and of ``spc``, measured together with the methods.
    left_out
        Names of methods that were asked for and are not here, with the reasons.

    >>> import tempfile
    >>> info = MethodInfo("focus", "Focus on Vision", "prompt", {}, None)
    >>> row = {"method": "focus", "pair_id": 1, "side": "cf", "task": "qa", "text": "No.", "answer": "no"}
    >>> table = ScoreTable.from_rows([{"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"],
    ...     "image_scores": [0, -1], "prior_scores": [0, -1], "original": "yes", "answer": "no"}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_answers(Path(folder) / "baselines.parquet", [info], [row])
    ...     read_answers(Path(folder) / "baselines.parquet", table)[0].answers.tolist()
    [1]
    """
    plain = [{name: _text(row.get(name)) for name in _TEXT} | {name: row.get(name) for name in _COUNTS} for row in rows]
    unknown = {row["method"] for row in plain} - {info.name for info in infos}
    if unknown:
        raise UnpriorError(f"answers of {', '.join(map(str, sorted(unknown, key=str)))}, which is not described")
    about = {
        "version": _VERSION,
        "methods": [asdict(info) for info in infos],
        "references": {name: asdict(cost) for name, cost in (references or {}).items()},
        "left_out": dict(left_out or {}),
    }
    schema = SCHEMA.with_metadata({_ABOUT: json.dumps(about, ensure_ascii=False, allow_nan=False)})
    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_pylist(plain, schema), temporary)


def read_answers(path: Path, table: ScoreTable) -> list[MethodAnswers]:
    """Join the answers of every method to the rows of a table; answers to other examples are ignored.

    Examples are joined by ``example_id``, or where the table has none by pair, side and task.
    """
    arrow, about = _open(path)
    identity = ("example_id",) if table.arrow.column("example_id").null_count == 0 else ("pair_id", "side", "task")
    for name in ("model", "benchmark"):
        _check_source(path, name, arrow, table)
    keys = list(zip(*(map(_text, table.column(name)) for name in identity), strict=True))
    results = []
    for described in about["methods"]:
        info = _info(described)
        rows = _rows_of(path, arrow, info, identity)
        absent = [key for key in keys if key not in rows]
        if absent:
            raise _missing(path, info.label, absent, len(keys))
        found = [rows[key] for key in keys]
        texts = [row["answer"] for row in found]
        answers = _positions(path, info.label, texts, keys, table)
        matched = matched_right = None
        if any(row["matched_text"] is not None for row in found):
            absent = [key for key, row in zip(keys, found, strict=True) if row["matched_text"] is None]
            if absent:
                raise _missing(path, f"{info.label} with its correction switched off", absent, len(keys))
            references = [row["matched_answer"] for row in found]
            matched = _positions(path, info.label, references, keys, table)
            matched_right = right_texts(table, references)
        right = right_texts(table, texts)
        results.append(MethodAnswers(info, answers, matched, _activity(found), tuple(texts), right, matched_right))
    return results


def _activity(rows: Sequence[Mapping[str, Any]]) -> tuple[GateActivity, ...] | None:
    """Of all rows or of none: a share of some would be read as that of all."""
    if any(row.get(name) is None for row in rows for name in _COUNTS):
        return None
    return tuple(GateActivity(row["positions"], row["active_positions"]) for row in rows)


def read_references(path: Path) -> dict[str, Cost]:
    """Costs of the ``original`` answers and of ``spc`` that were measured together with the methods of a file."""
    return {name: Cost(**cost) for name, cost in _open(path)[1]["references"].items()}


def read_left_out(path: Path) -> dict[str, str]:
    """Methods that were asked for and are not in a file, with the reasons; earlier versions did not note them."""
    return dict(_open(path)[1].get("left_out", {}))


def described_methods(path: Path, *, model: str, benchmark: str) -> list[MethodInfo]:
    """The methods of a file, if all its answers are those of one model to one benchmark; else none."""
    arrow, about = _open(path)
    sources = {(row["model"], row["benchmark"]) for row in arrow.select(["model", "benchmark"]).to_pylist()}
    return [_info(described) for described in about["methods"]] if sources == {(model, benchmark)} else []


def _info(described: dict[str, Any]) -> MethodInfo:
    cost = described["cost"]
    return MethodInfo(**described | {"cost": None if cost is None else Cost(**cost)})


def _open(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    with open_to_read(path) as stream:  # a missing file is reported as everywhere
        if not is_parquet(stream):
            raise UnpriorError(f"{path}: not a file of answers; `unprior baseline` writes one")
    arrow = read_parquet(path)
    about = parse_json((arrow.schema.metadata or {}).get(_ABOUT, b"null"))
    if about is None or set(_TEXT) - set(arrow.column_names):
        raise UnpriorError(f"{path}: not a file of answers; `unprior baseline` writes one")
    if about["version"] != _VERSION:
        raise UnpriorError(
            f"{path}: answers in version {about['version']}, this unprior reads version {_VERSION}. "
            f"Compute them again with `unprior baseline`."
        )
    return arrow, about


def _check_source(path: Path, name: str, arrow: pa.Table, table: ScoreTable) -> None:
    """Answers of another model, or to another benchmark, would be compared with the wrong original answers."""
    here, there = ({value for value in values if value is not None}
                   for values in (arrow.column(name).to_pylist(), table.column(name)))  # fmt: skip
    if here and there and here != there:
        raise UnpriorError(
            f"{path}: the answers belong to {name} {', '.join(sorted(here))}, the scores to "
            f"{', '.join(sorted(there))}; compute them for this {name} with `unprior baseline`"
        )


def _rows_of(
    path: Path, arrow: pa.Table, info: MethodInfo, identity: tuple[str, ...]
) -> dict[tuple[str | None, ...], dict[str, Any]]:
    rows: dict[tuple[str | None, ...], dict[str, Any]] = {}
    for row in arrow.filter(pc.equal(arrow.column("method"), info.name)).to_pylist():
        key = tuple(row[name] for name in identity)
        if key == (None,):  # made for a table without example ids
            continue
        if key in rows:
            raise UnpriorError(f"{path}: {info.label} answers {_named(key)} twice, which tells nothing; remove one")
        rows[key] = row
    return rows


def _positions(
    path: Path, method: str, answers: list[str | None], keys: list[tuple[str | None, ...]], table: ScoreTable
) -> IntArray:
    position = text_positions(table, answers)
    for row in np.flatnonzero((position < -1) & ~table.is_open)[:1].tolist():
        candidates = ", ".join(table.candidate_lists[row].as_py())
        raise UnpriorError(
            f"{path}: {method} answers {answers[row]!r} to {_named(keys[row])}, which is none of its candidates "
            f"({candidates}); the file belongs to other questions"
        )
    return position


def _missing(path: Path, method: str, absent: Sequence[tuple[str | None, ...]], total: int) -> UnpriorError:
    return UnpriorError(
        f"{path}: {method} has no answer to {len(absent):,} of {total:,} rows of the score table (first: "
        f"{_named(absent[0])}). {_REMEDY}"
    )


def _named(key: tuple[str | None, ...]) -> str:
    return f"example {key[0]}" if len(key) == 1 else f"pair {key[0]}, {key[1]}, {key[2]}"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
