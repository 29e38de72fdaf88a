"""A small drawing board: cartoon shapes with a dark outline, in coordinates that do not depend on the image size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PIL import Image, ImageDraw

Point = tuple[float, float]
Colour = tuple[int, int, int] | tuple[int, int, int, int]

INK: Colour = (43, 38, 48)
STROKE = 0.032
_CIRCLE = tuple((math.cos(2 * math.pi * k / 32), math.sin(2 * math.pi * k / 32)) for k in range(32))


@dataclass(frozen=True)
class Canvas:
    """Draws in a square from (-1, -1), top left, to (1, 1), bottom right; ``moved`` gives a board within the board.

    >>> image = Image.new("RGB", (32, 32), "white")
    >>> Canvas.on(image).moved(0.5, 0.5, scale=0.5).circle(0, 0, 0.8, (255, 0, 0), outline=None)
    >>> image.getpixel((23, 23)), image.getpixel((8, 8))
    ((255, 0, 0), (255, 255, 255))
    """

    image: Image.Image
    pen: ImageDraw.ImageDraw
    matrix: tuple[float, float, float, float, float, float]
    """x' = a·x + b·y + c and y' = d·x + e·y + f, in pixels."""

    @classmethod
    def on(cls, image: Image.Image) -> Canvas:
        """A board that covers the whole image."""
        half = image.width / 2
        return cls(image, ImageDraw.Draw(image, "RGBA"), (half, 0.0, half, 0.0, half, half))

    def moved(self, x: float, y: float, *, scale: float = 1.0, angle: float = 0.0, mirror: bool = False) -> Canvas:
        """A board centred at (x, y), scaled, turned by an angle in degrees (clockwise), possibly mirrored."""
        a, b, c, d, e, f = self.matrix
        cosine, sine = scale * math.cos(math.radians(angle)), scale * math.sin(math.radians(angle))
        flip = -1.0 if mirror else 1.0
        return replace(
            self,
            matrix=(
                flip * (a * cosine + b * sine),
                b * cosine - a * sine,
                a * x + b * y + c,
                flip * (d * cosine + e * sine),
                e * cosine - d * sine,
                d * x + e * y + f,
            ),
        )

    def polygon(
        self, points: Sequence[Point], fill: Colour | None, *, outline: Colour | None = INK, width: float = STROKE
    ) -> None:
        """A closed shape."""
        pixels = self._pixels(points)
        if fill is not None:
            self.pen.polygon(pixels, fill=fill)
        if outline is not None:
            self.pen.line([*pixels, pixels[0], pixels[1]], fill=outline, width=self._width(width), joint="curve")

    def ellipse(
        self,
        x: float,
        y: float,
        across: float,
        down: float,
        fill: Colour | None,
        *,
        angle: float = 0.0,
        outline: Colour | None = INK,
        width: float = STROKE,
    ) -> None:
        """An ellipse with these half-axes."""
        cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        points = [
            (x + across * cx * cosine - down * cy * sine, y + across * cx * sine + down * cy * cosine)
            for cx, cy in _CIRCLE
        ]
        self.polygon(points, fill, outline=outline, width=width)

    def circle(
        self,
        x: float,
        y: float,
        radius: float,
        fill: Colour | None,
        *,
        outline: Colour | None = INK,
        width: float = STROKE,
    ) -> None:
        """A circle."""
        self.ellipse(x, y, radius, radius, fill, outline=outline, width=width)

    def rectangle(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        fill: Colour | None,
        *,
        radius: float = 0.0,
        outline: Colour | None = INK,
        width: float = STROKE,
    ) -> None:
        """A box, with round corners if a radius is given."""
        self.polygon(rounded(left, top, right, bottom, radius), fill, outline=outline, width=width)

    def line(self, points: Sequence[Point], colour: Colour = INK, *, width: float = STROKE) -> None:
        """A line through the points with round ends."""
        pixels = self._pixels(points)
        thick = self._width(width)
        self.pen.line(pixels, fill=colour, width=thick, joint="curve")
        if thick > 2 and len(colour) == 3:  # on a translucent line the caps would show as darker discs
            for x, y in (pixels[0], pixels[-1]):
                self.pen.ellipse((x - thick / 2, y - thick / 2, x + thick / 2, y + thick / 2), fill=colour)

    def limb(self, points: Sequence[Point], fill: Colour, *, width: float, outline: Colour = INK) -> None:
        """A thick outlined stroke with round ends: a finger, a leg, a stem."""
        self.line(points, outline, width=width + 2 * STROKE * 0.8)
        self.line(points, fill, width=width)

    def textured(
        self,
        points: Sequence[Point],
        paint: Callable[[Canvas], None],
        *,
        outline: Colour | None = INK,
        width: float = STROKE,
    ) -> None:
        """Fill a shape with whatever ``paint`` draws on the board it is given."""
        layer = self.image.copy()
        paint(replace(self, image=layer, pen=ImageDraw.Draw(layer, "RGBA")))
        mask = Image.new("L", self.image.size, 0)
        ImageDraw.Draw(mask).polygon(self._pixels(points), fill=255)
        self.image.paste(layer, (0, 0), mask)
        self.polygon(points, None, outline=outline, width=width)

    def _pixels(self, points: Sequence[Point]) -> list[Point]:
        a, b, c, d, e, f = self.matrix
        return [(a * x + b * y + c, d * x + e * y + f) for x, y in points]

    def _width(self, width: float) -> int:
        a, b, _, d, e, _ = self.matrix
        return max(1, round(width * math.sqrt(abs(a * e - b * d))))


def rounded(left: float, top: float, right: float, bottom: float, radius: float) -> list[Point]:
    """Outline of a box with round corners."""
    if radius <= 0:
        return [(left, top), (right, top), (right, bottom), (left, bottom)]
    corners = ((right - radius, top + radius, -90), (right - radius, bottom - radius, 0),
               (left + radius, bottom - radius, 90), (left + radius, top + radius, 180))  # fmt: skip
    return [
        (x + radius * math.cos(math.radians(start + turn)), y + radius * math.sin(math.radians(start + turn)))
        for x, y, start in corners
        for turn in (0, 30, 60, 90)
    ]


def around(
    count: int, radius: float, *, start: float = -90.0, sweep: float = 360.0
) -> list[tuple[float, float, float]]:
    """Places on a circle: (x, y, angle in degrees), evenly spread; a part of the circle includes both its ends.

    >>> [(round(x), round(y)) for x, y, _ in around(4, 1.0)]
    [(0, -1), (1, 0), (0, 1), (-1, 0)]
    """
    steps = count if sweep >= 360 else max(count - 1, 1)
    angles = [start + sweep * k / steps if count > 1 or sweep >= 360 else start + sweep / 2 for k in range(count)]
    return [(radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle)), angle) for angle in angles]


def spread(count: int, left: float, right: float) -> list[float]:
    """Evenly spaced places between two ends; a single one is in the middle.

    >>> spread(3, -1, 1)
    [-1.0, 0.0, 1.0]
    """
    if count == 1:
        return [(left + right) / 2]
    return [left + (right - left) * k / (count - 1) for k in range(count)]


def jitter(colour: tuple[int, int, int], amount: float) -> tuple[int, int, int]:
    """A colour made lighter (amount > 0) or darker (amount < 0), by at most 1."""
    target = 255 if amount > 0 else 0
    red, green, blue = (round(part + (target - part) * abs(amount)) for part in colour)
    return red, green, blue
