"""What the microworld knows: things with an ordinary state and states that contradict what everyone expects."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from unprior.benchmarks.microworld.canvas import Canvas

Draw = Callable[[Canvas, str, random.Random], None]


@dataclass(frozen=True)
class Concept:
    """A thing that can be drawn in its ordinary state or in at least three others.

    The texts of the states fill the gaps of every template, so a state reads well as an option, in a claim and in a
    caption.
    """

    name: str
    """Unique name, e.g. ``hand fingers``."""
    subcategory: str
    states: tuple[str, ...]
    """Texts of the states, the ordinary one first: ``5 fingers``, ``6 fingers``, …"""
    question: str
    """The multiple-choice question: “How many fingers are on the hand?”"""
    claim: str
    """The yes/no question with gaps: “Does the hand have {first} and not {second}?”"""
    caption: str
    """A description with one gap: “a hand with {state}”."""
    objects: tuple[str, ...]
    """What can be seen in every state, as in “Is there a {object} in the image?” (with its article: ``a hand``)."""
    draw: Draw
    """Draws the thing in a state (given by its text) on a board; chance may vary its looks, never its state."""

    @property
    def ordinary(self) -> str:
        """The state that everyone expects."""
        return self.states[0]

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The other states."""
        return self.states[1:]


def counted(noun: str, *numbers: int, plural: str | None = None) -> tuple[str, ...]:
    """Texts such as “1 eye” and “3 eyes”.

    >>> counted("eye", 2, 1)
    ('2 eyes', '1 eye')
    """
    many = plural or noun + "s"
    return tuple(f"{number} {noun if number == 1 else many}" for number in numbers)


def number_of(state: str) -> int:
    """The number at the start of a counted state.

    >>> number_of("3 eyes")
    3
    """
    return int(state.split(maxsplit=1)[0])
