"""Places that fill the whole board, each with something in it: a scene draws the place around what stands in it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from unprior.benchmarks.microworld.canvas import Canvas, Point, around

Actor = Callable[[Canvas], None]
"""Draws whatever is in the scene on a board whose ground is at y = 0.9."""
Scene = Callable[[Canvas, Actor, random.Random], None]

_FAR = 1.7
_WHITE = (255, 255, 255)
_LEAF = [(-0.22, 0.0), (-0.08, -0.1), (0.1, -0.09), (0.22, 0.0), (0.1, 0.09), (-0.08, 0.1)]
_PUFFS = ((-0.55, 0.1, 0.36, 90, 190), (0.0, -0.15, 0.52, 190, 160), (0.55, 0.1, 0.36, -100, 190))
_CLOUD = [
    (x + dx, y + dy) for x, y, size, start, sweep in _PUFFS for dx, dy, _ in around(6, size, start=start, sweep=sweep)
]


def water(canvas: Canvas, actor: Actor, rng: random.Random) -> None:
    """Under water: waves above, weed and sand below, bubbles."""
    lift = rng.uniform(-0.05, 0.05)
    _fill(canvas, (200, 236, 250))
    canvas.polygon([*_waves(-0.72 + lift, 0.1), (_FAR, _FAR), (-_FAR, _FAR)], (30, 110, 190), outline=None)
    canvas.line(_waves(-0.72 + lift, 0.1), _WHITE, width=0.09)
    canvas.polygon([*_waves(0.86, 0.05), (_FAR, _FAR), (-_FAR, _FAR)], (226, 196, 120), outline=None)
    for x in (-0.86, -0.68, 0.7, 0.88):
        sway = [(x + 0.07 * math.sin(3 * k), 1.0 - 0.25 * k) for k in range(5 if abs(x) > 0.8 else 3)]
        canvas.line(sway, (30, 160, 70), width=0.11)
    actor(canvas.moved(0, 0.08, scale=0.66))
    canvas.polygon([*_waves(0.42, 0.07), (_FAR, _FAR), (-_FAR, _FAR)], (30, 110, 190, 110), outline=None)
    for x, y, size in ((0.78, -0.42, 0.09), (0.86, -0.16, 0.06), (-0.8, -0.38, 0.08)):
        canvas.circle(x, y + lift, size, (190, 230, 255))


def sky(canvas: Canvas, actor: Actor, rng: random.Random) -> None:
    """High up in a blue sky between clouds, the sun in a corner."""
    shift = rng.uniform(-0.12, 0.12)
    _fill(canvas, (96, 186, 250))
    canvas.circle(-0.86, -0.86, 0.36, (255, 220, 60))
    cloud(canvas.moved(0.9, -0.9 + shift, scale=0.34))
    cloud(canvas.moved(-0.85, 0.3 + shift, scale=0.34))
    for y in (-0.2, 0.02, 0.24):
        canvas.line([(-1.0, y - 0.08), (-0.72, y - 0.1)], _WHITE, width=0.05)
    actor(canvas.moved(0.06, -0.1, scale=0.64, angle=-12))
    cloud(canvas.moved(-0.5 + shift, 0.86, scale=0.5))
    cloud(canvas.moved(0.62 + shift, 0.8, scale=0.46))


def tree(canvas: Canvas, actor: Actor, rng: random.Random) -> None:
    """On a thick branch of a tree, leaves all around."""
    leaf = rng.choice(((60, 150, 60), (90, 170, 50), (40, 130, 80)))
    bark = (130, 84, 50)
    _fill(canvas, (246, 240, 214))
    canvas.polygon([(-1.3, -_FAR), (-0.7, -_FAR), (-0.72, 0.4), (-0.6, _FAR), (-1.35, _FAR)], bark)
    canvas.polygon([(-0.8, 0.42), (1.5, 0.56), (1.5, 0.72), (-0.8, 0.84)], bark)
    canvas.line([(-0.72, 0.48), (-0.72, 0.8)], bark, width=0.1)
    for x, y, size in ((-0.9, -0.95, 0.42), (-0.25, -1.05, 0.38), (0.35, -1.08, 0.38), (0.95, -0.9, 0.42)):
        canvas.circle(x, y, size, leaf)
    actor(canvas.moved(0.1, -0.04, scale=0.66))
    for x, y in ((-0.5, 0.85), (0.0, 0.84), (0.55, 0.8), (0.9, 0.45), (-0.78, 0.2), (-0.8, -0.3), (0.92, 0.9)):
        canvas.moved(x, y, angle=25 if x < 0.3 else -30).polygon(_LEAF, leaf)


def grass(canvas: Canvas, actor: Actor, rng: random.Random) -> None:
    """A green meadow with flowers."""
    bloom = rng.choice(((250, 90, 110), (255, 220, 60), (250, 250, 255)))
    _fill(canvas, (238, 232, 206))
    canvas.ellipse(-0.7, 0.1, 1.1, 0.6, (140, 205, 100))
    canvas.ellipse(0.8, 0.1, 1.1, 0.5, (140, 205, 100))
    canvas.rectangle(-_FAR, 0.1, _FAR, _FAR, (92, 184, 70))
    actor(canvas.moved(0, -0.02, scale=0.74))
    blades = [(-_FAR + 0.14 * k, 0.88 if k % 2 else 0.58) for k in range(25)]
    canvas.polygon([*blades, (_FAR, _FAR), (-_FAR, _FAR)], (60, 150, 50))
    for x in (-0.8, -0.3, 0.3, 0.8):
        canvas.circle(x, 0.84, 0.09, bloom)


def ice(canvas: Canvas, actor: Actor, rng: random.Random) -> None:
    """Snow, icebergs and a floor of ice."""
    shift = rng.uniform(-0.12, 0.12)
    _fill(canvas, (150, 140, 190))
    for x, height in ((-0.75 + shift, 0.95), (0.8 + shift, 0.75)):
        canvas.polygon([(x - 0.6, 0.3), (x - 0.25, 0.3 - height), (x + 0.1, 0.4 - height), (x + 0.6, 0.3)], _WHITE)
        canvas.polygon([(x - 0.25, 0.3 - height), (x + 0.1, 0.4 - height), (x, 0.3)], (190, 226, 245))
    canvas.rectangle(-_FAR, 0.26, _FAR, _FAR, (214, 240, 252))
    for points in (
        [(-1.2, 0.5), (-0.6, 0.62), (-0.7, 0.95)],
        [(1.2, 0.45), (0.6, 0.7), (0.8, 1.1)],
        [(-0.2, 1.1), (0.1, 0.8)],
    ):
        canvas.line(points, (110, 176, 220), width=0.06)
    for x, y in ((-0.35, -0.85), (0.3, -0.8), (0.9, -0.75), (-0.9, -0.85), (0.62, -0.5), (-0.02, -0.95)):
        canvas.circle(x, y, 0.07, _WHITE, outline=None)
    canvas.ellipse(0, 0.64, 0.66, 0.12, (150, 200, 230), outline=None)
    actor(canvas.moved(0, 0.0, scale=0.72))


def bed(canvas: Canvas, actor: Actor, rng: random.Random) -> None:
    """In bed: head end and pillow on the right, a blanket on top."""
    blanket = rng.choice(((220, 70, 90), (150, 80, 170), (240, 140, 60)))
    wood = (150, 96, 56)
    _fill(canvas, (250, 226, 200))
    canvas.rectangle(-_FAR, 0.84, _FAR, _FAR, (190, 150, 120))
    canvas.rectangle(0.74, -0.6, 0.95, 0.95, wood, radius=0.06)
    canvas.rectangle(-0.95, 0.0, -0.78, 0.95, wood, radius=0.06)
    canvas.rectangle(-0.8, 0.42, 0.78, 0.8, _WHITE, radius=0.08)
    canvas.ellipse(0.52, 0.02, 0.24, 0.48, _WHITE, angle=14)
    actor(canvas.moved(-0.02, -0.12, scale=0.7))
    cover = [(-0.82, 0.3), (-0.55, 0.12), (-0.2, 0.16), (0.16, 0.12), (0.36, 0.3), (0.4, 0.78), (-0.82, 0.78)]
    canvas.polygon(cover, blanket)
    for x in (-0.6, -0.24, 0.12):
        for y in (0.34, 0.6):
            canvas.circle(x, y, 0.08, _WHITE, outline=None)


def cloud(canvas: Canvas) -> None:
    """A white cloud."""
    canvas.polygon(_CLOUD, _WHITE, width=0.07)


def _fill(canvas: Canvas, colour: tuple[int, int, int]) -> None:
    canvas.rectangle(-_FAR, -_FAR, _FAR, _FAR, colour, outline=None)


def _waves(height: float, swing: float) -> Sequence[Point]:
    return [(-_FAR + 0.17 * k, height + swing * math.sin(1.9 * k)) for k in range(21)]
