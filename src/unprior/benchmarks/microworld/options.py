"""Choices of two to six options: the states of a concept, and further answers that are never right."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.concepts import Concept, counted, number_of
from unprior.benchmarks.microworld.world import CONCEPTS

OPTION_COUNTS = (2, 3, 4, 5, 6)
_MAX_COUNT = 9
_NEVER_DRAWN: dict[str, tuple[str, ...]] = {
    "Material": ("plastic", "paper"),
    "Size Scale": ("a little smaller", "ten times larger"),
    "Temperature": ("lukewarm", "cool to the touch"),
    "Physical State": ("foam", "jelly"),
    "Luminescence/Transparency": ("striped", "spotted"),
}
"""Further answers where the states of a subcategory are too few."""


def distractors(concept: Concept) -> tuple[str, ...]:
    """Answers to the question of a concept that no image of it shows: at least two.

    >>> hand = next(concept for concept in CONCEPTS if concept.name == "hand fingers")
    >>> distractors(hand)
    ('0 fingers', '1 finger', '2 fingers', '3 fingers', '8 fingers', '9 fingers')
    """
    if concept.ordinary[0].isdigit():
        one, many = _noun(concept)
        known = {number_of(state) for state in concept.states}
        return counted(one, *(number for number in range(_MAX_COUNT + 1) if number not in known), plural=many)
    if concept.subcategory == "Spatial":
        place = concept.ordinary.partition(" the ")[2]
        return f"inside the {place}", f"behind the {place}"
    related = (state for other in CONCEPTS if other.subcategory == concept.subcategory for state in other.states)
    found = dict.fromkeys((*related, *_NEVER_DRAWN.get(concept.subcategory, ())))
    return tuple(text for text in found if text not in concept.states)


def draw_options(concept: Concept, shown: int, count: int, rng: random.Random) -> tuple[str, ...]:
    """So many options in random order: the ordinary state, the one shown, then other states, then distractors."""
    needed = list(dict.fromkeys((concept.ordinary, concept.states[shown])))
    others = [state for state in concept.states if state not in needed]
    wanted = needed + rng.sample(others, len(others)) + rng.sample(distractors(concept), 2)
    return tuple(rng.sample(wanted[:count], count))


def _noun(concept: Concept) -> tuple[str, str]:
    """What is counted, in the singular and in the plural: the latter minus its s where no state counts one."""
    by_number = {number_of(state): state.split(maxsplit=1)[1] for state in concept.states}
    many = next(noun for number, noun in by_number.items() if number != 1)
    return by_number.get(1, _SINGULAR.get(many, many.removesuffix("s"))), many


_SINGULAR = {"leaves": "leaf", "lenses": "lens"}
