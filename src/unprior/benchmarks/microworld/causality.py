"""What follows from a cause."""

from __future__ import annotations

import random
from functools import partial

from unprior.benchmarks.microworld import things
from unprior.benchmarks.microworld.canvas import INK, Canvas, around, jitter
from unprior.benchmarks.microworld.concepts import Concept
from unprior.benchmarks.microworld.things import Icon

_EFFECTS: dict[str, Icon] = {
    "a puddle": things.puddle,
    "a flame": things.flame,
    "a flower": things.flower,
    "broken glass": things.broken_glass,
    "ice": things.ice,
    "smoke": things.smoke,
}


def _lead(canvas: Canvas, state: str, rng: random.Random, *, cause: Icon) -> None:
    """The cause at the top left, a bent arrow, and the effect at the bottom right."""
    looks = random.Random(rng.random())
    cause(canvas.moved(-0.46, -0.44, scale=0.52), rng)
    _EFFECTS[state](canvas.moved(0.42, 0.41, scale=0.54), looks)
    canvas.line([(0.24, -0.66), (0.6, -0.66), (0.6, -0.44)], INK, width=0.13)
    canvas.polygon([(0.36, -0.46), (0.84, -0.46), (0.6, -0.2)], INK)


def _rain(canvas: Canvas, rng: random.Random) -> None:
    cloud = rng.choice(((130, 140, 160), (160, 170, 186), (110, 120, 142)))
    for x in (-0.55, 0.0, 0.55):
        for y in (0.38, 0.8):
            things.drop(canvas.moved(x - 0.14 * (y > 0.5), y, scale=0.2))
    puffs = ((-0.55, -0.22, 0.38), (0.55, -0.2, 0.4), (-0.15, -0.5, 0.44), (0.25, -0.4, 0.4))
    for grow, colour in ((0.05, INK), (0.0, cloud)):
        for x, y, radius in puffs:
            canvas.circle(x, y, radius + grow, colour, outline=None)
        canvas.rectangle(-0.55, -0.3 - grow, 0.55, 0.17 + grow, colour, outline=None)


def _match(canvas: Canvas, rng: random.Random) -> None:
    head = rng.choice(((220, 40, 40), (160, 40, 50), (40, 90, 190)))
    canvas.limb([(-0.75, 0.8), (0.45, -0.45)], (244, 208, 140), width=0.22)
    canvas.ellipse(0.5, -0.5, 0.34, 0.25, head, angle=-46, width=0.06)
    for x, y, _ in around(4, 1.0, start=-110, sweep=130):
        canvas.line([(0.5 + 0.42 * x, -0.5 + 0.42 * y), (0.5 + 0.6 * x, -0.5 + 0.6 * y)], head, width=0.07)


def _seed(canvas: Canvas, rng: random.Random) -> None:
    soil = rng.choice(((120, 76, 44), (94, 60, 40), (140, 92, 56)))
    canvas.rectangle(-0.95, -0.15, 0.95, 0.8, soil, radius=0.1, width=0.06)
    canvas.ellipse(0, 0.33, 0.26, 0.34, (250, 220, 130), width=0.06)
    canvas.limb([(0, 0.1), (0.03, -0.5)], (80, 180, 70), width=0.1)
    for side in (-1, 1):
        canvas.ellipse(0.03 + 0.26 * side, -0.6, 0.28, 0.14, (80, 180, 70), angle=-25 * side, width=0.05)


def _ball(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(things.PAINTS)
    for y in (-0.2, 0.16, 0.52):
        canvas.line([(-1.0, y - 0.12), (-0.72, y - 0.04)], INK, width=0.08)
    canvas.polygon([(0.3, -0.95), (0.95, -0.8), (0.95, 0.98), (0.3, 0.83)], (150, 100, 60), width=0.06)
    canvas.polygon([(0.43, -0.76), (0.82, -0.67), (0.82, 0.79), (0.43, 0.7)], (206, 238, 250), width=0.05)
    canvas.circle(-0.12, 0.16, 0.5, colour, width=0.06)
    canvas.ellipse(-0.12, 0.16, 0.5, 0.14, (255, 255, 255), angle=20, width=0.05)


def _freezer(canvas: Canvas, rng: random.Random) -> None:
    body = rng.choice(((240, 244, 248), (200, 214, 230), (190, 226, 220)))
    canvas.rectangle(-0.62, -0.97, 0.62, 0.97, body, radius=0.1, width=0.06)
    canvas.line([(-0.62, 0.3), (0.62, 0.3)], width=0.06)
    for top, bottom in ((-0.3, 0.14), (0.46, 0.76)):
        canvas.line([(0.44, top), (0.44, bottom)], (90, 98, 112), width=0.11)
    for x, y, _ in around(3, 0.36, sweep=240):
        canvas.line([(-0.1 - x, -0.4 - y), (-0.1 + x, -0.4 + y)], (30, 110, 220), width=0.1)


def _chimney(canvas: Canvas, rng: random.Random) -> None:
    brick = rng.choice(((190, 74, 56), (170, 92, 66), (150, 60, 60)))
    canvas.rectangle(-0.42, -0.75, 0.42, 0.6, brick, width=0.06)
    for k, y in enumerate((-0.42, -0.14, 0.14)):
        canvas.line([(-0.4, y), (0.4, y)], jitter(brick, 0.6), width=0.05)
        canvas.line([(0.16 - 0.32 * (k % 2), y), (0.16 - 0.32 * (k % 2), y + 0.28)], jitter(brick, 0.6), width=0.05)
    canvas.rectangle(-0.56, -0.95, 0.56, -0.68, jitter(brick, -0.25), width=0.06)
    canvas.polygon([(-0.98, 0.95), (-0.98, 0.7), (0, 0.2), (0.98, 0.7), (0.98, 0.95)], (84, 88, 108), width=0.06)


def _snowman(canvas: Canvas, rng: random.Random) -> None:
    scarf = rng.choice(things.PAINTS)
    for x, y, _ in around(8, 1.0):
        canvas.line([(0.62, -0.62), (0.62 + 0.4 * x, -0.62 + 0.4 * y)], (250, 170, 30), width=0.07)
    canvas.circle(0.62, -0.62, 0.26, (255, 206, 40), width=0.05)
    canvas.circle(-0.2, 0.46, 0.5, (255, 255, 255), width=0.06)
    canvas.circle(-0.2, -0.26, 0.36, (255, 255, 255), width=0.06)
    canvas.limb([(-0.5, 0.04), (0.1, 0.04)], scarf, width=0.14)
    canvas.rectangle(-0.6, -0.62, 0.2, -0.52, INK, outline=None)
    canvas.rectangle(-0.44, -0.98, 0.04, -0.56, INK, outline=None)
    for x in (-0.34, -0.08):
        canvas.circle(x, -0.34, 0.06, INK, outline=None)
    canvas.polygon([(-0.2, -0.26), (0.16, -0.18), (-0.2, -0.12)], (250, 130, 30), outline=None)


def _lighter(canvas: Canvas, rng: random.Random) -> None:
    body = rng.choice(things.PAINTS)
    canvas.rectangle(-0.4, -0.5, 0.24, -0.1, things.STEEL, width=0.06)
    canvas.circle(0.3, -0.42, 0.2, (90, 94, 106), width=0.05)
    canvas.rectangle(-0.5, -0.16, 0.5, 0.95, body, radius=0.12, width=0.06)
    canvas.line([(-0.24, 0.1), (-0.24, 0.7)], jitter(body, 0.5), width=0.12)
    for x in (-0.4, -0.1, 0.2):
        canvas.line([(x, -0.64), (1.5 * x + 0.05, -0.92)], (250, 150, 20), width=0.08)


def _concept(name: str, verb: str, icon: Icon, *states: str) -> Concept:
    thing = "rain" if name == "rain" else f"a {name}"
    return Concept(
        f"{name} effect", "Causality", states,
        f"What does the {name} {verb}?", f"Does the {name} {verb} {{first}} and not {{second}}?",
        f"{thing} that {verb}s {{state}}", ("a cloud" if name == "rain" else thing,),
        partial(_lead, cause=icon),
    )  # fmt: skip


CONCEPTS = (
    _concept("rain", "leave", _rain, "a puddle", "a flame", "smoke", "broken glass"),
    _concept("match", "make", _match, "a flame", "a puddle", "ice", "a flower"),
    _concept("seed", "make", _seed, "a flower", "a flame", "smoke", "broken glass"),
    _concept("ball", "leave", _ball, "broken glass", "a puddle", "ice", "smoke"),
    _concept("freezer", "make", _freezer, "ice", "a flame", "a flower", "broken glass"),
    _concept("chimney", "make", _chimney, "smoke", "a puddle", "ice", "a flower"),
    _concept("snowman", "leave", _snowman, "a puddle", "a flame", "smoke", "a flower"),
    _concept("lighter", "make", _lighter, "a flame", "a puddle", "ice", "broken glass"),
)  # fmt: skip
