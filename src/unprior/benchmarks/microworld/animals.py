"""Whole animals, seen from the side and facing right; each fills the board and stands on the line y = 0.9."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from unprior.benchmarks.microworld.canvas import INK, Canvas, jitter

Icon = Callable[[Canvas, random.Random], None]
Paint = tuple[int, int, int]

GROUND = 0.9
"""Where the feet are."""
_WHITE = (252, 252, 250)
_BLACK = (52, 50, 60)
_ORANGE = (245, 150, 40)
_PINK = (244, 160, 170)


def fish(canvas: Canvas, rng: random.Random) -> None:
    """A fish with a big tail and stripes."""
    skin = rng.choice(((250, 130, 40), (240, 80, 90), (250, 200, 50)))
    fin = jitter(skin, -0.25)
    canvas.polygon([(-0.4, 0.12), (-0.95, -0.5), (-0.8, 0.12), (-0.95, 0.74)], fin)
    canvas.polygon([(-0.3, -0.3), (-0.15, -0.78), (0.4, -0.62), (0.4, -0.3)], fin)
    canvas.polygon([(-0.15, 0.5), (-0.1, 0.88), (0.25, 0.6)], fin)
    canvas.ellipse(0.17, 0.12, 0.76, 0.56, skin)
    for x, half in ((-0.22, 0.44), (0.12, 0.52)):
        canvas.line([(x, 0.12 - half), (x + 0.1, 0.12), (x, 0.12 + half)], _WHITE, width=0.13)
    canvas.ellipse(0.17, 0.12, 0.76, 0.56, None)
    _eye(canvas, 0.58, -0.06, 0.14)
    canvas.line([(0.9, 0.24), (0.7, 0.3)], width=0.05)


def bird(canvas: Canvas, rng: random.Random) -> None:
    """A bird with both wings spread."""
    plume = rng.choice(((220, 60, 60), (245, 190, 40), (90, 80, 100)))
    wing = jitter(plume, -0.28)
    canvas.polygon([(0.2, 0.2), (0.5, -0.85), (0.1, -0.6), (-0.1, 0.2)], wing)
    canvas.polygon([(-0.35, 0.35), (-0.95, 0.1), (-0.85, 0.4), (-0.95, 0.62)], wing)
    canvas.ellipse(0.02, 0.4, 0.56, 0.32, plume)
    canvas.polygon([(0.72, 0.02), (0.98, 0.16), (0.72, 0.28)], _ORANGE)
    canvas.circle(0.54, 0.14, 0.27, plume)
    canvas.polygon([(0.28, 0.36), (-0.05, -0.62), (-0.62, -0.9), (-0.66, -0.6), (-0.5, -0.3), (-0.3, 0.36)], wing)
    for x in (-0.1, 0.12):
        canvas.line([(x, 0.7), (x - 0.12, 0.86)], _ORANGE, width=0.06)
    _eye(canvas, 0.6, 0.08, 0.09)


def cat(canvas: Canvas, rng: random.Random) -> None:
    """A cat with pointed ears, whiskers and its tail up."""
    coat = rng.choice(((240, 160, 70), (150, 150, 160), (70, 66, 76)))
    dark = jitter(coat, -0.3)
    canvas.limb([(-0.6, 0.3), (-0.84, 0.0), (-0.66, -0.35), (-0.86, -0.68)], coat, width=0.14)
    _legs(canvas, coat, (-0.58, -0.34, 0.12, 0.36), 0.4, 0.17)
    canvas.rectangle(-0.72, 0.02, 0.48, 0.56, coat, radius=0.25)
    for x in (-0.42, -0.2, 0.02):
        canvas.line([(x, 0.07), (x, 0.3)], dark, width=0.09)
    for side in (-1, 1):
        canvas.polygon([(0.44 + 0.42 * side, -0.3), (0.44 + 0.38 * side, -0.92), (0.44 + 0.06 * side, -0.6)], coat)
    canvas.ellipse(0.44, -0.22, 0.45, 0.42, coat)
    for side in (-1, 1):
        canvas.ellipse(0.44 + 0.18 * side, -0.3, 0.1, 0.11, (170, 220, 90))
        canvas.ellipse(0.44 + 0.18 * side, -0.3, 0.03, 0.09, INK, outline=None)
        for tip in (-0.12, 0.04):
            canvas.line([(0.44 + 0.18 * side, -0.05), (0.44 + 0.5 * side, tip)], _WHITE, width=0.035)
    canvas.polygon([(0.36, -0.14), (0.52, -0.14), (0.44, -0.02)], _PINK)


def dog(canvas: Canvas, rng: random.Random) -> None:
    """A dog with hanging ears, a collar and its tongue out."""
    coat = rng.choice(((196, 140, 84), (236, 208, 160), (150, 96, 60)))
    dark = jitter(coat, -0.45)
    canvas.limb([(-0.66, 0.2), (-0.86, -0.05), (-0.88, -0.36)], coat, width=0.14)
    _legs(canvas, coat, (-0.62, -0.36, 0.08, 0.32), 0.4, 0.19)
    canvas.rectangle(-0.76, -0.02, 0.44, 0.52, coat, radius=0.2)
    canvas.ellipse(-0.36, 0.16, 0.22, 0.17, dark, outline=None)
    canvas.polygon([(0.02, 0.1), (0.08, -0.4), (0.5, -0.3), (0.44, 0.3)], coat)
    canvas.line([(0.06, -0.02), (0.48, 0.04)], (220, 50, 60), width=0.13)
    canvas.ellipse(0.66, -0.1, 0.09, 0.17, (240, 110, 120))
    canvas.ellipse(0.34, -0.5, 0.36, 0.36, coat)
    canvas.rectangle(0.4, -0.52, 0.93, -0.16, coat, radius=0.16)
    canvas.ellipse(0.88, -0.46, 0.1, 0.09, INK)
    canvas.ellipse(0.08, -0.42, 0.15, 0.38, dark, angle=12)
    _eye(canvas, 0.46, -0.62, 0.1)


def cow(canvas: Canvas, rng: random.Random) -> None:
    """A cow with horns, patches, an udder and a pink muzzle."""
    patch = rng.choice((_BLACK, (140, 84, 48), (176, 110, 60)))
    canvas.limb([(-0.76, -0.15), (-0.9, 0.1), (-0.88, 0.4)], _WHITE, width=0.06)
    canvas.ellipse(-0.88, 0.46, 0.07, 0.12, patch)
    canvas.ellipse(-0.22, 0.5, 0.18, 0.16, _PINK)
    _legs(canvas, _WHITE, (-0.64, -0.4, 0.12, 0.36), 0.4, 0.18, hoof=_BLACK)
    canvas.rectangle(-0.8, -0.3, 0.52, 0.5, _WHITE, radius=0.2)
    canvas.ellipse(-0.48, -0.04, 0.24, 0.2, patch, outline=None)
    canvas.ellipse(0.04, 0.2, 0.24, 0.22, patch, outline=None)
    for side in (-1, 1):
        x = 0.56 + 0.2 * side
        canvas.polygon([(x - 0.07, -0.64), (x + 0.07, -0.64), (x + 0.13 * side, -0.92)], (240, 226, 180))
        canvas.ellipse(0.56 + 0.4 * side, -0.52, 0.15, 0.09, patch, angle=-15 * side)
    canvas.rectangle(0.28, -0.72, 0.84, 0.06, _WHITE, radius=0.24)
    canvas.ellipse(0.56, 0.02, 0.3, 0.2, _PINK)
    for side in (-1, 1):
        canvas.circle(0.56 + 0.13 * side, -0.4, 0.08, INK, outline=None)
        canvas.circle(0.56 + 0.1 * side, 0.02, 0.05, INK, outline=None)


def elephant(canvas: Canvas, rng: random.Random) -> None:
    """An elephant with a big ear, a trunk and a tusk."""
    skin = rng.choice(((150, 158, 172), (176, 168, 166), (126, 140, 164)))
    dark = jitter(skin, -0.15)
    canvas.limb([(-0.82, -0.1), (-0.92, 0.3)], dark, width=0.06)
    _legs(canvas, dark, (-0.44, 0.3), 0.4, 0.26)
    _legs(canvas, skin, (-0.68, 0.06), 0.4, 0.26, hoof=(235, 230, 215))
    canvas.ellipse(-0.28, -0.02, 0.62, 0.6, skin)
    canvas.limb([(0.66, -0.3), (0.84, 0.1), (0.82, 0.5), (0.72, 0.7), (0.9, 0.78)], skin, width=0.2)
    canvas.polygon([(0.56, 0.06), (0.7, 0.06), (0.74, 0.42)], _WHITE)
    canvas.ellipse(0.48, -0.38, 0.42, 0.46, skin)
    canvas.ellipse(0.1, -0.32, 0.34, 0.5, dark)
    canvas.ellipse(0.12, -0.3, 0.2, 0.34, _PINK, outline=None)
    _eye(canvas, 0.62, -0.46, 0.1)


def horse(canvas: Canvas, rng: random.Random) -> None:
    """A horse with a long neck, a mane and a long tail."""
    coat, mane = rng.choice((((160, 96, 52), _BLACK), ((214, 160, 96), _WHITE), ((104, 80, 72), (40, 34, 34))))
    canvas.polygon([(-0.6, -0.15), (-0.88, 0.0), (-0.94, 0.6), (-0.74, 0.5), (-0.62, 0.1)], mane)
    _legs(canvas, coat, (-0.58, -0.36, 0.14, 0.36), 0.2, 0.14, hoof=_BLACK)
    canvas.rectangle(-0.7, -0.2, 0.48, 0.36, coat, radius=0.24)
    canvas.polygon([(0.0, -0.12), (0.2, -0.8), (0.55, -0.75), (0.5, -0.3), (0.46, 0.16)], coat)
    canvas.polygon([(-0.1, -0.1), (0.02, -0.6), (0.2, -0.9), (0.34, -0.84), (0.26, -0.55), (0.14, -0.1)], mane)
    canvas.polygon([(0.34, -0.72), (0.4, -0.96), (0.52, -0.74)], coat)
    canvas.polygon([(0.24, -0.66), (0.5, -0.8), (0.95, -0.44), (0.9, -0.22), (0.72, -0.18), (0.38, -0.36)], coat)
    canvas.circle(0.84, -0.36, 0.04, INK, outline=None)
    _eye(canvas, 0.5, -0.6, 0.09)


def mouse(canvas: Canvas, rng: random.Random) -> None:
    """A mouse with round pink ears and a long tail."""
    coat = rng.choice(((214, 170, 120), (180, 130, 90), (240, 236, 230)))
    canvas.line([(-0.6, 0.6), (-0.88, 0.45), (-0.84, 0.0), (-0.6, -0.2), (-0.66, -0.55)], width=0.17)
    canvas.line([(-0.6, 0.6), (-0.88, 0.45), (-0.84, 0.0), (-0.6, -0.2), (-0.66, -0.55)], _PINK, width=0.11)
    for x in (-0.35, 0.2):
        canvas.ellipse(x, 0.83, 0.18, 0.08, _PINK)
    canvas.ellipse(-0.14, 0.36, 0.6, 0.48, coat)
    canvas.circle(0.5, -0.44, 0.32, coat)
    canvas.polygon([(0.05, -0.2), (0.5, -0.28), (0.94, 0.28), (0.86, 0.42), (0.3, 0.55), (0.05, 0.3)], coat)
    canvas.circle(0.06, -0.48, 0.42, coat)
    canvas.circle(0.06, -0.48, 0.28, _PINK, outline=None)
    canvas.circle(0.9, 0.34, 0.09, (230, 90, 110))
    canvas.circle(0.5, 0.08, 0.1, INK, outline=None)


def ant(canvas: Canvas, rng: random.Random) -> None:
    """An ant: three balls, six legs and two feelers."""
    skin = rng.choice(((80, 50, 44), (170, 60, 40), (60, 58, 66)))
    for hip, knee, foot in ((-0.1, -0.5, -0.8), (0.0, -0.12, -0.2), (0.1, 0.34, 0.36), (0.14, 0.62, 0.82)):
        canvas.line([(hip, 0.2), (knee, 0.35), (foot, 0.88)], jitter(skin, -0.2), width=0.09)
    for tip in (0.5, 0.92):
        canvas.line([(0.58, -0.2), (tip - 0.06, -0.62), (tip, -0.88)], jitter(skin, -0.2), width=0.08)
    canvas.ellipse(-0.56, -0.02, 0.38, 0.34, skin)
    canvas.ellipse(0.02, 0.1, 0.25, 0.2, skin)
    canvas.circle(0.54, -0.08, 0.34, skin)
    _eye(canvas, 0.66, -0.14, 0.12)


def penguin(canvas: Canvas, rng: random.Random) -> None:
    """A penguin standing upright."""
    back = rng.choice(((46, 46, 58), (52, 62, 92), (70, 66, 74)))
    for x in (-0.2, 0.28):
        canvas.ellipse(x, 0.83, 0.24, 0.08, _ORANGE)
    canvas.ellipse(-0.5, 0.2, 0.14, 0.42, back, angle=24)
    canvas.ellipse(0.0, 0.16, 0.54, 0.68, back)
    canvas.ellipse(0.14, 0.24, 0.36, 0.55, _WHITE, outline=None)
    canvas.polygon([(0.3, -0.68), (0.78, -0.52), (0.3, -0.38)], _ORANGE)
    canvas.circle(0.06, -0.52, 0.38, back)
    canvas.ellipse(0.2, -0.48, 0.2, 0.22, _WHITE, outline=None)
    canvas.ellipse(0.54, 0.18, 0.13, 0.42, back, angle=-28)
    canvas.circle(0.2, -0.56, 0.08, INK, outline=None)


def owl(canvas: Canvas, rng: random.Random) -> None:
    """An owl with huge eyes."""
    plume = rng.choice(((150, 104, 62), (190, 150, 100), (130, 120, 124)))
    dark = jitter(plume, -0.3)
    for side in (-1, 1):
        canvas.polygon([(0.1 * side, -0.6), (0.56 * side, -0.94), (0.58 * side, -0.3)], dark)
        canvas.ellipse(0.18 * side, 0.84, 0.15, 0.07, _ORANGE)
    canvas.ellipse(0, 0.1, 0.64, 0.74, plume)
    canvas.ellipse(0, 0.38, 0.4, 0.42, jitter(plume, 0.55), outline=None)
    for side in (-1, 1):
        canvas.ellipse(0.58 * side, 0.24, 0.16, 0.48, dark, angle=8 * side)
        canvas.circle(0.27 * side, -0.28, 0.29, _WHITE)
        canvas.circle(0.27 * side, -0.28, 0.19, (250, 200, 40), outline=None)
        canvas.circle(0.27 * side, -0.28, 0.11, INK, outline=None)
    canvas.polygon([(-0.1, -0.14), (0.1, -0.14), (0, 0.12)], _ORANGE)


def whale(canvas: Canvas, rng: random.Random) -> None:
    """A whale with a raised tail and a fountain."""
    skin = rng.choice(((70, 110, 190), (84, 92, 120), (60, 140, 170)))
    for side in (-1, 1):
        canvas.limb([(0.35, -0.25), (0.35, -0.55), (0.35 + 0.28 * side, -0.82)], (170, 225, 255), width=0.1)
    canvas.polygon([(-0.5, 0.35), (-0.66, -0.2), (-0.96, -0.5), (-0.64, -0.48), (-0.5, -0.6), (-0.4, -0.4),
                    (-0.44, -0.1), (-0.2, 0.1)], skin)  # fmt: skip
    canvas.ellipse(0.18, 0.3, 0.77, 0.56, skin)
    canvas.polygon([(-0.5, 0.36), (-0.48, 0.02), (-0.1, 0.06), (-0.2, 0.4)], skin, outline=None)
    canvas.polygon([(0.93, 0.42), (0.4, 0.5), (-0.2, 0.68), (0.1, 0.83), (0.5, 0.8), (0.8, 0.64)], _WHITE)
    canvas.polygon([(0.1, 0.5), (0.26, 0.5), (-0.02, 0.9), (-0.14, 0.82)], jitter(skin, -0.2))
    _eye(canvas, 0.6, 0.2, 0.11)


def bee(canvas: Canvas, rng: random.Random) -> None:
    """A bee with stripes, wings and a sting."""
    body = rng.choice(((255, 205, 40), (250, 180, 40), (255, 225, 90)))
    canvas.polygon([(-0.7, 0.2), (-0.97, 0.34), (-0.7, 0.46)], INK)
    for x in (-0.2, 0.06, 0.3):
        canvas.line([(x, 0.7), (x + 0.06, 0.88)], width=0.06)
    canvas.ellipse(-0.36, -0.4, 0.3, 0.5, (236, 246, 255), angle=-24)
    canvas.ellipse(0.14, -0.42, 0.3, 0.5, (236, 246, 255), angle=18)
    canvas.ellipse(-0.1, 0.32, 0.7, 0.46, body)
    for x, half in ((-0.46, 0.36), (-0.18, 0.44), (0.1, 0.43)):
        canvas.line([(x, 0.32 - half), (x, 0.32 + half)], INK, width=0.13)
    for x in (0.62, 0.88):
        canvas.line([(0.6, 0.0), (x, -0.4)], width=0.06)
    canvas.circle(0.6, 0.22, 0.34, body)
    _eye(canvas, 0.7, 0.14, 0.13)


def frog(canvas: Canvas, rng: random.Random) -> None:
    """A frog, ready to jump."""
    skin = rng.choice(((96, 180, 60), (150, 190, 50), (50, 150, 90)))
    dark = jitter(skin, -0.25)
    canvas.polygon([(-0.88, 0.5), (-0.5, -0.3), (0.2, -0.5), (0.7, -0.1), (0.5, 0.5), (-0.5, 0.8)], skin)
    for x in (0.28, 0.52):
        canvas.limb([(x - 0.08, 0.3), (x, 0.82)], skin, width=0.15)
        canvas.ellipse(x + 0.1, 0.84, 0.18, 0.07, dark)
    canvas.ellipse(0.48, -0.12, 0.48, 0.36, skin)
    canvas.ellipse(0.5, 0.18, 0.34, 0.14, (236, 240, 170), outline=None)
    canvas.ellipse(-0.5, 0.4, 0.42, 0.3, dark, angle=-35)
    canvas.ellipse(-0.4, 0.82, 0.46, 0.09, dark)
    canvas.line([(0.3, 0.0), (0.6, 0.06), (0.92, -0.06)], width=0.05)
    for x in (0.24, 0.62):
        canvas.circle(x, -0.5, 0.24, skin)
        _eye(canvas, x + 0.02, -0.52, 0.16)


def _eye(canvas: Canvas, x: float, y: float, size: float) -> None:
    canvas.circle(x, y, size, _WHITE)
    canvas.circle(x + 0.25 * size, y, size * 0.55, INK, outline=None)


def _legs(
    canvas: Canvas, coat: Paint, places: Sequence[float], top: float, width: float, *, hoof: Paint | None = None
) -> None:
    """Straight legs down to the ground."""
    for x in places:
        canvas.rectangle(x - width / 2, top, x + width / 2, GROUND, coat)
        if hoof is not None:
            canvas.rectangle(x - width / 2, GROUND - 0.12, x + width / 2, GROUND, hoof)
