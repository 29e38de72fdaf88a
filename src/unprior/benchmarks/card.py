"""Facts about a benchmark: where it comes from, how large it is, what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Flaw:
    """A known fault of the published files, and what is done about it."""

    what: str
    treatment: str
    """How it is loaded: repaired, or kept as published and named here."""
    pairs: tuple[int | str, ...] = ()
    """The pairs it concerns; empty when it concerns the whole benchmark."""


@dataclass(frozen=True, slots=True)
class Card:
    """The metadata of a benchmark.

    >>> Card("mine", "a few questions of my own").licence
    'not stated'
    """

    name: str
    about: str
    """One line for a list."""
    published: str = "not published"
    """Where it can be had, for a person."""
    revision: str = "unversioned"
    """The revision whose counts and flaws are described here."""
    licence: str = "not stated"
    citation: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the published benchmark holds: any of ``pairs``, ``examples``, ``images``, and ``dev``/``test`` pairs."""
    flaws: tuple[Flaw, ...] = ()
    image_sides: Mapping[str, int] = field(default_factory=dict)
    """Square size that images have in the paper, by the beginning of a model's type."""
    by_hand: str = ""
    """What a person has to fetch, because it cannot be downloaded file by file."""
    synonyms: tuple[tuple[str, ...], ...] = ()
    """Groups of wordings that mean the same in its answers, whatever the right one is: (“gray”, “grey”). They become
    aliases of its open questions; spellings that every answer may have (case, articles, number words) are none."""

    def image_side(self, model_type: str | None) -> int | None:
        """Side of the square that images are brought to for a model; None leaves them as they are.

        >>> card = Card("mine", "", image_sides={"qwen3_vl": 512})
        >>> card.image_side("qwen3_vl_moe"), card.image_side("llava")
        (512, None)
        """
        fitting = (side for start, side in self.image_sides.items() if model_type and model_type.startswith(start))
        return next(fitting, None)

    def record(self) -> dict[str, Any]:
        """Plain values."""
        shown = ("name", "about", "published", "revision", "licence", "citation")
        flaws = [{"pairs": list(each.pairs), "what": each.what, "treatment": each.treatment} for each in self.flaws]
        record = {name: getattr(self, name) for name in shown} | {"counts": dict(self.counts), "flaws": flaws}
        return record | ({"synonyms": [list(group) for group in self.synonyms]} if self.synonyms else {})

    def flaws_of(self, pair: int | str | None) -> tuple[Flaw, ...]:
        """The flaws that concern one pair."""
        return tuple(flaw for flaw in self.flaws if pair in flaw.pairs)
