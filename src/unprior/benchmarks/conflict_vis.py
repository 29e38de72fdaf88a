"""ConflictVIS: pictures of uncommon actions and places, with yes/no and multiple-choice questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.hub_rows import UNPACKED, read_rows, shards, unpack_images
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import HubDataset
from unprior.engines.prompts import YES_NO, parse_answer
from unprior.errors import UnpriorError

_TASKS = {"YN": "qa", "MC": "mc"}
_OPTION = re.compile(r"\(([A-Z])\)")

CARD = Card(
    name="conflictvis",
    about="374 yes/no and 374 multiple-choice questions about pictures of uncommon actions and places; no pairs",
    published="hub dataset xiaoyuanliu/conflict_vis",
    revision="main, as of the paper",
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
    images = [
        folder / UNPACKED / f"{row['id']}-{row['question_type']}.png" if row["question_type"] in _TASKS else None
        for row in rows
    ]
    unpack_images(paths, "images", images)
    examples = [_example(row, image, folder) for row, image in zip(rows, images, strict=True) if image is not None]
    return Benchmark(CARD.name, examples, CARD)


def _example(row: dict[str, Any], image: Path, folder: Path) -> Example:
    task, question = _TASKS[row["question_type"]], row["question"]
    labels = YES_NO if task == "qa" else tuple(dict.fromkeys(_OPTION.findall(question)))
    answer = parse_answer(str(row["answer"]), labels) if len(labels) > 1 else None
    if answer is None:
        raise UnpriorError(f"{folder}: question {row['id']} ({row['question_type']}) has no answer among its options")
    return Example(
        f"{row['id']}-{task}", image, question, task, labels, answer=answer, category=row["conflict_target"],
        subcategory=row["conflict_target"],
    )  # fmt: skip


ENTRY = Entry(CARD, load, sources=(HubDataset("xiaoyuanliu/conflict_vis", patterns=("*.parquet",)),))
