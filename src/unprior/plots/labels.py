"""Places for small labels beside points, so that they cover neither points nor each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

Place = tuple[float, float]

_DIRECTIONS = tuple((math.cos(k * math.pi / 6), math.sin(k * math.pi / 6)) for k in range(12))
_DISTANCES = (9.0, 12.0, 15.0, 22.0, 30.0)
_MARKER = 8.0
_LINE = 9.0
_DOT = 4.0
_CHARACTER = 4.9
NEAR = _DISTANCES[0]
"""A label at this distance needs no line to its point."""


def place_labels(
    points: Sequence[Place],
    texts: Sequence[str],
    width: float,
    height: float,
    markers: Sequence[float] | None = None,
    lines: Sequence[Sequence[Place]] = (),
) -> list[Place]:
    """Offsets of the middle of every label from its point, all in typographic points.

    Labels are placed one after the other where they cover least, the nearest place first. ``markers`` are the sizes of
    the points, ``lines`` the corners of lines that labels keep away from too.

    >>> place_labels([(50.0, 50.0), (50.0, 50.0)], ["1", "2"], 100.0, 100.0)[0]
    (9.0, 0.0)
    """
    sizes = markers or [_MARKER] * len(points)
    taken = [_box(point, size, size) for point, size in zip(points, sizes, strict=True)]
    taken += [_box(dot, _DOT, _DOT) for line in lines for ends in pairwise(line) for dot in _dots(*ends)]
    offsets = []
    for (x, y), text in zip(points, texts, strict=True):
        size = _CHARACTER * len(text), _LINE

        def cost(offset: Place, x: float = x, y: float = y, size: Place = size) -> float:
            box = _box((x + offset[0], y + offset[1]), *size)
            covered = sum(_overlap(box, other) for other in taken)
            left, bottom, right, top = box
            outside = max(0.0, -left, right - width) + max(0.0, -bottom, top - height)
            return covered + 20.0 * outside + 0.3 * math.hypot(*offset)

        reach = [(distance + max(0.0, size[0] / 2 - 4.0)) for distance in _DISTANCES]
        places = [
            (across * far, up * distance)
            for far, distance in zip(reach, _DISTANCES, strict=True)
            for across, up in _DIRECTIONS
        ]
        chosen = min(places, key=cost)
        offsets.append(chosen)
        taken.append(_box((x + chosen[0], y + chosen[1]), *size))
    return offsets


def _dots(start: Place, end: Place) -> list[Place]:
    """Places on a line, so close together that a label finds no room between them."""
    steps = max(1, math.ceil(math.dist(start, end) / _DOT))
    return [(start[0] + k / steps * (end[0] - start[0]), start[1] + k / steps * (end[1] - start[1]))
            for k in range(steps + 1)]  # fmt: skip


def _box(centre: Place, width: float, height: float) -> tuple[float, float, float, float]:
    return centre[0] - width / 2, centre[1] - height / 2, centre[0] + width / 2, centre[1] + height / 2


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    up = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, across) * max(0.0, up)
