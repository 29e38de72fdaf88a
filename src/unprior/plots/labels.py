"""Labels of figures: short enough, and placed so that they cover neither points nor each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = tuple[float, float]
FloatArray = NDArray[np.float64]

_DIRECTIONS = tuple((math.cos(k * math.pi / 6), math.sin(k * math.pi / 6)) for k in range(12))
_DISTANCES = (9.0, 12.0, 15.0, 22.0, 30.0, 40.0)
_MARKER = 8.0
_LINE = 9.0
_DOT = 4.0
_CHARACTER = 4.9
_GAP = 5.0  # between labels on one line, or they read as one
_UNREADABLE, _CROSSING = 1e4, 60.0  # a label on another costs most; lines to labels should not cross
NEAR = _DISTANCES[0]
"""A label at this distance needs no line to its point."""


def shorten(name: str, width: int) -> str:
    """A name that leaves room for the figure: its middle gives way, because versions and sizes stand at the end.

    >>> shorten("organisation/model-with-a-long-name-8B", 21)
    'organisati…ng-name-8B'
    """
    kept = width - 1
    return name if len(name) <= width else f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"


def room(axes: Axes) -> Place:
    """Width and height inside axes in typographic points, as far as they are known before the layout is made."""
    box, points = axes.get_window_extent(), 72.0 / axes.figure.dpi
    return box.width * points, box.height * points


def place_labels(
    points: Sequence[Place],
    texts: Sequence[str],
    width: float,
    height: float,
    markers: Sequence[float] | None = None,
    lines: Sequence[Sequence[Place]] = (),
) -> list[Place]:
    """Offsets of the middle of every label from its point, all in typographic points.

    Labels are placed one after the other where they cover least, the nearest place first, and on another label only
    where there is no other place. ``markers`` are the sizes of the points, ``lines`` the corners of lines that labels
    keep away from too.

    >>> place_labels([(50.0, 50.0), (50.0, 50.0)], ["1", "2"], 100.0, 100.0)[0]
    (9.0, 0.0)
    """
    sizes = markers or [_MARKER] * len(points)
    dots = [dot for line in lines for ends in pairwise(line) for dot in _dots(*ends)]
    taken = np.concatenate([_boxes(points, sizes, sizes), _boxes(dots, _DOT, _DOT)])
    labels, leaders, offsets = np.empty((0, 4)), np.empty((0, 4)), []
    for point, text in zip(points, texts, strict=True):
        size = _CHARACTER * len(text)
        near = np.repeat(_DISTANCES, len(_DIRECTIONS))
        far = near + max(0.0, size / 2 - 4.0)
        directions = np.tile(_DIRECTIONS, (len(_DISTANCES), 1))
        places = np.stack([directions[:, 0] * far, directions[:, 1] * near], axis=1)
        left, bottom, right, top = boxes = _boxes(places + point, size + _GAP, _LINE).T
        outside = np.maximum.reduce([0 * left, -left, right - width])
        outside += np.maximum.reduce([0 * left, -bottom, top - height])
        cost = _covered(boxes.T, taken) + 20.0 * outside + 0.3 * np.hypot(places[:, 0], places[:, 1])
        cost += _UNREADABLE * (_covered(boxes.T, labels) > 0) + _CROSSING * _crossed(np.array(point), places, leaders)
        chosen = places[int(cost.argmin())]
        offsets.append((float(chosen[0]), float(chosen[1])))
        if text:
            labels = np.concatenate([labels, _boxes([chosen + point], size, _LINE)])
            leaders = np.concatenate([leaders, [[*point, *(chosen + point)]]])
    return offsets


def _dots(start: Place, end: Place) -> list[Place]:
    """Places on a line, so close together that a label finds no room between them."""
    steps = max(1, math.ceil(math.dist(start, end) / _DOT))
    return [(start[0] + k / steps * (end[0] - start[0]), start[1] + k / steps * (end[1] - start[1]))
            for k in range(steps + 1)]  # fmt: skip


def _boxes(centres: ArrayLike, widths: ArrayLike, heights: ArrayLike) -> FloatArray:
    """Left, bottom, right and top of boxes around their centres."""
    middle = np.asarray(centres, dtype=np.float64).reshape(-1, 2)
    half = np.stack(np.broadcast_arrays(widths, heights, middle[:, 0])[:2], axis=1) / 2
    return np.concatenate([middle - half, middle + half], axis=1)


def _covered(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """How much of every box the others cover, counted for each of them."""
    upper = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = np.maximum(0.0, upper - np.maximum(boxes[:, None, :2], others[None, :, :2]))
    return np.asarray(shared.prod(axis=2).sum(axis=1))


def _crossed(point: FloatArray, offsets: FloatArray, lines: FloatArray) -> FloatArray:
    """How many lines, given by both their ends, each line from a point to one of its places crosses."""
    start, end = lines[:, :2] - point, lines[:, 2:] - point

    def turn(one: FloatArray, other: FloatArray) -> FloatArray:
        return np.asarray(one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0])

    to = offsets[:, None]
    apart = turn(to, start) * turn(to, end) < 0
    return np.asarray((apart & (turn(end - start, -start) * turn(end - start, to - start) < 0)).sum(axis=1))
