"""Things that glow, are dark, let light through or mirror it."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.canvas import INK, Canvas
from unprior.benchmarks.microworld.concepts import Concept, Draw
from unprior.benchmarks.microworld.textures import Tone, arc, lustre

_WALLS: tuple[tuple[Tone, Tone], ...] = (
    ((240, 130, 150), (255, 236, 236)), ((110, 190, 130), (236, 250, 236)), ((176, 140, 220), (244, 236, 252)),
)  # fmt: skip
_TRIMS = ((176, 120, 60), (90, 96, 110), (200, 70, 70))
_STATES = ("glowing", "dark", "see-through", "mirror-like")


def _wall(canvas: Canvas, rng: random.Random) -> Tone:
    """A chequered wall behind the thing; gives the colour of the fittings."""
    dark, light = rng.choice(_WALLS)
    trim = rng.choice(_TRIMS)
    canvas.rectangle(-1.8, -1.8, 1.8, 1.8, light, outline=None)
    for row in range(10):
        for column in range(row % 2, 10, 2):
            x, y = -1.8 + 0.36 * column, -1.8 + 0.36 * row
            canvas.rectangle(x, y, x + 0.36, y + 0.36, dark, outline=None)
    return trim


def _bulb(canvas: Canvas, state: str, rng: random.Random) -> None:
    _wall(canvas, rng)
    lustre(canvas, [*arc(0, -0.24, 0.54, 0.54, 125, 415, 12), (0.22, 0.44), (-0.22, 0.44)], state)
    canvas.rectangle(-0.24, 0.42, 0.24, 0.74, (150, 154, 164), radius=0.04)
    for y in (0.53, 0.64):
        canvas.line([(-0.24, y), (0.24, y)], width=0.045)
    canvas.polygon([(-0.14, 0.74), (0.14, 0.74), (0.07, 0.86), (-0.07, 0.86)], INK)


def _moon(canvas: Canvas, state: str, rng: random.Random) -> None:
    _wall(canvas, rng)
    board = canvas.moved(0.05, 0, mirror=rng.random() < 0.5)
    lustre(board, [*arc(0, 0, 0.72, 0.74, -60, -300, 12), *arc(0.38, 0, 0.46, 0.6, 95, 265, 7)], state)


def _lantern(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim = _wall(canvas, rng)
    canvas.line(arc(0, -0.56, 0.26, 0.3, 180, 360), width=0.07)
    lustre(canvas, [(-0.4, -0.36), (0.4, -0.36), (0.5, 0.52), (-0.5, 0.52)], state)
    canvas.polygon([(-0.22, -0.66), (0.22, -0.66), (0.54, -0.34), (-0.54, -0.34)], trim)
    canvas.rectangle(-0.6, 0.5, 0.6, 0.74, trim, radius=0.05)


def _window(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim = _wall(canvas, rng)
    lustre(canvas, [(-0.56, -0.66), (0.56, -0.66), (0.56, 0.6), (-0.56, 0.6)], state)
    frame = [(-0.56, -0.66), (0.56, -0.66), (0.56, 0.6), (-0.56, 0.6)]
    canvas.polygon(frame, None, width=0.19)
    canvas.polygon(frame, None, outline=trim, width=0.13)
    canvas.limb([(0, -0.62), (0, 0.56)], trim, width=0.08)
    canvas.rectangle(-0.74, 0.58, 0.74, 0.74, trim)


def _glass(canvas: Canvas, state: str, rng: random.Random) -> None:
    _wall(canvas, rng)
    straw = rng.choice(((220, 50, 60), (40, 110, 220), (250, 160, 30)))
    side = rng.choice((-1, 1))
    lustre(canvas, [(-0.5, -0.56), (0.5, -0.56), (0.38, 0.74), (-0.38, 0.74)], state)
    canvas.ellipse(0, -0.56, 0.5, 0.1, None, width=0.05)
    canvas.limb([(0.12 * side, -0.54), (0.36 * side, -0.9)], straw, width=0.11)


def _mirror(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim = _wall(canvas, rng)
    lustre(canvas, arc(0, -0.2, 0.5, 0.6, 0, 330, 11), state)
    canvas.limb([(0, 0.46), (0, 0.88)], trim, width=0.18)
    ring = arc(0, -0.2, 0.54, 0.64, 0, 330, 11)
    canvas.polygon(ring, None, width=0.2)
    canvas.polygon(ring, None, outline=trim, width=0.13)


def _hat(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim = _wall(canvas, rng)
    half = [(0.46, -0.72), (0.42, 0.36), (0.8, 0.36), (0.8, 0.6)]
    lustre(canvas, [*half, *((-x, y) for x, y in reversed(half))], state)
    canvas.rectangle(-0.41, 0.14, 0.41, 0.36, trim)


def _boot(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim = _wall(canvas, rng)
    board = canvas.moved(0, 0, mirror=rng.random() < 0.5)
    lustre(
        board,
        [(-0.46, -0.66), (0.1, -0.66), (0.12, 0.04), (0.5, 0.14), (0.66, 0.36), (0.66, 0.54), (-0.5, 0.54)],
        state,
    )
    board.rectangle(-0.54, 0.5, 0.7, 0.68, trim, radius=0.04)
    board.rectangle(-0.52, -0.72, 0.16, -0.54, trim, radius=0.05)


def _concept(thing: str, draw: Draw, ordinary: str) -> Concept:
    return Concept(
        f"{thing} light", "Luminescence/Transparency", (ordinary, *(state for state in _STATES if state != ordinary)),
        f"How does the {thing} look?", f"Is the {thing} {{first}} and not {{second}}?", f"a {{state}} {thing}",
        (f"a {thing}",), draw,
    )  # fmt: skip


CONCEPTS = (
    _concept("light bulb", _bulb, "glowing"),
    _concept("moon", _moon, "glowing"),
    _concept("lantern", _lantern, "glowing"),
    _concept("window", _window, "see-through"),
    _concept("drinking glass", _glass, "see-through"),
    _concept("mirror", _mirror, "mirror-like"),
    _concept("top hat", _hat, "dark"),
    _concept("boot", _boot, "dark"),
)
