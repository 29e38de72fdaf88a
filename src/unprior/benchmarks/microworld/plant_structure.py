"""Counting parts of plants."""

from __future__ import annotations

import math
import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, around, jitter, spread
from unprior.benchmarks.microworld.concepts import Concept, counted, number_of

_GREENS = ((70, 160, 70), (44, 130, 76), (120, 178, 60))
_BLOOMS = ((232, 66, 86), (240, 130, 180), (140, 90, 210), (246, 150, 50))
_BROWNS = ((130, 84, 48), (100, 70, 52), (156, 104, 62))
_HEART = tuple(
    (0.42 * math.sin(t) ** 3,
     -0.42 + (-0.34 * math.cos(t) + 0.09 * math.cos(2 * t) + 0.03 * math.cos(3 * t)))
    for t in (2 * math.pi * k / 28 for k in range(28))
)  # fmt: skip
"""A heart whose tip is near the origin and which points up."""


def _clover(canvas: Canvas, state: str, rng: random.Random) -> None:
    green, bend = rng.choice(_GREENS), rng.choice((-0.14, 0.14))
    leaves = number_of(state)
    canvas.limb([(0, -0.1), (0.02, 0.5), (bend, 0.92)], jitter(green, -0.25), width=0.09)
    start = -90.0 if leaves % 2 else -90.0 + 180 / leaves
    narrow = {2: 0.92, 3: 0.92, 4: 0.7}.get(leaves, 0.54)
    for _, _, angle in around(leaves, 1.0, start=start):
        leaf = canvas.moved(0, -0.1, angle=angle + 90, scale=1.15)
        leaf.polygon([(narrow * x, y) for x, y in _HEART], green)
        leaf.line([(0, -0.12), (0, -0.48)], jitter(green, 0.55), width=0.05)


def _flower(canvas: Canvas, state: str, rng: random.Random) -> None:
    bloom, green = rng.choice(_BLOOMS), rng.choice(_GREENS)
    petals = number_of(state)
    canvas.limb([(0, 0), (0, 0.93)], green, width=0.1)
    wide = {3: 0.27, 4: 0.25, 5: 0.24}.get(petals, 0.16)
    for _, _, angle in around(petals, 1.0, start=-90.0 if petals % 2 else -90.0 + 180 / petals):
        canvas.moved(0, -0.16, angle=angle).ellipse(0.47, 0, 0.29, wide, bloom)
    canvas.circle(0, -0.16, 0.25, (255, 214, 64))


def _cactus(canvas: Canvas, state: str, rng: random.Random) -> None:
    green, bloom, pot = rng.choice(_GREENS), rng.choice(_BLOOMS), rng.choice(((206, 106, 60), (90, 120, 190)))
    first = rng.choice((-1, 1))
    arms = number_of(state)
    for side, count in ((first, (arms + 1) // 2), (-first, arms // 2)):
        for foot, reach in ((0.28, 0.66), (-0.4, 0.5))[:count]:
            elbow = (reach * side, foot)
            canvas.limb([(0, foot), elbow, (reach * side, foot - 0.3)], green, width=0.2)
            canvas.circle(reach * side, foot - 0.4, 0.12, bloom)
    canvas.limb([(0, 0.6), (0, -0.72)], green, width=0.36)
    for x in (-0.08, 0.08):
        canvas.line([(x, -0.7), (x, 0.5)], jitter(green, -0.35), width=0.025)
    canvas.polygon([(-0.42, 0.52), (0.42, 0.52), (0.32, 0.94), (-0.32, 0.94)], pot)


def _tulip(canvas: Canvas, state: str, rng: random.Random) -> None:
    bloom, green = rng.choice(_BLOOMS), rng.choice(_GREENS)
    flowers = number_of(state)
    size = {1: 0.44, 2: 0.34, 3: 0.27}.get(flowers, 0.24)
    heights = {1: (-0.4,), 2: (-0.4, -0.4), 3: (-0.2, -0.58, -0.2)}.get(flowers, (-0.1, -0.6, -0.6, -0.1))
    places = list(zip(spread(flowers, size - 0.94, 0.94 - size), heights, strict=True))
    if flowers == 4:
        places[1:3] = [(-0.31, -0.6), (0.31, -0.6)]
    for x, y in places:
        canvas.limb([(0, 0.5), (x, y + 0.3), (x, y)], green, width=0.06)
    canvas.limb([(0, 0.45), (0, 0.93)], green, width=0.09)
    for side in (-1, 1):
        canvas.polygon([(0, 0.94), (0.26 * side, 0.8), (0.5 * side, 0.4), (0.14 * side, 0.6)], green)
    cup = [(-1, -1.1), (-0.5, -0.5), (0, -1.25), (0.5, -0.5), (1, -1.1), (1, 0.2), (0.6, 0.8), (0, 1), (-0.6, 0.8),
           (-1, 0.2)]  # fmt: skip
    for x, y in places:
        canvas.polygon([(x + size * px, y + size * py) for px, py in cup], bloom)


def _tree(canvas: Canvas, state: str, rng: random.Random) -> None:
    green, brown = rng.choice(_GREENS), rng.choice(_BROWNS)
    fruit = rng.choice(((226, 50, 50), (250, 200, 60), (246, 140, 40)))
    trunks = number_of(state)
    canvas.ellipse(0, 0.88, 0.92, 0.1, (146, 196, 96), outline=None)
    for x in spread(trunks, -0.25 * (trunks - 1), 0.25 * (trunks - 1)):
        canvas.polygon([(x - 0.1, -0.1), (x + 0.1, -0.1), (x + 0.15, 0.9), (x - 0.15, 0.9)], brown)
    puffs = ((-0.48, -0.2, 0.38), (0.48, -0.2, 0.38), (0, -0.15, 0.42), (-0.28, -0.52, 0.38), (0.28, -0.52, 0.38))
    for x, y, radius in puffs:
        canvas.circle(x, y, radius + 0.03, INK, outline=None)
    for x, y, radius in puffs:
        canvas.circle(x, y, radius, green, outline=None)
    for x, y in ((-0.5, -0.2), (0.05, -0.1), (0.5, -0.3), (-0.1, -0.55), (0.3, -0.68)):
        canvas.circle(x, y, 0.085, fruit)


def _mushroom(canvas: Canvas, state: str, rng: random.Random) -> None:
    cap = rng.choice(((220, 50, 50), (236, 120, 40), (150, 96, 60)))
    stems = number_of(state)
    wide, apart = {1: (0.2, 0.0), 2: (0.16, 0.36), 3: (0.13, 0.52)}.get(stems, (0.11, 0.66))
    for x in spread(stems, -apart, apart):
        canvas.polygon([(x - wide, -0.1), (x + wide, -0.1), (x + wide, 0.92), (x - wide, 0.92)], (246, 214, 160))
    dome = [(0.92 * x, 0.1 + y) for x, y, _ in around(19, 1.0, start=180, sweep=180)]
    canvas.polygon(dome, cap)
    for x, y, size in (
        (-0.5, -0.2, 0.13),
        (0.02, -0.1, 0.12),
        (0.5, -0.15, 0.13),
        (-0.18, -0.55, 0.13),
        (0.3, -0.5, 0.11),
    ):
        canvas.circle(x, y, size, (255, 255, 255), outline=None)


CONCEPTS = (
    Concept(
        "clover leaves", "Plant Structure", counted("leaf", 3, 2, 4, 5, plural="leaves"),
        "How many leaves does the clover have?", "Does the clover have {first} and not {second}?",
        "a clover with {state}", ("a clover",), _clover,
    ),
    Concept(
        "flower petals", "Plant Structure", counted("petal", 5, 3, 4, 8),
        "How many petals does the flower have?", "Does the flower have {first} and not {second}?",
        "a flower with {state}", ("a flower",), _flower,
    ),
    Concept(
        "cactus arms", "Plant Structure", counted("arm", 2, 1, 3, 4),
        "How many arms does the cactus have?", "Does the cactus have {first} and not {second}?",
        "a cactus with {state}", ("a cactus",), _cactus,
    ),
    Concept(
        "tulip flowers", "Plant Structure", counted("flower", 1, 2, 3, 4),
        "How many flowers does the tulip have?", "Does the tulip have {first} and not {second}?",
        "a tulip with {state}", ("a tulip",), _tulip,
    ),
    Concept(
        "tree trunks", "Plant Structure", counted("trunk", 1, 0, 2, 3),
        "How many trunks does the tree have?", "Does the tree have {first} and not {second}?",
        "a tree with {state}", ("a tree",), _tree,
    ),
    Concept(
        "mushroom stems", "Plant Structure", counted("stem", 1, 2, 3, 4),
        "How many stems does the mushroom have?", "Does the mushroom have {first} and not {second}?",
        "a mushroom with {state}", ("a mushroom",), _mushroom,
    ),
)  # fmt: skip
