"""Score files written by hand, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unprior.scores import SCHEMA

ROW: dict[str, Any] = {
    "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "image_scores": [-0.3, -1.4],
    "prior_scores": [-0.1, -2.4], "original": "yes", "answer": "no",
}  # fmt: skip
NAN, INF = float("nan"), float("inf")
FORMATS = ("jsonl", "parquet")


def write_jsonl(path: Path, *lines: dict[str, Any] | str | bytes) -> Path:
    """Dictionaries become JSON (with NaN and Infinity as Python writes them), text and bytes stay as they are."""
    encoded = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in encoded))
    return path


def write_parquet(path: Path, *rows: dict[str, Any], types: dict[str, pa.DataType] | None = None) -> Path:
    columns = {}
    for field in SCHEMA:
        kind = (types or {}).get(field.name, pa.int64() if field.name == "pair_id" else field.type)
        values = [row.get(field.name) for row in rows]
        if pa.types.is_map(kind):
            values = [None if value is None else list(value.items()) for value in values]
        columns[field.name] = pa.array(values, kind)
    pq.write_table(pa.table(columns), path)
    return path


WRITERS: dict[str, Callable[..., Path]] = {"jsonl": write_jsonl, "parquet": write_parquet}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ROW.items() if key != name}


FULL: list[dict[str, Any]] = [
    ROW | {
        "model": "modèle", "benchmark": "基准", "category": "c", "subcategory": "d", "split": "dev",
        "original_text": 'Oui — "sì"\n\t\u2028', "token_counts": [1, 3], "example_id": "e1",
        "views": {"white": [-1.0, -2.5], "схема": [0.1, 1e-300]}, "claims": ["五 fingers", "six fingers"],
    },
    ROW | {
        "pair_id": 2, "task": "mc", "candidates": ["五", "🦊", "", "a"], "image_scores": [-1e6, -0.0, 0.1 + 0.2, 5.0],
        "prior_scores": [0, 1, 2, 3], "original": None, "answer": "", "views": {},
    },
    ROW | {"pair_id": 3, "side": "cs", "candidates": ["x", "y", "z"], "image_scores": [1 / 3] * 3, "answer": "z",
           "prior_scores": [-2 / 3, 1e-17, 7.0], "original": "x"},
]  # fmt: skip
