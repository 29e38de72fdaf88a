"""Visual CounterFact: objects in their usual and in another colour, and pairs of objects in exchanged sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.hub_rows import read_rows, shards, unpack_images, unpacked
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import HubDataset
from unprior.errors import UnpriorError

LABELS = ("A", "B")
QUESTIONS = {
    "color": "What color is the {object} in this image?",
    "size": "Which object is larger in this image?",
}
"""The question of each split of the dataset."""
_SIDES = {"cf": "counterfact_image", "cs": "original_image"}

CARD = Card(
    name="visual-counterfact",
    about="1,220 pairs: objects in another colour (493) or in exchanged sizes (727), two options each",
    published="hub dataset mgolov/Visual-Counterfact",
    revision="main, not pinned",
    licence="see the dataset's page",
    citation="Golovanevsky et al., Pixels Versus Priors, EMNLP 2025",
    counts={"pairs": 1220, "examples": 2440, "images": 2440},
    flaws=(Flaw("some answers are lists of colours", "joined with “ or ”"),),
)


def load(folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """Read the Parquet files of both splits; their images are unpacked into the folder the first time."""
    examples: list[Example] = []
    for split in QUESTIONS:
        examples += _split(folder, split)
    return Benchmark(CARD.name, examples, CARD)


def _split(folder: Path, split: str) -> list[Example]:
    paths = shards(folder, f"{split}*.parquet", CARD)
    rows = list(read_rows(paths, ("object", "correct_answer", "incorrect_answer")))
    targets = {
        side: [unpacked(folder) / split / f"{index}-{side}.png" for index in range(len(rows))] for side in _SIDES
    }
    for side, column in _SIDES.items():
        unpack_images(paths, column, targets[side])
    examples = []
    for index, (where, row) in enumerate(rows):
        typical, other = _text(row["correct_answer"]), _text(row["incorrect_answer"])
        if not typical or not other:
            raise UnpriorError(f"{where}: no answers; get the dataset again")
        if typical == other:
            raise UnpriorError(f"{where}: both answers are {typical!r}, so neither is right; get the dataset again")
        # The published balance: the typical answer is A in every other row, starting differently in the two splits.
        first = (index + (split == "size")) % 2 == 0
        texts = (typical, other) if first else (other, typical)
        examples += [
            Example(
                f"{split}-{index}-{side}",
                targets[side][index],
                QUESTIONS[split].format(object=row["object"]),
                "mc",
                LABELS,
                texts,
                answer=LABELS[texts.index(typical if side == "cs" else other)],
                pair_id=f"{split}-{index}",
                side=side,
                category=split,
                subcategory=split,
                instruction="Answer with A or B.",
            )
            for side in _SIDES
        ]
    return examples


def _text(answer: Any) -> str:
    return " or ".join(map(str, answer)) if isinstance(answer, list) else str(answer or "")


ENTRY = Entry(CARD, load, sources=(HubDataset("mgolov/Visual-Counterfact", patterns=("*.parquet",)),))
