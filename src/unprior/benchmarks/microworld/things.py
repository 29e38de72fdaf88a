"""Icons of everyday things, each of which fills the board it is given."""

from __future__ import annotations

import random
from collections.abc import Callable

from unprior.benchmarks.microworld.canvas import INK, Canvas, around, jitter

Icon = Callable[[Canvas, random.Random], None]

STEEL = (168, 178, 192)
WOODS = ((176, 112, 56), (140, 84, 44), (206, 150, 90))
PAINTS = ((206, 52, 58), (40, 104, 190), (36, 140, 84), (232, 150, 30), (130, 70, 170))
WATER = (52, 132, 226)


def ring(canvas: Canvas, x: float, y: float, radius: float, width: float, colour: tuple[int, int, int]) -> None:
    """An outlined ring, e.g. a handle, with a pale middle."""
    canvas.circle(x, y, radius + width / 2, colour, width=0.045)
    canvas.circle(x, y, radius - width / 2, (244, 242, 238), width=0.045)


def hammer(canvas: Canvas, rng: random.Random) -> None:
    """A claw hammer, head on top, with its face to the right."""
    canvas = canvas.moved(0.16, 0.1, scale=0.9)
    canvas.limb([(-0.05, -0.5), (-0.05, 0.9)], rng.choice(PAINTS), width=0.26)
    claw = [(-0.3, -0.92), (-0.75, -0.85), (-0.98, -0.45), (-0.62, -0.58), (-0.3, -0.48)]
    canvas.polygon(claw, (96, 104, 120), width=0.05)
    canvas.rectangle(-0.32, -0.95, 0.4, -0.42, (96, 104, 120), width=0.05)
    canvas.rectangle(0.4, -1.04, 0.72, -0.33, (122, 130, 146), width=0.05)


def knife(canvas: Canvas, rng: random.Random) -> None:
    """A kitchen knife, tip down."""
    blade = [(-0.2, -0.3), (0.2, -0.3), (0.26, 0.45), (0.12, 0.75), (-0.2, 1.0)]
    canvas.polygon(blade, (214, 222, 232), width=0.05)
    canvas.rectangle(-0.22, -1.0, 0.2, -0.26, rng.choice(((60, 50, 50), (120, 60, 36), (170, 40, 46))), radius=0.1)
    for y in (-0.8, -0.5):
        canvas.circle(0, y, 0.06, (230, 230, 230), outline=None)


def scissors(canvas: Canvas, rng: random.Random) -> None:
    """Open scissors, tips down."""
    grip = rng.choice(PAINTS)
    for side in (-1, 1):
        ring(canvas, 0.35 * side, -0.6, 0.25, 0.15, grip)
        canvas.limb([(0.22 * side, -0.38), (-0.02 * side, -0.02)], grip, width=0.15)
    for side in (-1, 1):
        blade = [(0.18 * side, -0.16), (-0.16 * side, -0.04), (-0.5 * side, 1.0), (-0.16 * side, 0.66)]
        canvas.polygon(blade, (206, 214, 226), width=0.05)
    canvas.circle(0, 0.0, 0.09, INK, outline=None)


def key(canvas: Canvas, rng: random.Random) -> None:
    """A key, bit down."""
    metal = rng.choice(((240, 190, 40), (226, 160, 50), (168, 178, 192)))
    canvas.limb([(0, -0.2), (0, 0.92)], metal, width=0.2)
    for y in (0.48, 0.82):
        canvas.rectangle(0.06, y - 0.1, 0.46, y + 0.1, metal, width=0.05)
    canvas.line([(0, 0.3), (0, 0.92)], metal, width=0.16)
    ring(canvas, 0, -0.54, 0.34, 0.22, metal)


def watering_can(canvas: Canvas, rng: random.Random) -> None:
    """A watering can that pours to the right."""
    paint = rng.choice(PAINTS)
    ring(canvas, -0.66, 0.0, 0.32, 0.12, jitter(paint, -0.25))
    canvas.polygon([(0.1, 0.1), (0.68, -0.55), (0.82, -0.42), (0.1, 0.5)], paint)
    canvas.polygon([(0.52, -0.66), (0.68, -0.78), (1.0, -0.36), (0.86, -0.24)], jitter(paint, -0.25))
    canvas.polygon([(-0.62, -0.45), (0.2, -0.45), (0.28, 0.62), (-0.7, 0.62)], paint)


def saw(canvas: Canvas, rng: random.Random) -> None:
    """A hand saw, tip down, teeth to the left."""
    handle = rng.choice((*WOODS[:2], PAINTS[0], PAINTS[1]))
    teeth = [(-0.34 - 0.1 * (k % 2) + 0.02 * k, -0.36 + 0.13 * k) for k in range(11)]
    canvas.polygon([(0.3, -0.36), *teeth, (-0.1, 1.0), (0.06, 1.0)], (206, 214, 226), width=0.05)
    canvas.rectangle(-0.44, -1.0, 0.42, -0.3, handle, radius=0.18, width=0.05)
    canvas.rectangle(-0.18, -0.8, 0.16, -0.52, (240, 240, 236), radius=0.12, width=0.05)


def paintbrush(canvas: Canvas, rng: random.Random) -> None:
    """A paintbrush, wet tip down."""
    paint = rng.choice(PAINTS)
    handle = rng.choice(((236, 190, 110), (200, 140, 80)))
    canvas.polygon([(-0.06, -1.0), (0.06, -1.0), (0.17, -0.5), (0.13, -0.1), (-0.13, -0.1), (-0.17, -0.5)], handle)
    hair = [(-0.24, 0.14), (0.24, 0.14), (0.36, 0.5), (0.24, 0.84), (0.02, 1.02), (-0.24, 0.84), (-0.36, 0.5)]
    canvas.polygon(hair, (120, 80, 50), width=0.05)
    canvas.polygon([(-0.36, 0.5), (-0.12, 0.4), (0.1, 0.54), (0.36, 0.46), *hair[3:6]], paint, width=0.05)
    canvas.rectangle(-0.24, -0.14, 0.24, 0.16, STEEL, width=0.05)


def nail(canvas: Canvas, rng: random.Random) -> None:
    """A big nail, half driven into a block of wood."""
    wood = rng.choice(WOODS)
    canvas.rectangle(-0.13, -0.7, 0.13, 0.4, STEEL, width=0.05)
    canvas.rectangle(-0.46, -0.95, 0.46, -0.68, (132, 142, 158), radius=0.08, width=0.05)
    canvas.rectangle(-0.95, 0.32, 0.95, 0.95, wood, width=0.05)
    for y in (0.52, 0.74):
        canvas.line([(-0.75, y), (-0.1, y + 0.04), (0.7, y - 0.02)], jitter(wood, -0.3), width=0.05)


def bread(canvas: Canvas, rng: random.Random) -> None:
    """A loaf of bread, cut on the right."""
    crust = rng.choice(((214, 136, 50), (196, 116, 44), (226, 156, 76)))
    canvas.rectangle(-0.98, -0.5, 0.5, 0.66, crust, radius=0.3, width=0.05)
    for x in (-0.66, -0.34, -0.02):
        canvas.line([(x, -0.3), (x - 0.12, 0.1)], jitter(crust, -0.4), width=0.07)
    canvas.ellipse(0.52, -0.26, 0.46, 0.32, crust, width=0.05)
    canvas.rectangle(0.14, -0.26, 0.9, 0.7, crust, radius=0.1, width=0.05)
    canvas.ellipse(0.52, -0.26, 0.36, 0.22, (255, 238, 196), outline=None)
    canvas.rectangle(0.24, -0.26, 0.8, 0.6, (255, 238, 196), radius=0.06, outline=None)


def paper(canvas: Canvas, rng: random.Random) -> None:
    """A sheet of paper with lines on it."""
    ink = rng.choice(((70, 110, 200), (110, 110, 120), (200, 80, 90)))
    sheet = [(-0.72, -0.95), (0.36, -0.95), (0.72, -0.58), (0.72, 0.95), (-0.72, 0.95)]
    canvas.polygon(sheet, (255, 255, 255), width=0.05)
    canvas.polygon([(0.36, -0.95), (0.36, -0.58), (0.72, -0.58)], (206, 212, 222), width=0.05)
    for y in (-0.5, -0.18, 0.14, 0.46, 0.74):
        canvas.line([(-0.5, y), (0.16 if y < -0.3 else 0.5, y)], ink, width=0.07)


def lock(canvas: Canvas, rng: random.Random) -> None:
    """A closed padlock."""
    metal = rng.choice(((244, 190, 44), (226, 150, 50), (110, 122, 140)))
    shackle = [(-0.4, 0.0), (-0.4, -0.4), (-0.28, -0.68), (0, -0.8), (0.28, -0.68), (0.4, -0.4), (0.4, 0.0)]
    canvas.limb(shackle, STEEL, width=0.18)
    canvas.rectangle(-0.74, -0.16, 0.74, 0.95, metal, radius=0.14, width=0.05)
    canvas.circle(0, 0.28, 0.19, INK, outline=None)
    canvas.polygon([(0, 0.2), (0.15, 0.72), (-0.15, 0.72)], INK, outline=None)


def plant(canvas: Canvas, rng: random.Random) -> None:
    """A green plant in a pot."""
    pot = rng.choice(((206, 98, 58), (70, 110, 190), (230, 180, 60)))
    green = rng.choice(((40, 160, 70), (84, 170, 50)))
    for x, y, angle in around(5, 0.56, start=-168, sweep=156):
        canvas.ellipse(x, 0.1 + y, 0.44, 0.2, green, angle=angle, width=0.05)
    canvas.polygon([(-0.5, 0.3), (0.5, 0.3), (0.36, 0.95), (-0.36, 0.95)], pot, width=0.05)
    canvas.rectangle(-0.6, 0.12, 0.6, 0.38, pot, width=0.05)


def log(canvas: Canvas, rng: random.Random) -> None:
    """A log that lies on its side, its rings to the right."""
    bark = rng.choice(((116, 76, 48), (96, 66, 50), (132, 86, 46)))
    canvas.rectangle(-0.98, -0.5, 0.5, 0.62, bark, radius=0.2, width=0.05)
    for y in (-0.22, 0.08, 0.38):
        canvas.line([(-0.78 + 0.3 * y, y), (0.02 + 0.2 * y, y)], jitter(bark, -0.4), width=0.06)
    canvas.ellipse(0.56, 0.06, 0.4, 0.58, (236, 196, 136), width=0.05)
    for size in (0.66, 0.3):
        canvas.ellipse(0.56, 0.06, 0.4 * size, 0.58 * size, None, outline=(160, 104, 56), width=0.06)


def painting(canvas: Canvas, rng: random.Random) -> None:
    """A painting of a sunny hill on an easel."""
    wood = rng.choice(WOODS)
    for x in (-0.6, 0.6):
        canvas.limb([(0.15 * x, -0.9), (x, 0.95)], wood, width=0.1)
    canvas.rectangle(-0.9, -0.72, 0.9, 0.5, (130, 200, 250), width=0.07)
    canvas.polygon([(-0.87, 0.47), (-0.87, 0.2), (-0.2, -0.12), (0.87, 0.3), (0.87, 0.47)], (60, 160, 70), outline=None)
    canvas.circle(0.45, -0.36, 0.2, (255, 206, 40), outline=None)
    canvas.rectangle(-0.98, 0.48, 0.98, 0.64, wood, width=0.05)


def puddle(canvas: Canvas, rng: random.Random) -> None:
    """A puddle of water with splashing drops."""
    water = rng.choice((WATER, (40, 110, 206), (70, 150, 220)))
    shape = [(-0.96, 0.44), (-0.66, 0.2), (-0.2, 0.12), (0.2, 0.02), (0.7, 0.16), (0.96, 0.46), (0.76, 0.78),
             (0.3, 0.8), (-0.1, 0.94), (-0.68, 0.82)]  # fmt: skip
    canvas.polygon(shape, water, width=0.06)
    canvas.ellipse(-0.2, 0.46, 0.4, 0.1, jitter(water, 0.55), outline=None)
    for x, y in ((-0.46, -0.2), (0.06, -0.42), (0.52, -0.22)):
        drop(canvas.moved(x, y, scale=0.3), water)


def drop(canvas: Canvas, water: tuple[int, int, int] = WATER) -> None:
    """A drop of water."""
    shape = [(0, -1), (0.4, -0.2), (0.6, 0.3), (0.42, 0.75), (0, 0.95), (-0.42, 0.75), (-0.6, 0.3), (-0.4, -0.2)]
    canvas.polygon(shape, water, width=0.12)


def flame(canvas: Canvas, rng: random.Random) -> None:
    """A big flame."""
    red = rng.choice(((240, 90, 24), (226, 60, 30), (250, 120, 20)))
    shape = [(0.08, -1), (0.3, -0.5), (0.52, -0.3), (0.6, -0.56), (0.76, 0.1), (0.72, 0.5), (0.46, 0.86), (0, 0.98),
             (-0.46, 0.86), (-0.72, 0.5), (-0.72, 0.1), (-0.5, -0.4), (-0.36, -0.1), (-0.1, -0.5)]  # fmt: skip
    canvas.polygon(shape, red, width=0.06)
    inner = [(0.04, -0.2), (0.3, 0.2), (0.38, 0.55), (0.2, 0.84), (-0.2, 0.84), (-0.4, 0.55), (-0.26, 0.2)]
    canvas.polygon(inner, (255, 222, 50), outline=None)


def flower(canvas: Canvas, rng: random.Random) -> None:
    """A flower with its stem and leaves."""
    petals = rng.choice(((236, 70, 150), (170, 80, 210), (250, 130, 170), (225, 45, 60)))
    canvas.limb([(0, -0.2), (0, 0.93)], (50, 150, 60), width=0.11)
    for side in (-1, 1):
        canvas.ellipse(0.36 * side, 0.62, 0.36, 0.15, (60, 170, 70), angle=-28 * side, width=0.05)
    for x, y, angle in around(6, 0.42):
        canvas.ellipse(x, y - 0.32, 0.27, 0.21, petals, angle=angle, width=0.05)
    canvas.circle(0, -0.32, 0.26, (255, 210, 50), width=0.05)


def broken_glass(canvas: Canvas, rng: random.Random) -> None:
    """A window whose pane is smashed in."""
    frame = rng.choice(((120, 72, 40), (80, 84, 96), (160, 52, 50)))
    canvas.rectangle(-0.92, -0.92, 0.92, 0.92, frame, width=0.06)
    canvas.rectangle(-0.74, -0.74, 0.74, 0.74, (206, 238, 250), width=0.05)
    radii = (0.6, 0.26, 0.52, 0.24, 0.64, 0.28, 0.5, 0.22, 0.62, 0.26, 0.54, 0.24)
    hole = [(x * radius, y * radius) for (x, y, _), radius in zip(around(12, 1.0, start=-70), radii, strict=True)]
    canvas.polygon(hole, (36, 38, 56), width=0.05)
    for x, y in hole[::2]:
        canvas.line([(x, y), (1.28 * x, 1.28 * y)], INK, width=0.05)


def ice(canvas: Canvas, rng: random.Random) -> None:
    """Three ice cubes."""
    tint = rng.choice(((150, 226, 246), (130, 206, 250), (170, 236, 240)))
    for x, y in ((-0.5, 0.48), (0.48, 0.48), (0.0, -0.42)):
        cube = canvas.moved(x, y, scale=0.46)
        cube.polygon([(-0.95, -0.6), (-0.6, -1), (0.98, -1), (0.6, -0.6)], (240, 252, 255), width=0.1)
        cube.polygon([(0.6, -0.6), (0.98, -1), (0.98, 0.56), (0.6, 0.95)], jitter(tint, -0.3), width=0.1)
        cube.rectangle(-0.95, -0.6, 0.6, 0.95, tint, width=0.1)
        cube.line([(-0.6, 0.35), (-0.6, -0.25), (-0.15, -0.25)], (255, 255, 255), width=0.16)


def smoke(canvas: Canvas, rng: random.Random) -> None:
    """A plume of smoke that grows as it rises."""
    grey = rng.choice(((130, 130, 138), (108, 108, 116), (150, 144, 144)))
    puffs = ((-0.5, 0.84, 0.12), (-0.34, 0.6, 0.19), (-0.06, 0.38, 0.26), (-0.34, 0.06, 0.36), (0.2, -0.06, 0.36),
             (-0.3, -0.46, 0.4), (0.44, -0.5, 0.46))  # fmt: skip
    for x, y, radius in puffs:
        canvas.circle(x, y, radius + 0.06, INK, outline=None)
    for x, y, radius in puffs:
        canvas.circle(x, y, radius, grey, outline=None)
    for x, y, radius in puffs[2:]:
        curl = [(x + 0.6 * radius * dx, y + 0.6 * radius * dy) for dx, dy, _ in around(6, 1.0, start=-200, sweep=170)]
        canvas.line(curl, INK, width=0.06)
