"""Solid, liquid, gas or powder."""

from __future__ import annotations

import random
from collections.abc import Callable

from unprior.benchmarks.microworld.canvas import INK, Canvas, Point, jitter
from unprior.benchmarks.microworld.concepts import Concept, Draw
from unprior.benchmarks.microworld.textures import Tone, arc

_TRIMS = ((60, 110, 210), (220, 60, 70), (60, 160, 90), (150, 80, 180))
_STATES = ("solid", "liquid", "gas", "powder")


def _solid(canvas: Canvas, colour: Tone) -> None:
    canvas.polygon([(-0.32, 0.06), (0.52, 0.06), (0.52, 0.88), (-0.32, 0.88)], colour)
    canvas.polygon([(-0.32, 0.06), (0.52, 0.06), (0.9, -0.26), (0.06, -0.26)], jitter(colour, 0.4))
    canvas.polygon([(0.52, 0.06), (0.9, -0.26), (0.9, 0.56), (0.52, 0.88)], jitter(colour, -0.3))


def _liquid(canvas: Canvas, colour: Tone) -> None:
    puddle = [*arc(0.3, 0.66, 0.64, 0.24, 0, 70, 4), *arc(-0.05, 0.76, 0.42, 0.18, 60, 200, 6),
              *arc(0.1, 0.56, 0.36, 0.12, 200, 300, 4), *arc(0.55, 0.58, 0.4, 0.16, 250, 360, 5)]  # fmt: skip
    canvas.polygon(puddle, colour)
    canvas.line(arc(0.3, 0.66, 0.4, 0.1, 190, 300, 6), (255, 255, 255), width=0.06)
    for x, y, size in ((0.28, 0.2, 1.0), (0.02, -0.32, 0.85), (0.6, -0.42, 0.85)):
        drop: list[Point] = [(x, y - 0.36 * size), *arc(x, y, 0.17 * size, 0.17 * size, -20, 200)]
        canvas.polygon(drop, colour)


def _gas(canvas: Canvas, colour: Tone) -> None:
    puffs = ((0.1, 0.5, 0.22), (0.5, 0.68, 0.15), (0.0, 0.06, 0.28), (0.62, 0.1, 0.28), (0.26, -0.14, 0.34),
             (0.62, -0.4, 0.28), (0.22, -0.54, 0.26), (0.46, -0.66, 0.24))  # fmt: skip
    for x, y, size in puffs:
        canvas.circle(x, y, size + 0.035, INK, outline=None)
    for x, y, size in puffs:
        canvas.circle(x, y, size, colour, outline=None)
    for x, y in ((0.26, -0.12), (0.62, 0.1), (0.62, -0.4), (0.02, 0.06), (0.26, -0.52)):
        canvas.line(arc(x, y, 0.15, 0.15, 170, 330, 8), jitter(colour, -0.4), width=0.05)


def _powder(canvas: Canvas, colour: Tone) -> None:
    slope = [(0.08, 0.14), (0.28, -0.04), (0.48, 0.14), (0.76, 0.62)]
    canvas.polygon([(-0.4, 0.88), (-0.2, 0.62), *slope, (0.95, 0.88)], colour)
    grains = random.Random(7)
    for _ in range(26):
        y = grains.uniform(0.12, 0.82)
        half = 0.08 + 0.62 * y
        x = 0.28 + grains.uniform(-half, half) * 0.86
        canvas.rectangle(x - 0.035, y - 0.035, x + 0.035, y + 0.035, jitter(colour, -0.55), outline=None)
    for x, y in ((0.0, -0.1), (0.28, -0.24), (0.56, -0.08), (-0.3, 0.42), (0.88, 0.42), (0.72, 0.2), (-0.14, 0.2)):
        canvas.rectangle(x - 0.045, y - 0.045, x + 0.045, y + 0.045, colour, width=0.025)


_FORMS: dict[str, Callable[[Canvas, Tone], None]] = {
    "solid": _solid, "liquid": _liquid, "gas": _gas, "powder": _powder,
}  # fmt: skip


def _wrapper(canvas: Canvas, trim: Tone) -> None:
    edge = [(-0.7 + 0.2 * k, -0.95 + (0.12 if k % 2 else 0.0)) for k in range(8)]
    canvas.polygon([*edge, *((x, -y) for x, y in reversed(edge))], trim)
    for x in (-0.36, 0.04):
        for y in (-0.5, -0.1, 0.3):
            canvas.rectangle(x, y, x + 0.34, y + 0.34, (104, 60, 32))


def _crown(canvas: Canvas, trim: Tone) -> None:
    canvas.polygon([(-0.9, -0.5), (-0.45, 0.0), (0, -0.8), (0.45, 0.0), (0.9, -0.5), (0.75, 0.75), (-0.75, 0.75)],
                   (250, 200, 40), width=0.06)  # fmt: skip
    for x, y in ((-0.9, -0.55), (0, -0.85), (0.9, -0.55), (-0.4, 0.45), (0.4, 0.45), (0, 0.45)):
        canvas.circle(x, y, 0.15, trim)


def _carton(canvas: Canvas, trim: Tone) -> None:
    canvas.rectangle(-0.6, -0.35, 0.6, 0.95, (255, 255, 255))
    canvas.polygon([(-0.6, -0.35), (0.6, -0.35), (0.4, -0.75), (-0.4, -0.75)], trim)
    canvas.rectangle(-0.42, -0.97, 0.42, -0.75, trim)
    for x, y, size in ((-0.3, 0.0, 0.2), (0.3, 0.35, 0.24), (-0.25, 0.65, 0.2)):
        canvas.ellipse(x, y, size, size * 0.8, INK, outline=None)


def _jar(canvas: Canvas, trim: Tone) -> None:
    canvas.rectangle(-0.7, -0.6, 0.7, 0.95, (250, 176, 20), radius=0.25)
    canvas.rectangle(-0.6, -0.95, 0.6, -0.6, trim, radius=0.08)
    for side in (-1, 1):
        canvas.ellipse(0.2 * side, -0.02, 0.24, 0.17, (235, 245, 255), angle=-40 * side)
    canvas.ellipse(0, 0.25, 0.42, 0.28, (255, 235, 60))
    for x in (-0.14, 0.14):
        canvas.line([(x, 0.03), (x, 0.47)], INK, width=0.13)


def _orange(canvas: Canvas, trim: Tone) -> None:
    canvas.circle(0, 0.1, 0.85, (255, 145, 20))
    canvas.line([(0, -0.7), (0.05, -0.95)], (96, 62, 34), width=0.12)
    canvas.ellipse(0.35, -0.78, 0.3, 0.14, jitter((60, 150, 60), sum(trim) / 3000), angle=-15)
    for x, y in ((-0.4, 0.2), (0.0, 0.5), (0.35, 0.1), (-0.1, -0.2)):
        canvas.circle(x, y, 0.06, (210, 100, 10), outline=None)


def _bag(canvas: Canvas, trim: Tone) -> None:
    canvas.rectangle(-0.65, -0.8, 0.65, 0.95, (226, 196, 150))
    canvas.rectangle(-0.72, -0.95, 0.72, -0.65, trim)
    canvas.line([(0, 0.75), (0, -0.4)], (150, 100, 30), width=0.09)
    for y in (-0.3, 0.0, 0.3):
        for side in (-1, 1):
            canvas.ellipse(0.2 * side, y, 0.2, 0.1, (245, 190, 50), angle=-45 * side)


def _shaker(canvas: Canvas, trim: Tone) -> None:
    canvas.polygon([(-0.45, -0.4), (0.45, -0.4), (0.65, 0.95), (-0.65, 0.95)], (220, 240, 250))
    canvas.polygon([(-0.57, 0.4), (0.57, 0.4), (0.65, 0.95), (-0.65, 0.95)], (255, 255, 255))
    canvas.polygon([*arc(0, -0.4, 0.48, 0.55, 180, 360)], jitter(trim, -0.1))
    for x, y in ((-0.2, -0.62), (0.2, -0.62), (0, -0.78)):
        canvas.circle(x, y, 0.07, INK, outline=None)


def _chimney(canvas: Canvas, trim: Tone) -> None:
    canvas.rectangle(-0.5, -0.75, 0.5, 0.95, (196, 84, 60))
    for row, y in enumerate((-0.4, -0.05, 0.3, 0.65)):
        canvas.line([(-0.5, y), (0.5, y)], width=0.05)
        for x in (-0.2, 0.2) if row % 2 else (0.0,):
            canvas.line([(x, y), (x, y + 0.33)], width=0.05)
    canvas.rectangle(-0.65, -0.95, 0.65, -0.7, jitter(trim, -0.4))


def _beside(hint: Callable[[Canvas, Tone], None], colour: Tone) -> Draw:
    """A large form of the substance beside a small thing that tells which substance it is."""

    def draw(canvas: Canvas, state: str, rng: random.Random) -> None:
        trim, mirror, shade = rng.choice(_TRIMS), rng.random() < 0.5, rng.choice((-0.08, 0.0, 0.06))
        board = canvas.moved(0, 0, mirror=mirror)
        hint(board.moved(-0.57, -0.46, scale=0.46), trim)
        _FORMS[state](board, jitter(colour, shade))

    return draw


def _concept(thing: str, hint: Callable[[Canvas, Tone], None], colour: Tone, objects: str, ordinary: str) -> Concept:
    return Concept(
        f"{thing} state", "Physical State", (ordinary, *(state for state in _STATES if state != ordinary)),
        f"What state is the {thing} in?", f"Is the {thing} a {{first}} and not a {{second}}?",
        f"{thing} as a {{state}} next to {objects}", (objects,), _beside(hint, colour),
    )  # fmt: skip


CONCEPTS = (
    _concept("chocolate", _wrapper, (112, 64, 34), "a wrapper", "solid"),
    _concept("gold", _crown, (250, 196, 30), "a crown", "solid"),
    _concept("milk", _carton, (250, 250, 250), "a carton", "liquid"),
    _concept("honey", _jar, (240, 160, 20), "a jar", "liquid"),
    _concept("juice", _orange, (255, 130, 20), "an orange", "liquid"),
    _concept("smoke", _chimney, (150, 150, 158), "a chimney", "gas"),
    _concept("flour", _bag, (250, 244, 230), "a bag", "powder"),
    _concept("salt", _shaker, (245, 248, 255), "a salt shaker", "powder"),
)
