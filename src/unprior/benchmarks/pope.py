"""POPE: is an object in the image? 9,000 questions about 500 photographs, with absent objects chosen in three ways."""

from __future__ import annotations

from pathlib import Path

from unprior.benchmarks.annotations import find_file, find_folder, read_json_lines
from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import GitHubFiles, NamedImages
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

SETS = ("random", "popular", "adversarial")

CARD = Card(
    name="pope",
    about="9,000 yes/no questions about objects in 500 photographs; no pairs, no prior conflict",
    published="GitHub RUCAIBox/POPE; photographs of COCO val2014",
    revision="HEAD, not pinned; coco_pope_{random,popular,adversarial}.json with 3,000 rows each",
    licence="MIT; photographs under the terms of COCO",
    citation="Li et al., Evaluating Object Hallucination in Large Vision-Language Models, EMNLP 2023",
    counts={"examples": 9000, "images": 500},
    flaws=(
        Flaw("some labels disagree with the photographs, as re-annotations have shown", "kept as published"),
        Flaw(
            "questions about present objects stand in all three sets", "kept: they are asked, and counted, three times"
        ),
    ),
    image_sides={"qwen3_vl": 512},
)


def load(folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """Read the three files of questions; photographs lie in ``val2014`` (or ``images``) beside them."""
    images = find_folder(folder, "val2014", "images")
    examples = []
    for name in SETS:
        path = find_file(folder, f"coco_pope_{name}.json", CARD, "output/coco")
        for number, row in read_json_lines(path):
            try:
                answer = row["label"].lower()
                if answer not in YES_NO:
                    raise ValueError(answer)
                examples.append(
                    Example(
                        f"{name}-{row['question_id']}",
                        images / row["image"],
                        row["text"],
                        "qa",
                        YES_NO,
                        answer=answer,
                        category=name,
                        subcategory=name,
                    )
                )
            except (KeyError, AttributeError, ValueError, TypeError) as error:
                raise UnpriorError(f"{path}, line {number}: not a question of POPE ({error!r})") from None
    return Benchmark(CARD.name, examples, CARD)


ENTRY = Entry(
    CARD,
    load,
    sources=(
        GitHubFiles("RUCAIBox/POPE", ("output/coco/coco_pope_*.json",)),
        NamedImages("COCO val2014", "http://images.cocodataset.org/val2014", "*/COCO_val2014_*.jpg", "val2014"),
    ),
)
