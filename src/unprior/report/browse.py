"""A benchmark to look at: every pair side by side, with its questions, options and labels, on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.schema import Benchmark, Example
from unprior.errors import UnpriorError
from unprior.report.html import embed_image, write_page

_IMAGE_SIDE = 240
_IMAGE_QUALITY = 72
_SIDES = {"cf": "counterfactual", "cs": "commonsense"}


@dataclass(frozen=True, slots=True)
class ShownImage:
    """One image of a pair."""

    side: str | None
    name: str
    """Its side in words."""
    uri: str | None
    """The image itself, as a data URI."""
    missing: str | None
    """Why there is no image."""


@dataclass(frozen=True, slots=True)
class Option:
    """One candidate, or one right answer to an open question, and on which sides it is right."""

    label: str
    text: str | None
    right: tuple[str | None, ...]
    """Sides on which it is the right answer; (None,) where there are none."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its candidates."""

    text: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair, or an image without a partner, with everything asked about it."""

    name: str
    category: str
    subcategory: str
    split: str
    images: tuple[ShownImage, ...]
    questions: tuple[Question, ...]
    flaws: tuple[Flaw, ...]


def write_gallery(
    path: Path, benchmark: Benchmark, limit: int | None = None, *, report: Callable[[int, int], None] | None = None
) -> int:
    """Write the page; returns how many pairs (or single images) it shows.

    Parameters
    ----------
    path
        The HTML file; it appears whole or not at all.
    benchmark
        What to show. Images that are missing are shown as missing.
    limit
        Only the first pairs.
    report
        Told how many thumbnails are made, of how many.
    """
    if not len(benchmark):
        raise UnpriorError(f"benchmark {benchmark.name} has no examples to show")
    units: dict[int | str, list[Example]] = {}
    for example in benchmark:
        units.setdefault(str(example.image) if example.pair_id is None else example.pair_id, []).append(example)
    chosen = list(islice(units.values(), limit))
    shown = []
    for done, examples in enumerate(chosen, start=1):
        shown.append(_shown(examples, benchmark.card))
        if report:
            report(done, len(chosen))
    card = benchmark.card or Card(benchmark.name, "questions of your own")
    write_page(
        path,
        "browse.html.j2",
        title=benchmark.name,
        card=card,
        counts=benchmark.counts(),
        missing=len(benchmark.missing_images()),
        cards=shown,
        total=len(units),
        noun="pairs" if all(example.side for example in benchmark) else "images",
        categories=list(dict.fromkeys(each.category for each in shown if each.category)),
        subcategories=list(dict.fromkeys(each.subcategory for each in shown if each.subcategory)),
        splits=list(dict.fromkeys(each.split for each in shown if each.split)),
    )
    return len(shown)


def _shown(examples: list[Example], card: Card | None) -> ShownPair:
    first = examples[0]
    images = [
        ShownImage(side, _SIDES.get(side or "", ""), *embed_image(path, _IMAGE_SIDE, _IMAGE_QUALITY))
        for side, path in dict.fromkeys((example.side, example.image) for example in examples)
    ]
    return ShownPair(
        name=first.image.name if first.pair_id is None else f"pair {first.pair_id}",
        category=first.category or "",
        subcategory=first.subcategory or "",
        split=first.split or "",
        images=tuple(images),
        questions=_questions(examples),
        flaws=() if card is None else card.flaws_of(first.pair_id),
    )


def _questions(examples: list[Example]) -> tuple[Question, ...]:
    """Every question once, with the sides on which each candidate is right."""
    groups: dict[tuple[object, ...], list[Example]] = {}
    for example in examples:
        groups.setdefault((example.task, example.question, example.labels, example.texts), []).append(example)
    questions = []
    for members in groups.values():
        one = members[0]
        if one.is_open:
            questions.append(Question(one.question, _right_answers(members)))
            continue
        options = tuple(
            Option(
                label,
                None if one.texts is None else one.texts[place],
                tuple(dict.fromkeys(member.side for member in members if member.answer == label)),
            )
            for place, label in enumerate(one.labels)
        )
        questions.append(Question(one.question, options))
    return tuple(questions)


def _right_answers(members: list[Example]) -> tuple[Option, ...]:
    """The right answers to an open question, each once, with its aliases; they have no label."""
    sides: dict[tuple[str, tuple[str, ...]], list[str | None]] = {}
    for member in members:
        if member.answer is not None:
            sides.setdefault((member.answer, member.aliases), []).append(member.side)
    return tuple(
        Option("", f"{answer} (or {', '.join(aliases)})" if aliases else answer, tuple(dict.fromkeys(right)))
        for (answer, aliases), right in sides.items()
    )
