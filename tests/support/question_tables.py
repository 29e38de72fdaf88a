"""Benchmarks written as other tools write them: VLMEvalKit's TSV files, Parquet files of Hugging Face's datasets."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unprior.benchmarks.schema import Benchmark, Example

HEADER = ["index", "image", "question", "hint", "A", "B", "C", "D", "answer", "category", "l2-category", "split"]
PAIRED = [*HEADER, "pair", "side"]
FEATURES = {
    "id": {"dtype": "string", "_type": "Value"},
    "image": {"_type": "Image"},
    "question": {"dtype": "string", "_type": "Value"},
    "choices": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
    "answer": {"dtype": "string", "_type": "Value"},
    "number": {"dtype": "int64", "_type": "Value"},
    "side": {"names": ["cf", "cs"], "_type": "ClassLabel"},
    "category": {"dtype": "string", "_type": "Value"},
    "subcategory": {"dtype": "string", "_type": "Value"},
}
"""As `datasets` notes them in the schema of a file."""
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        ("question", pa.string()),
        ("choices", pa.list_(pa.string())),
        ("answer", pa.string()),
        ("number", pa.int64()),
        ("side", pa.int64()),
        ("category", pa.string()),
        ("subcategory", pa.string()),
    ],
    metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
)


def write_tsv(path: Path, benchmark: Benchmark) -> None:
    """VLMEvalKit's columns and two more; the image of a later question is named by the first row that has it."""
    first: dict[Path, str] = {}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(PAIRED)
        for example in benchmark:
            named = first.setdefault(example.image, example.example_id)
            image = named if named != example.example_id else base64.b64encode(example.image.read_bytes()).decode()
            texts = [*(example.texts or ()), "", "", "", ""][:4]
            answer = (example.answer or "").capitalize() if example.task == "qa" else example.answer
            writer.writerow([
                example.example_id, image, example.question, "", *texts, answer, example.category, example.subcategory,
                example.split, example.pair_id, example.side,
            ])  # fmt: skip


def parquet_row(example: Example) -> dict[str, Any]:
    """One row as `datasets` writes it."""
    return {
        "id": example.example_id,
        "image": {"bytes": example.image.read_bytes(), "path": example.image.name},
        "question": example.question,
        "choices": None if example.texts is None else list(example.texts),
        "answer": example.answer if example.texts is None else example.texts[example.labels.index(str(example.answer))],
        "number": example.pair_id,
        "side": ["cf", "cs"].index(str(example.side)),
        "category": example.category,
        "subcategory": example.subcategory,
    }  # fmt: skip


def write_parquet(folder: Path, benchmark: Benchmark) -> None:
    """A folder as `push_to_hub` of `datasets` makes it: a file for every split, here two for the test."""
    (folder / "data").mkdir(parents=True)
    test = [example for example in benchmark if example.split == "test"]
    files = {
        "validation-00000-of-00001": [example for example in benchmark if example.split == "dev"],
        "test-00000-of-00002": test[: len(test) // 2],
        "test-00001-of-00002": test[len(test) // 2 :],
    }
    for name, examples in files.items():
        rows = [parquet_row(example) for example in examples]
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "data" / f"{name}.parquet")
