"""The colours of well-known things."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, jitter
from unprior.benchmarks.microworld.concepts import Concept, Draw
from unprior.benchmarks.microworld.textures import Tone, arc

_COLOURS: dict[str, Tone] = {
    "red": (222, 32, 38), "orange": (255, 138, 14), "yellow": (255, 220, 20), "green": (48, 166, 62),
    "blue": (34, 96, 228), "purple": (146, 46, 196), "white": (252, 252, 252), "pink": (255, 142, 190),
}  # fmt: skip
_LEAF = (60, 140, 60)
_SCARVES = ((250, 200, 40), (150, 60, 180), (245, 140, 40))
_PLATES = ((255, 255, 255), (200, 210, 225), (215, 190, 160))


def _look(canvas: Canvas, state: str, rng: random.Random) -> tuple[Canvas, Tone]:
    """A board, perhaps mirrored, and the colour of the state, a little lighter or darker."""
    shade, mirror, angle = rng.choice((-0.12, 0.0, 0.1)), rng.random() < 0.5, rng.choice((-8, 0, 8))
    shade = max(shade, -0.03) if state == "white" else shade  # not grey
    return canvas.moved(0, 0, mirror=mirror, angle=angle), jitter(_COLOURS[state], shade)


def _banana(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    plate = rng.choice(_PLATES)
    board.ellipse(0, 0.55, 0.92, 0.3, plate)
    board.limb([(0.84, -0.5), (0.92, -0.8)], (96, 66, 36), width=0.13)
    outer = arc(-0.02, -0.5, 0.94, 1.2, 0, 172, 16)
    board.polygon([*outer, *arc(0.02, -0.5, 0.7, 0.58, 172, 0, 16)], colour)
    board.line(arc(0, -0.5, 0.84, 0.92, 20, 150), jitter(colour, -0.3), width=0.05)
    board.circle(-0.86, -0.36, 0.1, (96, 66, 36))


def _strawberry(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    leaf = jitter(_LEAF, rng.choice((-0.15, 0.0, 0.15)))
    body = [(0, 0.95), (-0.3, 0.74), (-0.62, 0.3), (-0.76, -0.1), (-0.7, -0.4), (-0.4, -0.56), (0, -0.5), (0.4, -0.56),
            (0.7, -0.4), (0.76, -0.1), (0.62, 0.3), (0.3, 0.74)]  # fmt: skip
    board.polygon(body, colour)
    for x, y in ((-0.42, -0.1), (0, -0.1), (0.42, -0.1), (-0.22, 0.22), (0.22, 0.22), (0, 0.55)):
        board.ellipse(x, y, 0.06, 0.09, jitter(colour, -0.65), outline=None)
    board.limb([(0, -0.5), (0.08, -0.88)], leaf, width=0.1)
    board.polygon([(-0.72, -0.62), (-0.3, -0.66), (0, -0.76), (0.3, -0.66), (0.72, -0.62), (0.42, -0.42), (0.26, -0.22),
                   (0.1, -0.42), (0, -0.2), (-0.1, -0.42), (-0.26, -0.22), (-0.42, -0.42)], leaf)  # fmt: skip


def _carrot(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    leaf = jitter(_LEAF, rng.choice((-0.15, 0.0, 0.15)))
    for x in (-0.32, 0.32, 0):
        board.limb([(0, -0.4), (x, -0.85)], leaf, width=0.15)
    half = [(0, -0.53), (0.34, -0.5), (0.56, -0.34), (0.54, -0.1), (0.2, 0.72), (0, 0.95)]
    board.polygon([*half, *((-x, y) for x, y in reversed(half))], colour)
    for left, right, y in ((-0.42, -0.12, -0.2), (0.1, 0.4, 0.0), (-0.3, -0.05, 0.2), (0.02, 0.22, 0.42)):
        board.line([(left, y), (right, y + 0.02)], jitter(colour, -0.4), width=0.045)


def _frog(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    belly = jitter(colour, rng.choice((0.35, 0.5)))
    for side in (-1, 1):
        board.ellipse(0.58 * side, 0.6, 0.34, 0.26, colour, angle=-35 * side)
        board.ellipse(0.5 * side, 0.86, 0.32, 0.1, colour)
    board.ellipse(0, 0.46, 0.54, 0.46, colour)
    board.ellipse(0, 0.56, 0.32, 0.3, belly, outline=None)
    for side in (-1, 1):
        board.circle(0.42 * side, -0.6, 0.28, colour)
    board.ellipse(0, -0.18, 0.82, 0.46, colour)
    for side in (-1, 1):
        board.circle(0.42 * side, -0.6, 0.18, (255, 255, 255))
        board.circle(0.42 * side, -0.58, 0.09, INK, outline=None)
    board.line(arc(0, -0.2, 0.58, 0.26, 15, 165), INK, width=0.06)


def _snowman(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    scarf = rng.choice(_SCARVES)
    for side in (-1, 1):
        board.line([(0.4 * side, 0.2), (0.9 * side, -0.18)], (96, 62, 34), width=0.07)
    board.circle(0, 0.42, 0.54, colour)
    board.circle(0, -0.32, 0.4, colour)
    board.rectangle(-0.34, -0.06, 0.34, 0.1, scarf, radius=0.07)
    board.rectangle(0.12, 0.02, 0.3, 0.4, scarf, radius=0.05)
    board.rectangle(-0.27, -0.95, 0.27, -0.58, (40, 38, 44))
    board.rectangle(-0.46, -0.64, 0.46, -0.53, (40, 38, 44))
    for x, y in ((-0.14, -0.38), (0.14, -0.38), (-0.06, 0.36), (-0.06, 0.6)):
        board.circle(x, y, 0.055, INK, outline=(255, 255, 255), width=0.02)
    board.polygon([(0, -0.3), (0.4, -0.2), (0, -0.16)], (255, 140, 30))


def _truck(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    steel = jitter((170, 176, 186), rng.choice((-0.1, 0.0, 0.3)))
    ladder = board.moved(-0.2, -0.48, angle=-8)
    for y in (-0.09, 0.09):
        ladder.line([(-0.7, y), (0.66, y)], INK, width=0.07)
    for step in range(6):
        ladder.line([(-0.6 + 0.24 * step, -0.09), (-0.6 + 0.24 * step, 0.09)], INK, width=0.06)
    board.polygon(
        [(-0.94, -0.28), (0.3, -0.28), (0.3, -0.5), (0.7, -0.5), (0.92, 0.0), (0.92, 0.5), (-0.94, 0.5)], colour
    )
    board.rectangle(0.36, -0.68, 0.56, -0.5, (70, 200, 255))
    board.polygon([(0.4, -0.38), (0.64, -0.38), (0.8, 0.0), (0.4, 0.0)], (205, 236, 250))
    for x in (-0.8, -0.4):
        board.rectangle(x, -0.14, x + 0.3, 0.14, steel)
    board.rectangle(-0.94, 0.26, 0.92, 0.36, (255, 255, 255))
    for x in (-0.52, 0.5):
        board.circle(x, 0.52, 0.26, (45, 43, 50))
        board.circle(x, 0.52, 0.11, steel)


def _broccoli(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    stalk = jitter(colour, rng.choice((0.35, 0.5)))
    half = [(0.4, -0.1), (0.6, 0.1), (0.24, 0.4), (0.2, 0.92)]
    board.polygon([*half, *((-x, y) for x, y in reversed(half))], stalk)
    for x, y, size in ((-0.58, -0.08, 0.34), (0.58, -0.08, 0.34), (-0.36, -0.46, 0.36), (0.36, -0.46, 0.36),
                       (0, -0.62, 0.34), (0, -0.1, 0.38)):  # fmt: skip
        board.circle(x, y, size, colour)
    for x, y in ((-0.6, -0.1), (-0.36, -0.5), (0, -0.66), (0.36, -0.5), (0.6, -0.1), (-0.1, -0.14), (0.14, 0.02)):
        board.line(arc(x, y, 0.12, 0.12, 180, 340, 6), jitter(colour, -0.45), width=0.05)


def _pig(canvas: Canvas, state: str, rng: random.Random) -> None:
    board, colour = _look(canvas, state, rng)
    snout = jitter(colour, rng.choice((-0.15, -0.25)))
    board.ellipse(0, 0.06, 0.86, 0.82, colour)
    for side in (-1, 1):
        ear = ((0.2, -0.66), (0.46, -0.9), (0.8, -0.92), (0.92, -0.66), (0.88, -0.3), (0.74, -0.12), (0.5, -0.36))
        board.polygon([(x * side, y) for x, y in ear], snout)
    board.ellipse(0, 0.3, 0.42, 0.3, snout)
    for side in (-1, 1):
        board.ellipse(0.15 * side, 0.3, 0.08, 0.13, INK, outline=None)
        board.circle(0.32 * side, -0.2, 0.1, INK, outline=None)
    board.line(arc(0, 0.62, 0.24, 0.12, 10, 170), INK, width=0.05)


def _concept(thing: str, draw: Draw, *colours: str) -> Concept:
    return Concept(
        f"{thing} color", "Color", colours, f"What color is the {thing}?",
        f"Is the {thing} {{first}} and not {{second}}?", f"a {{state}} {thing}", (f"a {thing}",), draw,
    )  # fmt: skip


CONCEPTS = (
    _concept("banana", _banana, "yellow", "blue", "red", "purple"),
    _concept("strawberry", _strawberry, "red", "blue", "yellow", "purple"),
    _concept("carrot", _carrot, "orange", "blue", "green", "white"),
    _concept("frog", _frog, "green", "red", "blue", "white"),
    _concept("snowman", _snowman, "white", "green", "red", "blue"),
    _concept("fire truck", _truck, "red", "green", "blue", "yellow"),
    _concept("broccoli", _broccoli, "green", "pink", "blue", "orange"),
    _concept("pig", _pig, "pink", "green", "blue", "yellow"),
)
