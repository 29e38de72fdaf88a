"""Pairs of images: which concept, which contradiction, which looks; and what is asked about them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from unprior.benchmarks.microworld.concepts import Concept
from unprior.benchmarks.microworld.world import CONCEPTS, absent_objects
from unprior.benchmarks.schema import LETTERS
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY, SUBCATEGORIES

SIDES = ("cf", "cs")


@dataclass(frozen=True, slots=True)
class Pair:
    """A counterfactual and a commonsense image of one concept, alike in all but the state."""

    number: int
    category: str
    subcategory: str
    split: str
    concept: Concept
    atypical: str
    """The state of the counterfactual image."""
    options: tuple[str, ...]
    """The four states in the order in which they are offered."""
    seed: str
    """Decides looks and conditions of both images."""
    absent: tuple[str, str]
    """Things that are in neither image, one for each side's presence question."""

    def state(self, side: str) -> str:
        """What the image of a side shows."""
        return self.atypical if side == "cf" else self.concept.ordinary

    def letter(self, side: str) -> str:
        """The right option for a side."""
        return LETTERS[self.options.index(self.state(side))]

    def claim(self) -> str:
        """The yes/no question, the ordinary claim first: yes on the commonsense side."""
        first, second = self.claims
        return self.concept.claim.format(first=first, second=second)

    @property
    def claims(self) -> tuple[str, str]:
        """The ordinary state, which “yes” stands for in the yes/no question, and the atypical one."""
        return self.concept.ordinary, self.atypical

    def caption(self, side: str) -> str:
        """What a person would write under the image."""
        return self.concept.caption.format(state=self.state(side))

    def presence(self, side: str) -> tuple[str, bool]:
        """A thing to ask for in the image of a side, and whether it is there.

        One side of every pair gets the question about a thing that is there, the other about one that is not.
        """
        place = SIDES.index(side)
        if (self.number + place) % 2:
            return self.absent[place], False
        return self.concept.objects[self.number % len(self.concept.objects)], True


def pairs(seed: int) -> Iterator[Pair]:
    """The 300 pairs of a world: every concept of a subcategory in turn, with its contradictions in random order.

    >>> first = next(pairs(0))
    >>> first.subcategory, first.split
    ('Body Parts', 'dev')
    """
    number = 0
    for category, subcategory, quota in SUBCATEGORIES:
        rng = random.Random(f"pairs/{seed}/{subcategory}")
        chosen = _contradictions(subcategory, rng)
        for place in range(quota):
            number += 1
            concept, atypical = next(chosen)
            absent = absent_objects(concept)
            yield Pair(
                number=number,
                category=category,
                subcategory=subcategory,
                split="dev" if place < DEV_PAIRS_PER_SUBCATEGORY else "test",
                concept=concept,
                atypical=atypical,
                options=tuple(rng.sample(concept.states, len(concept.states))),
                seed=f"{seed}/{number}",
                absent=(rng.choice(absent), rng.choice(absent)),
            )


def _contradictions(subcategory: str, rng: random.Random) -> Iterator[tuple[Concept, str]]:
    """Rounds over the concepts, each with an alternative it has not had yet until all were used."""
    concepts = [concept for concept in CONCEPTS if concept.subcategory == subcategory]
    while True:
        left = {concept.name: rng.sample(concept.alternatives, len(concept.alternatives)) for concept in concepts}
        for _ in range(min(len(alternatives) for alternatives in left.values())):
            for concept in rng.sample(concepts, len(concepts)):
                yield concept, left[concept.name].pop()
