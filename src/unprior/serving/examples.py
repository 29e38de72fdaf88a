"""Examples of the page: images of the microworld that the packaged calibrator repairs, harms or leaves as they are."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from unprior.embedded import CALIBRATOR, NAME

FILE = CALIBRATOR.with_name("examples.json")
"""Made together with the calibrator, by ``training/calibrate.py``."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a drawing, and what the calibrator makes of it."""

    label: str
    """``repaired``, ``harmed`` or ``kept``."""
    world: int
    pair: int
    side: str
    kind: str
    """``choice``, ``predicate`` or ``open``."""
    question: str
    candidates: tuple[str, ...]
    about: str
    """What the image shows."""

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def page_examples(model: str) -> list[Example]:
    """What can be clicked; nothing for other models, which know no drawings of this kind."""
    if model != NAME:
        return []
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return [Example(**each | {"candidates": tuple(each["candidates"])}) for each in found]


@cache
def draw_example(example: Example) -> bytes:
    """Its image as a PNG file."""
    from unprior.benchmarks.microworld.benchmark import IMAGE_SIZE
    from unprior.benchmarks.microworld.pairs import pairs
    from unprior.benchmarks.microworld.render import render

    pair = next(each for each in pairs(example.world) if each.number == example.pair)
    image = render(pair.concept, pair.state(example.side), pair.seed, size=IMAGE_SIZE)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()
