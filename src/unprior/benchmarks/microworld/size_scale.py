"""How big a thing is next to another: the first stands on the left, the second on the right, on the same ground."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld import animals
from unprior.benchmarks.microworld.canvas import Canvas, around, jitter
from unprior.benchmarks.microworld.concepts import Concept, Draw

_MORE, _LESS, _SAME, _BIT = "much larger", "much smaller", "the same size", "a little larger"
_SIZES = {_MORE: (0.7, 0.22), _LESS: (0.22, 0.7), _SAME: (0.47, 0.47), _BIT: (0.59, 0.345)}
"""Scales of the left and of the right thing."""
_GROUND = 0.64


def _apple(canvas: Canvas, skin: tuple[int, int, int]) -> None:
    canvas.circle(-0.3, 0.22, 0.6, skin)
    canvas.circle(0.3, 0.22, 0.6, skin)
    canvas.ellipse(0, 0.3, 0.6, 0.58, skin, outline=None)
    canvas.line([(0, -0.2), (0.06, -0.86)], (110, 70, 40), width=0.11)
    canvas.ellipse(0.34, -0.66, 0.32, 0.15, (90, 170, 60), angle=-20)
    canvas.ellipse(-0.5, 0.02, 0.1, 0.18, jitter(skin, 0.6), angle=20, outline=None)


def _red_apple(canvas: Canvas, rng: random.Random) -> None:
    _apple(canvas, rng.choice(((220, 40, 40), (200, 30, 50), (236, 60, 50))))


def _green_apple(canvas: Canvas, rng: random.Random) -> None:
    _apple(canvas, rng.choice(((130, 200, 50), (160, 210, 70), (100, 180, 60))))


def _house(canvas: Canvas, rng: random.Random) -> None:
    wall = rng.choice(((250, 226, 160), (240, 240, 236), (170, 206, 236)))
    canvas.rectangle(0.4, -0.86, 0.62, -0.2, (150, 90, 80))
    canvas.rectangle(-0.72, -0.2, 0.72, 0.9, wall)
    canvas.polygon([(-0.94, -0.14), (0, -0.92), (0.94, -0.14)], (200, 70, 56))
    canvas.rectangle(-0.14, 0.3, 0.22, 0.9, (130, 80, 50))
    for x in (-0.5, 0.36):
        canvas.rectangle(x - 0.06, 0.0, x + 0.22, 0.3, (130, 200, 240))


def _tree(canvas: Canvas, rng: random.Random) -> None:
    leaf = rng.choice(((60, 150, 60), (100, 170, 50), (30, 120, 80)))
    canvas.polygon([(-0.16, 0.2), (0.16, 0.2), (0.24, 0.9), (-0.24, 0.9)], (130, 84, 50))
    for outline in (True, False):
        for x, y, size in ((-0.44, -0.02, 0.42), (0.44, -0.02, 0.42), (0.0, -0.42, 0.5)):
            canvas.circle(x, y, size + (0.03 if outline else 0), (43, 38, 48) if outline else leaf, outline=None)


def _flower(canvas: Canvas, rng: random.Random) -> None:
    petal = rng.choice(((240, 80, 120), (250, 140, 40), (170, 90, 210)))
    canvas.limb([(0, 0), (0, 0.86)], (60, 150, 60), width=0.12)
    for side in (-1, 1):
        canvas.ellipse(0.28 * side, 0.6, 0.3, 0.13, (60, 150, 60), angle=-28 * side)
    for x, y, _ in around(6, 0.34):
        canvas.circle(x, y - 0.34, 0.24, petal)
    canvas.circle(0, -0.34, 0.24, (255, 220, 60))


def _red_boot(canvas: Canvas, rng: random.Random) -> None:
    _boot(canvas, rng.choice(((214, 50, 50), (190, 40, 50), (232, 70, 60))))


def _blue_boot(canvas: Canvas, rng: random.Random) -> None:
    _boot(canvas, rng.choice(((50, 110, 210), (40, 80, 170), (70, 140, 230))))


def _boot(canvas: Canvas, skin: tuple[int, int, int]) -> None:
    shape = [(-0.7, -0.88), (0.12, -0.88), (0.12, -0.05), (0.5, 0.05), (0.82, 0.25), (0.9, 0.7), (-0.7, 0.7)]
    canvas.polygon(shape, skin)
    canvas.rectangle(-0.78, -0.9, 0.2, -0.66, jitter(skin, 0.5), radius=0.06)
    canvas.rectangle(-0.76, 0.68, 0.93, 0.9, (70, 60, 60), radius=0.08)
    for y in (-0.45, -0.2, 0.05):
        canvas.line([(-0.2, y), (0.1, y)], (255, 255, 255), width=0.08)


def _beside(first: animals.Icon, second: animals.Icon) -> Draw:
    """Both things, facing the same way."""

    def draw(canvas: Canvas, state: str, rng: random.Random) -> None:
        seeds = rng.random(), rng.random()
        mirror, ground = rng.random() < 0.5, rng.choice(((170, 205, 120), (214, 190, 140), (190, 190, 196)))
        canvas.rectangle(-1.7, _GROUND, 1.7, 1.7, ground)
        left, right = _SIZES[state]
        for icon, scale, x, seed in ((first, left, left - 0.96, seeds[0]), (second, right, 0.96 - right, seeds[1])):
            board = canvas.moved(x, _GROUND + 0.04 - 0.9 * scale, scale=scale, mirror=mirror)
            icon(board, random.Random(seed))

    return draw


def _concept(first: str, second: str, draw: Draw, ordinary: str) -> Concept:
    left, right = (f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in (first, second))
    others = tuple(state for state in _SIZES if state != ordinary)
    return Concept(
        f"{first} and {second} size", "Size Scale", (ordinary, *others),
        f"How big is the {first} next to the {second}?", f"Is the {first} {{first}} and not {{second}}?",
        f"{left} that is {{state}} next to {right}", (left, right), draw,
    )  # fmt: skip


CONCEPTS = (
    _concept("elephant", "mouse", _beside(animals.elephant, animals.mouse), _MORE),
    _concept("tree", "flower", _beside(_tree, _flower), _MORE),
    _concept("ant", "dog", _beside(animals.ant, animals.dog), _LESS),
    _concept("mouse", "cow", _beside(animals.mouse, animals.cow), _LESS),
    _concept("apple", "house", _beside(_red_apple, _house), _LESS),
    _concept("red boot", "blue boot", _beside(_red_boot, _blue_boot), _SAME),
    _concept("red apple", "green apple", _beside(_red_apple, _green_apple), _SAME),
    _concept("dog", "cat", _beside(animals.dog, animals.cat), _BIT),
)
