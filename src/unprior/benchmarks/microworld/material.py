"""What well-known things are made of."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, around
from unprior.benchmarks.microworld.concepts import Concept, Draw
from unprior.benchmarks.microworld.textures import arc, material

_TRIMS = ((250, 200, 50), (70, 90, 170), (60, 140, 110))
_SHADES = (-0.12, 0.0, 0.1)


def _sword(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim, shade, angle = rng.choice(_TRIMS), rng.choice(_SHADES), rng.choice((-28, 0, 28))
    board = canvas.moved(0, 0, angle=angle)
    board.limb([(0, 0.5), (0, 0.84)], (84, 56, 40), width=0.16)
    board.circle(0, 0.86, 0.11, trim)
    material(board, [(0, -0.95), (0.24, -0.64), (0.24, 0.42), (-0.24, 0.42), (-0.24, -0.64)], state, shade)
    board.rectangle(-0.56, 0.38, 0.56, 0.56, trim, radius=0.08)


def _key(canvas: Canvas, state: str, rng: random.Random) -> None:
    shade, angle, mirror = rng.choice(_SHADES), rng.choice((-25, 0, 25)), rng.random() < 0.5
    board = canvas.moved(0, 0, angle=angle, mirror=mirror)
    hole = [(x, y - 0.45) for x, y, _ in around(24, 0.22)]
    teeth = [(0.15, 0.28), (0.52, 0.28), (0.52, 0.5), (0.15, 0.5), (0.15, 0.66), (0.44, 0.66), (0.44, 0.92)]
    shaft = [(0.15, 0.0), *teeth, (-0.15, 0.92), (-0.15, 0.0)]
    rim = [*arc(0, -0.45, 0.5, 0.5, 107, 270, 14), *arc(0, -0.45, 0.5, 0.5, 270, 433, 14)]
    bridge = [*rim[:15], *reversed(hole), hole[-1], *rim[14:], *shaft]
    material(board, bridge, state, shade, outlined=False)
    board.polygon([*rim, *shaft], None, width=0.045)
    board.polygon(hole, None, width=0.045)


def _table(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim, shade, x = rng.choice(_TRIMS), rng.choice(_SHADES), rng.choice((-0.45, 0.0, 0.45))
    top = [(-0.94, -0.3), (0.94, -0.3), (0.94, 0.1), (0.8, 0.1), (0.8, 0.92), (0.46, 0.92), (0.46, 0.1), (-0.46, 0.1),
           (-0.46, 0.92), (-0.8, 0.92), (-0.8, 0.1), (-0.94, 0.1)]  # fmt: skip
    canvas.polygon([(x - 0.2, -0.72), (x + 0.2, -0.72), (x + 0.13, -0.31), (x - 0.13, -0.31)], trim)
    canvas.line([(x, -0.72), (x, -0.9)], (60, 140, 60), width=0.06)
    canvas.circle(x, -0.88, 0.09, (255, 255, 255))
    material(canvas, top, state, shade)


def _chair(canvas: Canvas, state: str, rng: random.Random) -> None:
    shade, mirror = rng.choice(_SHADES), rng.random() < 0.5
    board = canvas.moved(0, 0, mirror=mirror)
    material(board, [(-0.66, -0.94), (-0.32, -0.94), (-0.32, -0.06), (0.68, -0.06), (0.68, 0.92), (0.38, 0.92),
                     (0.38, 0.28), (-0.36, 0.28), (-0.36, 0.92), (-0.66, 0.92)], state, shade)  # fmt: skip


def _bottle(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim, shade = rng.choice(_TRIMS), rng.choice(_SHADES)
    canvas.rectangle(-0.15, -0.94, 0.15, -0.72, (150, 104, 60))
    body = [(-0.17, -0.78), (0.17, -0.78), (0.17, -0.42), (0.44, -0.12), (0.46, 0.84), (0.38, 0.93), (-0.38, 0.93),
            (-0.46, 0.84), (-0.44, -0.12), (-0.17, -0.42)]  # fmt: skip
    material(canvas, body, state, shade)
    canvas.rectangle(-0.2, -0.8, 0.2, -0.68, trim)


def _window(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim, shade, bars = rng.choice(((255, 255, 255), *_TRIMS)), rng.choice(_SHADES), rng.choice((1, 2))
    canvas.rectangle(-0.8, -0.92, 0.8, 0.8, trim)
    material(canvas, [(-0.66, -0.78), (0.66, -0.78), (0.66, 0.66), (-0.66, 0.66)], state, shade)
    canvas.limb([(0, -0.76), (0, 0.64)], trim, width=0.1)
    if bars == 2:
        canvas.limb([(-0.64, -0.06), (0.64, -0.06)], trim, width=0.1)
    canvas.rectangle(-0.92, 0.74, 0.92, 0.92, trim)


def _sweater(canvas: Canvas, state: str, rng: random.Random) -> None:
    trim, shade = rng.choice(_TRIMS), rng.choice(_SHADES)
    half = [(0.22, -0.8), (0.52, -0.68), (0.94, 0.28), (0.66, 0.44), (0.46, 0.02), (0.48, 0.84)]
    material(canvas, [*half, *((-x, y) for x, y in reversed(half)), (-0.12, -0.66), (0.12, -0.66)], state, shade)
    canvas.line([(-0.24, -0.8), (-0.12, -0.64), (0.12, -0.64), (0.24, -0.8)], INK, width=0.18)
    canvas.line([(-0.24, -0.8), (-0.12, -0.64), (0.12, -0.64), (0.24, -0.8)], trim, width=0.12)
    canvas.rectangle(-0.5, 0.76, 0.5, 0.92, trim, radius=0.04)


def _house(canvas: Canvas, state: str, rng: random.Random) -> None:
    roof, door = rng.choice(((62, 70, 100), (50, 100, 90), (90, 80, 90))), rng.choice(((250, 200, 50), (40, 150, 130)))
    shade, mirror = rng.choice(_SHADES), rng.random() < 0.5
    board = canvas.moved(0, 0, mirror=mirror)
    material(board, [(-0.76, -0.3), (0.76, -0.3), (0.76, 0.92), (-0.76, 0.92)], state, shade)
    board.polygon([(0, -0.95), (0.95, -0.24), (-0.95, -0.24)], roof)
    board.rectangle(-0.56, 0.34, -0.2, 0.92, door)
    board.rectangle(0.14, 0.02, 0.54, 0.4, (255, 250, 225))
    board.line([(0.34, 0.02), (0.34, 0.4)], width=0.04)
    board.line([(0.14, 0.21), (0.54, 0.21)], width=0.04)


def _concept(thing: str, draw: Draw, *materials: str) -> Concept:
    return Concept(
        f"{thing} material", "Material", materials, f"What is the {thing} made of?",
        f"Is the {thing} made of {{first}} and not {{second}}?", f"a {thing} made of {{state}}", (f"a {thing}",), draw,
    )  # fmt: skip


CONCEPTS = (
    _concept("sword", _sword, "metal", "wool", "brick", "wood"),
    _concept("key", _key, "metal", "wool", "brick", "wood"),
    _concept("table", _table, "wood", "brick", "glass", "wool"),
    _concept("chair", _chair, "wood", "brick", "glass", "wool"),
    _concept("bottle", _bottle, "glass", "wood", "brick", "wool"),
    _concept("window", _window, "glass", "brick", "wool", "wood"),
    _concept("sweater", _sweater, "wool", "metal", "wood", "brick"),
    _concept("house", _house, "brick", "glass", "wool", "metal"),
)
