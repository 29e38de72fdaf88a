"""The microworld as a benchmark: images on disk and examples in the common shape."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from unprior._files import replacing
from unprior.benchmarks.card import Card
from unprior.benchmarks.entry import Entry
from unprior.benchmarks.microworld.options import OPTION_COUNTS, draw_options
from unprior.benchmarks.microworld.pairs import SIDES, Pair, pairs
from unprior.benchmarks.microworld.render import render
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.benchmarks.variants import ask_claims, ask_openly, constructed
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

IMAGE_SIZE = 288
_SIDE_NAMES = {"cf": "counterfactual", "cs": "commonsense"}


def image_path(folder: Path, pair: Pair, side: str) -> Path:
    """Where an image lies: the layout of CDH-Bench."""
    subcategory = pair.subcategory.replace(" ", "_").replace("/", "_")
    return folder / "images" / subcategory / f"Pair_{pair.number}" / f"{_SIDE_NAMES[side]}.png"


def draw_images(folder: Path, seed: int, report: Callable[[int, int], None] | None = None) -> None:
    """Draw the images of a world that are not there yet; a folder holds the images of one seed only."""
    _claim_folder(folder / "images" / "seed", seed)
    wanted = [(pair, side) for pair in pairs(seed) for side in SIDES]
    for done, (pair, side) in enumerate(wanted):
        path = image_path(folder, pair, side)
        if not _is_image(path):
            image = render(pair.concept, pair.state(side), pair.seed, size=IMAGE_SIZE)
            with replacing(path) as temporary:
                image.save(temporary, format="PNG", compress_level=0)  # grain hardly gets smaller, and costs time
        if report:
            report(done + 1, len(wanted))


def _claim_folder(marker: Path, seed: int) -> None:
    """Note whose images a folder holds; the images of another seed are not mixed with them."""
    try:
        found = marker.read_text(encoding="utf-8", errors="replace").strip() if marker.exists() else ""
    except OSError as error:
        raise UnpriorError(f"{marker}: cannot be read ({error.strerror or error}); choose another folder") from None
    if found.isdigit() and int(found) != seed:
        raise UnpriorError(f"{marker.parents[1]}: holds the images of seed {found}; choose another folder")
    if found != str(seed):
        with replacing(marker) as temporary:
            temporary.write_text(f"{seed}\n", encoding="utf-8")


def _is_image(path: Path) -> bool:
    """Whether an image is there and whole; a damaged one is drawn again."""
    try:
        with Image.open(path) as image:
            image.verify()
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def microworld(
    folder: Path, seed: int = 0, *, variant: str = "standard", report: Callable[[int, int], None] | None = None
) -> Benchmark:
    """Draw a world into a folder and return its questions.

    Parameters
    ----------
    folder
        Images are written to ``images`` below it; those that are there already are kept.
    seed
        The same seed gives the same images and questions. Benchmark seeds are below 1000.
    variant
        ``standard`` (one multiple-choice and one yes/no question per image), ``forms`` (four question forms in both
        claim orders), ``presence`` (“Is there a cat in the image?”, half yes and half no), ``open`` (the
        multiple-choice questions without options) or ``options`` (the same with two to six options).
    report
        Told how many images are there, of how many.
    """
    if variant not in CARDS:
        raise UnpriorError(f"microworld has no variant {variant!r}; choose from {', '.join(CARDS)}")
    draw_images(folder, seed, report)
    examples = [
        example
        for pair in pairs(seed)
        for place, side in enumerate(SIDES)
        for example in _ASKED.get(variant, _standard)(pair, place, _common(folder, pair, side, variant))
    ]
    card = replace(CARDS[variant], revision=f"seed {seed}")
    benchmark = Benchmark(card.name if seed == 0 else f"{card.name}-{seed}", examples, card)
    return _MADE[variant](benchmark) if variant in _MADE else benchmark


def _common(folder: Path, pair: Pair, side: str, variant: str) -> dict[str, Any]:
    common: dict[str, Any] = {
        "image": image_path(folder, pair, side),
        "category": pair.category,
        "subcategory": pair.subcategory,
        "split": pair.split,
    }
    return common if variant == "presence" else common | {"pair_id": pair.number, "side": side}


def _standard(pair: Pair, place: int, common: dict[str, Any]) -> Iterator[Example]:
    side = SIDES[place]
    yield Example(
        example_id=f"{pair.number}-{side}-mc", question=pair.concept.question, task="mc", labels=LETTERS,
        texts=pair.options, answer=pair.letter(side), **common,
    )  # fmt: skip
    yield Example(
        example_id=f"{pair.number}-{side}-qa", question=pair.claim(), task="qa", labels=YES_NO,
        answer="no" if side == "cf" else "yes", claims=pair.claims, open_question=pair.concept.question, **common,
    )  # fmt: skip


def _presence(pair: Pair, place: int, common: dict[str, Any]) -> Iterator[Example]:
    name, there = pair.presence(SIDES[place])
    yield Example(
        example_id=f"{pair.number}-{SIDES[place]}-presence", question=presence_question(name), task="qa", labels=YES_NO,
        answer="yes" if there else "no", **common,
    )  # fmt: skip


def _options(pair: Pair, place: int, common: dict[str, Any]) -> Iterator[Example]:
    """A choice of two to six options, the same ones on both sides; all numbers of options are equally frequent."""
    count = OPTION_COUNTS[pair.number % len(OPTION_COUNTS)]
    shown = pair.concept.states.index(pair.atypical)
    texts = draw_options(pair.concept, shown, count, random.Random(f"options/{pair.seed}"))
    letters, side = tuple(string.ascii_uppercase[:count]), SIDES[place]
    yield Example(
        example_id=f"{pair.number}-{side}-options", question=pair.concept.question, task="mc", labels=letters,
        texts=texts, answer=letters[texts.index(pair.state(side))], **common,
    )  # fmt: skip


_ASKED = {"presence": _presence, "options": _options}
"""What is asked about an image; by default the standard questions."""
_MADE: dict[str, Callable[[Benchmark], Benchmark]] = {"forms": ask_claims, "open": ask_openly}
"""What is made of the standard questions."""


def presence_question(name: str) -> str:
    """Ask whether a thing is there.

    >>> presence_question("a cat")
    'Is there a cat in the image?'
    """
    return f"Is there {name} in the image?"


_ABOUT = "300 drawn pairs in 14 subcategories, one choice and one yes/no question each"
_CARD = Card(
    name="microworld",
    about=_ABOUT,
    published="drawn by this package",
    revision="seed 0",
    licence="Apache-2.0",
    counts={"pairs": 300, "examples": 1200, "images": 600, "dev": 70, "test": 230},
    synonyms=(("see-through", "transparent"),),
)
CARDS = {
    "standard": _CARD,
    "forms": replace(
        _CARD,
        name="microworld-forms",
        about="the same pairs, four question forms in both claim orders",
        counts={"pairs": 300, "examples": 4800, "images": 600, "dev": 70, "test": 230},
    ),
    "presence": replace(
        _CARD,
        name="microworld-presence",
        about="the same images, presence questions without a prior conflict",
        counts={"examples": 600, "images": 600, "dev": 140, "test": 460},
    ),
    "open": replace(
        _CARD,
        name="microworld-open",
        about="the same pairs, one open question each, answered in the model's own words",
        counts={"pairs": 300, "examples": 600, "images": 600, "dev": 70, "test": 230},
    ),
    "options": replace(
        _CARD,
        name="microworld-options",
        about="the same pairs, one choice of two to six options each",
        counts={"pairs": 300, "examples": 600, "images": 600, "dev": 70, "test": 230},
    ),
}
"""What is known of each variant."""
ENTRY, FORMS_ENTRY, PRESENCE_ENTRY, OPEN_ENTRY, OPTIONS_ENTRY = (
    Entry(
        card,
        partial(microworld, variant=variant),
        variants=constructed() if variant == "standard" else {},
        drawn=True,
    )
    for variant, card in CARDS.items()
)
