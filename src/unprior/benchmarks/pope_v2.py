"""POPEv2: a photograph with an object, and the same photograph from which it was removed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from unprior.benchmarks.annotations import find_file, read_json_list
from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import NamedImages
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

SEED, IMAGES = 20260711, 70
"""The paper's choice: the first 70 image ids after shuffling with this seed."""
_SIDES = {"No": ("cf", "no"), "Yes": ("cs", "yes")}

CARD = Card(
    name="popev2",
    about="70 photographs with an object, and edited without it; one yes/no question for both",
    published="with the paper of Li et al. (AAAI 2026); originals are photographs of COCO train2017",
    revision="not pinned; annotations.json with 1,000 rows",
    licence="not stated; photographs under the terms of COCO",
    citation="Li et al., Analyzing and Mitigating Object Hallucination: A Training Bias Perspective, AAAI 2026",
    counts={"pairs": 70, "examples": 140, "images": 140},
    flaws=(
        Flaw("500 pairs are published, the paper uses 70", "the same 70: sorted ids, shuffled with seed 20260711"),
        Flaw("“a” stands before vowels (“a umbrella”)", "kept as published"),
    ),
    image_sides={"qwen3_vl": 512},
    by_hand="annotations.json and the edited images (images/*.jpg): put them into this folder",
)


def load(folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """Read ``annotations.json`` and keep the paper's 70 pairs; images lie in ``images`` and ``coco/train2017``."""
    path = find_file(folder, "annotations.json", CARD, downloaded=False)
    pairs: dict[int, dict[str, dict[str, Any]]] = {}
    for number, row in enumerate(read_json_list(path), start=1):
        try:
            pairs.setdefault(row["image_id"], {})[_SIDES[row["label"]][0]] = row
            _ = row["image_name"].lstrip("/"), row["query"]
        except (KeyError, AttributeError, TypeError) as error:
            raise UnpriorError(f"{path}: row {number} is not of POPEv2 ({error!r})") from None
    torn = [number for number, sides in pairs.items() if len(sides) != 2]
    if torn:
        raise UnpriorError(f"{path}: image {torn[0]} does not have both sides; get the file again")
    examples = [
        Example(
            f"{number}-{side}",
            path.parent / row["image_name"].lstrip("/"),
            row["query"],
            "qa",
            YES_NO,
            answer=_SIDES[row["label"]][1],
            pair_id=number,
            side=side,
            category="presence",
            subcategory="presence",  # objects are too many to draw pairs of each
        )
        for number in choose_images(pairs)
        for side, row in sorted(pairs[number].items())
    ]
    return Benchmark(CARD.name, examples, CARD)


def choose_images(numbers: Any) -> list[int]:
    """The image ids that the paper evaluates on.

    >>> len(choose_images(range(500)))
    70
    """
    ids = sorted(numbers)
    random.Random(SEED).shuffle(ids)
    return ids[:IMAGES]


ENTRY = Entry(
    CARD,
    load,
    sources=(
        NamedImages(
            "COCO train2017", "http://images.cocodataset.org/train2017", "*/coco/train2017/*.jpg", "coco/train2017"
        ),
    ),
)
