"""What things are made of and what happens to them: material fills, steam, frost, flames, glow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from unprior.benchmarks.microworld.canvas import INK, Canvas, Point, around, jitter

Tone = tuple[int, int, int]

_WHITE = (255, 255, 255)
_STEAM = (120, 122, 132)


def mix(colour: Tone, other: Tone, share: float) -> Tone:
    """A colour moved towards another one by a share from 0 to 1.

    >>> mix((0, 0, 0), (200, 100, 0), 0.5)
    (100, 50, 0)
    """
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def arc(x: float, y: float, across: float, down: float, start: float, stop: float, steps: int = 12) -> list[Point]:
    """Points on a part of an ellipse, from one angle (in degrees) to another.

    >>> [(round(x), round(y)) for x, y in arc(0, 0, 2, 1, 0, 90, 1)]
    [(2, 0), (0, 1)]
    """
    angles = [math.radians(start + (stop - start) * k / steps) for k in range(steps + 1)]
    return [(x + across * math.cos(angle), y + down * math.sin(angle)) for angle in angles]


def _sheet(canvas: Canvas, colour: Tone) -> None:
    canvas.rectangle(-1.3, -1.3, 1.3, 1.3, colour, outline=None)


def _metal(canvas: Canvas, shade: float) -> None:
    _sheet(canvas, jitter((118, 124, 136), shade))
    bands = ((-0.74, 0.36, _WHITE), (-0.22, 0.1, (196, 202, 212)), (0.2, 0.2, _WHITE), (-1.6, 0.24, _WHITE),
             (-1.12, 0.2, (74, 78, 90)))  # fmt: skip
    for start, width, colour in bands:
        canvas.polygon(
            [(start, 1.1), (start + width, 1.1), (start + width + 1.1, -1.1), (start + 1.1, -1.1)], colour, outline=None
        )


def _wood(canvas: Canvas, shade: float) -> None:
    _sheet(canvas, jitter((190, 124, 62), shade))
    for row in range(13):
        y = -1.08 + 0.18 * row
        wave = [(x / 4, y + 0.035 * math.sin(x * 1.1 + row * 1.7)) for x in range(-5, 6)]
        canvas.line(wave, (104, 58, 24), width=0.04)


def _glass(canvas: Canvas, shade: float) -> None:
    cyan = jitter((150, 228, 246), shade)
    canvas.rectangle(-1.3, -1.3, 1.3, 1.3, (*cyan, 175), outline=None)
    for x in (-0.95, -0.25, 0.45):
        for y in (-0.75, -0.05, 0.65):
            for slip, length in ((0.0, 0.34), (0.14, 0.2)):
                canvas.line([(x + slip, y + length), (x + slip + length, y)], _WHITE, width=0.075)


def _wool(canvas: Canvas, shade: float) -> None:
    _sheet(canvas, jitter((214, 30, 140), shade))
    for row in range(12):
        y = -1.06 + 0.2 * row
        zigzag = [(-1.2 + 0.12 * k, y + (0.1 if k % 2 else 0.0)) for k in range(21)]
        canvas.line(zigzag, (255, 176, 222), width=0.05)


def _brick(canvas: Canvas, shade: float) -> None:
    _sheet(canvas, jitter((186, 62, 44), shade))
    for row in range(11):
        y = -1.1 + 0.22 * row
        canvas.line([(-1.2, y), (1.2, y)], (244, 226, 206), width=0.05)
        for column in range(6):
            x = -1.1 + 0.44 * column + (0.22 if row % 2 else 0.0)
            canvas.line([(x, y), (x, y + 0.22)], (244, 226, 206), width=0.05)


_MATERIALS: dict[str, Callable[[Canvas, float], None]] = {
    "metal": _metal, "wood": _wood, "glass": _glass, "wool": _wool, "brick": _brick,
}  # fmt: skip


def material(canvas: Canvas, points: Sequence[Point], state: str, shade: float, *, outlined: bool = True) -> None:
    """Fill a shape with metal, wood, glass, wool or brick, a little lighter or darker."""
    canvas.textured(points, lambda board: _MATERIALS[state](board, shade), outline=INK if outlined else None)


def steam(canvas: Canvas, y: float, width: float = 0.45) -> None:
    """Three thick curls that rise from a height ``y`` to the top of the board."""
    height = y + 0.93
    for x in (-width, 0.0, width):
        curl = [(x + 0.1 * math.sin(k * math.pi / 4), y - height * k / 8) for k in range(9)]
        canvas.line(curl, _STEAM, width=0.2)
        canvas.line(curl, _WHITE, width=0.13)


def snowflake(canvas: Canvas, x: float, y: float, size: float, colour: Tone = (40, 110, 225)) -> None:
    """A star of six arms with side twigs."""
    for along, down, angle in around(6, size):
        canvas.line([(x, y), (x + along, y + down)], colour, width=0.055)
        for turn in (-38, 38):
            twig = math.radians(angle + turn)
            tip = (x + 0.6 * along + 0.38 * size * math.cos(twig), y + 0.6 * down + 0.38 * size * math.sin(twig))
            canvas.line([(x + 0.6 * along, y + 0.6 * down), tip], colour, width=0.045)


def icicles(canvas: Canvas, left: float, right: float, y: float, length: float = 0.34) -> None:
    """A row of hanging spikes of ice under a cap of snow."""
    step = (right - left) / 5
    for k in range(5):
        x, long = left + step * k, length * (1.0 if k % 2 == 0 else 0.6)
        canvas.polygon([(x, y), (x + step, y), (x + step / 2, y + long)], (196, 230, 255))
    canvas.rectangle(left - 0.03, y - 0.08, right + 0.03, y + 0.06, _WHITE, radius=0.06)


def flames(canvas: Canvas, y: float, width: float, top: float = -0.95) -> None:
    """Orange tongues with a yellow heart, standing on a height ``y``."""
    for share, colour in ((1.0, (238, 60, 20)), (0.72, (255, 140, 20)), (0.42, (255, 228, 70))):
        across, tall = width * share, (y - top) * (0.45 + 0.55 * share)
        tongue = (
            (-1.0, -0.1), (-0.95, -0.62), (-0.6, -0.36), (-0.42, -0.85), (-0.2, -0.55), (0.05, -1.0), (0.28, -0.5),
            (0.5, -0.8), (0.62, -0.38), (0.95, -0.66), (1.0, -0.1), (0.7, 0.0), (-0.7, 0.0),
        )  # fmt: skip
        canvas.polygon([(across * px, y + tall * py) for px, py in tongue], colour, outline=INK if share == 1 else None)


def chilled(colour: Tone, state: str) -> Tone:
    """The colour of a thing, turned icy blue where the state is frozen."""
    if state != "frozen":
        return colour
    return mix((50, 110, 200), (218, 240, 255), min(1.0, 0.25 + sum(colour) / 765 * 0.75))


def heat(canvas: Canvas, state: str, y: float, width: float) -> None:
    """The sign of a temperature above a thing whose top is at ``y``; nothing at room temperature."""
    if state == "steaming hot":
        steam(canvas, y - 0.06, 0.72 * width)
    elif state == "on fire":
        flames(canvas, y + 0.08, width)
    elif state == "frozen":
        for x, high in ((-0.62, 0.4), (0.0, 0.62), (0.62, 0.4)):
            snowflake(canvas, x, y - high * (y + 0.95), 0.27)


def glow(canvas: Canvas, points: Sequence[Point]) -> None:
    """A yellow halo with rays around a shape."""
    for x, y, _ in around(12, 0.98):
        canvas.line([(0.6 * x, 0.6 * y), (x, y)], (255, 180, 0), width=0.13)
    canvas.polygon(points, None, outline=(255, 208, 20), width=0.42)


def lustre(canvas: Canvas, points: Sequence[Point], state: str) -> None:
    """Fill a shape so that it glows, is dark, lets the background through or mirrors the light."""
    if state == "glowing":
        glow(canvas, points)
        canvas.polygon(points, (255, 252, 205))
    elif state == "dark":
        canvas.polygon(points, (24, 22, 28))
    elif state == "see-through":
        canvas.polygon(points, (235, 250, 255, 60), width=0.05)
    else:
        canvas.textured(points, _mirror)


def _mirror(canvas: Canvas) -> None:
    _sheet(canvas, (120, 186, 236))
    for start, width in ((-1.75, 0.16), (-1.15, 0.3), (-0.4, 0.16), (0.1, 0.3), (0.75, 0.16)):
        canvas.polygon(
            [(start, 1.1), (start + width, 1.1), (start + width + 1.1, -1.1), (start + 1.1, -1.1)], _WHITE, outline=None
        )
