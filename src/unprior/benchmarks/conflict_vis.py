"""ConflictVIS: images of uncommon actions and places, with yes/no and multiple-choice questions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unprior._files import parse_json, replacing
from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.hub_rows import read_images, read_rows, shards, unpacked, write_image
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import HubDataset
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO, parse_answer

_TASKS = {"YN": "qa", "MC": "mc"}
_OPTION = re.compile(r"\(([A-Z])\)")
_NAME = re.compile(r"\w[\w.-]{0,99}")

CARD = Card(
    name="conflictvis",
    about="374 yes/no and 374 multiple-choice questions about images of uncommon actions and places; no pairs",
    published="hub dataset xiaoyuanliu/conflict_vis",
    revision="main, not pinned",
    licence="see the dataset's page",
    citation="Liu et al., Insight Over Sight, ACL 2025",
    counts={"examples": 748},
    flaws=(
        Flaw("all yes/no answers are yes", "kept: accuracy on them also rewards a model that always says yes"),
        Flaw("there is no matched commonsense image", "examples without pairs: retention cannot be judged"),
        Flaw("open questions (SUBJ) have no candidates", "left out"),
    ),
)


def load(folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """Read the Parquet files; questions are used word for word, with the options that stand in them."""
    paths = shards(folder, "*.parquet", CARD)
    rows = list(read_rows(paths, ("id", "question_type", "question", "answer", "conflict_target")))
    for where, row in rows:
        for column in ("question_type", "question", "answer"):
            if not isinstance(row[column], str):
                raise UnpriorError(f"{where}: column {column} is not a text but {row[column]!r}; get the dataset again")
    images = _unpack(paths, [row for _, row in rows], unpacked(folder))
    examples = [_example(row, images[_key(row)], where) for where, row in rows if row["question_type"] in _TASKS]
    return Benchmark(CARD.name, examples, CARD)


def _key(row: dict[str, Any]) -> str:
    return f"{row['id']}-{row['question_type']}"


def _name(number: Any) -> str:
    """The number of a question as part of a file's name; it must not lead elsewhere."""
    if not _NAME.fullmatch(str(number)):
        raise UnpriorError(f"question {number!r}: a number or a plain name is needed; get the dataset again")
    return str(number)


def _unpack(paths: Sequence[Path], rows: Sequence[dict[str, Any]], folder: Path) -> dict[str, Path]:
    """The image of every question; the questions of an id share a file where they show the same image."""
    wanted = {_key(row) for row in rows if row["question_type"] in _TASKS}
    index = folder / "conflictvis.json"
    try:
        known = {str(key): folder / name for key, name in parse_json(index.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        known = {}
    if set(known) == wanted and all(path.is_file() for path in known.values()):
        return known
    images: dict[str, Path] = {}
    digests: dict[Path, bytes] = {}
    for row, content in zip(rows, read_images(paths, "images"), strict=True):
        if row["question_type"] not in _TASKS:
            continue
        target, digest = folder / f"{_name(row['id'])}.png", hashlib.sha256(content or b"").digest()
        if content and digests.get(target, digest) != digest:
            target = folder / f"{_name(row['id'])}-{row['question_type']}.png"
        if content:
            digests[target] = digest
            write_image(target, content)
        images[_key(row)] = target
    with replacing(index) as temporary:
        temporary.write_text(json.dumps({key: path.name for key, path in images.items()}), encoding="utf-8")
    return images


def _example(row: dict[str, Any], image: Path, where: str) -> Example:
    task, question = _TASKS[row["question_type"]], row["question"]
    labels = YES_NO if task == "qa" else tuple(dict.fromkeys(_OPTION.findall(question)))
    answer = parse_answer(str(row["answer"]), labels) if len(labels) > 1 else None
    if answer is None:
        raise UnpriorError(f"{where}: question {row['id']} ({row['question_type']}) has no answer among its options")
    return Example(
        f"{row['id']}-{task}", image, question, task, labels, answer=answer, category=row["conflict_target"],
        subcategory=row["conflict_target"], group=str(row["id"]),
    )  # fmt: skip


ENTRY = Entry(CARD, load, sources=(HubDataset("xiaoyuanliu/conflict_vis", patterns=("*.parquet",)),))
