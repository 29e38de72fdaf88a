"""Score tables read the plain way, row by row: what an accepted table must say.

Written without a look at how the package reads them; only the rules of the documentation are used.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]
_TEXTS = ("model", "benchmark", "category", "subcategory", "split", "example_id", "original_text")
_SIDES = {"counterfactual": "cf", "commonsense": "cs", "cf": "cf", "cs": "cs"}


def read_lines(content: bytes) -> dict[int, Row | None]:
    """Rows of a JSONL file by line number; None for a line that is no valid row."""
    rows: dict[int, Row | None] = {}
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        rows[number] = _checked(_ordinary(record)) if isinstance(record, dict) else None
    return rows


def read_parquet(path: Path) -> dict[int, Row | None] | None:
    """Rows of a Parquet file by number; None for the whole if Arrow itself cannot give them."""
    try:
        records = pq.read_table(path).to_pylist()
    except Exception:  # broken files make Arrow raise nearly anything
        return None
    return {number: _checked(_from_arrow(record)) for number, record in enumerate(records, start=1)}


def _from_arrow(record: Row) -> Row:
    """Numbers and texts of other widths are the same numbers and texts."""
    row = dict(record)
    for name in ("image_scores", "prior_scores"):
        if isinstance(row.get(name), list):
            row[name] = [_number(value) for value in row[name]]
    if isinstance(row.get("candidates"), list):
        row["candidates"] = [_text(value) for value in row["candidates"]]
    for name in ("side", "task", "original", "answer", *_TEXTS):
        row[name] = _text(row.get(name))
    return row


def _text(value: Any) -> str | None:
    """A value as Arrow spells it in a text column."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return value


def _ordinary(record: Row) -> Row:
    """A row of the published layout in the ordinary one; what cannot be translated comes back without candidates."""
    if "cp_vbc" not in record and not ("status" in record and "image_scores" not in record):
        return record
    scored = record.get("cp_vbc")
    entries = scored.get("candidates") if isinstance(scored, dict) else None
    if record.get("status") != "ok" or not isinstance(scored, dict) or not isinstance(entries, list):
        return {}
    if not all(isinstance(entry, dict) and isinstance(entry.get("key"), str) for entry in entries):
        return {}
    names: dict[str, str] = {}
    for entry in entries:
        names[entry["key"].strip().casefold()] = entry["key"]
    if len(names) < len(entries):
        return {}

    def find(key: Any) -> str | None:
        return names.get(key.strip().casefold()) if isinstance(key, str) else None

    task, answer = record.get("task"), record.get("gt")
    row = {name: record.get(name) for name in (*_TEXTS[:-1], "pair_id")}
    return row | {
        "side": _SIDES.get(str(record.get("side")).casefold(), "unknown"),
        "task": task.casefold() if isinstance(task, str) else task,
        "candidates": [entry["key"] for entry in entries],
        "image_scores": [entry.get("logp_image") for entry in entries],
        "prior_scores": [entry.get("logp_prior") for entry in entries],
        "original": find(scored.get("baseline_key") or scored.get("baseline_pred")),
        "answer": find(answer) if answer is None or find(answer) else "no candidate",
    }


def _checked(row: Row) -> Row | None:
    """The part of a row that decisions depend on, or None if it breaks a rule."""
    candidates = row.get("candidates")
    if not isinstance(candidates, list) or len(candidates) < 2 or not all(map(_is_text, candidates)):
        return None
    if len(set(candidates)) < len(candidates):
        return None
    for name in ("image_scores", "prior_scores"):
        scores = row.get(name)
        if not isinstance(scores, list) or len(scores) != len(candidates) or not all(map(_is_score, scores)):
            return None
    if "original" not in row or row.get("task") not in ("mc", "qa") or row.get("side") not in ("cf", "cs", None):
        return None
    for name in ("original", "answer"):
        if row.get(name) is not None and row[name] not in candidates:
            return None
    pair = row.get("pair_id")
    if isinstance(pair, bool) or not (isinstance(pair, int) or _is_text(pair)):
        return None
    if not all(row.get(name) is None or _is_text(row[name]) for name in _TEXTS):
        return None
    return {
        "pair_id": str(pair),
        "side": row.get("side"),
        "task": row["task"],
        "split": row.get("split"),
        "model": row.get("model"),
        "candidates": candidates,
        "image_scores": [float(score) for score in row["image_scores"]],
        "prior_scores": [float(score) for score in row["prior_scores"]],
        "original": row["original"],
        "answer": row.get("answer"),
    }


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _is_score(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value) and abs(value) <= 1e6
    except OverflowError:
        return False
