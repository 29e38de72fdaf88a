"""Counting parts of everyday objects."""

from __future__ import annotations

import math
import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, Colour, around, jitter, spread
from unprior.benchmarks.microworld.concepts import Concept, counted, number_of

_PAINTS = ((214, 52, 56), (40, 104, 200), (40, 150, 90), (240, 150, 40), (130, 80, 180))
_WHITE = (255, 255, 255)
_STEEL = (168, 180, 198)


def _frame(canvas: Canvas, paint: Colour) -> None:
    """A bicycle without wheels."""
    rear, front, pedal, seat, bar = (-0.54, 0.45), (0.54, 0.45), (-0.06, 0.45), (-0.26, -0.2), (0.36, -0.2)
    canvas.line([seat, rear, pedal, seat, bar, pedal], paint, width=0.09)
    canvas.line([front, (0.3, -0.5)], paint, width=0.09)
    canvas.line([(0.46, -0.62), (0.3, -0.5), (0.1, -0.52)], INK, width=0.09)
    canvas.line([seat, (-0.3, -0.4)], paint, width=0.08)
    canvas.ellipse(-0.3, -0.44, 0.22, 0.08, INK, outline=None)
    canvas.circle(*pedal, 0.09, INK, outline=None)


def _bicycle(canvas: Canvas, state: str, rng: random.Random) -> None:
    paint = rng.choice(_PAINTS)
    canvas = canvas.moved(0, 0, mirror=rng.random() < 0.5)
    wheels = number_of(state)
    if wheels > 2:  # small wheels are in front of the frame, which would hide them
        canvas.line([(-0.7, 0.45), (0.7, 0.45)], paint, width=0.09)
        _frame(canvas, paint)
    size = {1: 0.4, 2: 0.4, 3: 0.27}.get(wheels, 0.2)
    for x in spread(wheels, size - 0.94, 0.94 - size) if wheels > 1 else (-0.54,):
        canvas.circle(x, 0.45, size, _WHITE, width=0.1)
        for dx, dy, _ in around(3, size, start=30, sweep=120):
            canvas.line([(x - dx, 0.45 - dy), (x + dx, 0.45 + dy)], (130, 130, 140), width=0.02)
        canvas.circle(x, 0.45, 0.05, INK, outline=None)
    if wheels < 3:
        _frame(canvas, paint)


def _fork(canvas: Canvas, state: str, rng: random.Random) -> None:
    handle = rng.choice(_PAINTS)
    tines = number_of(state)
    width = 0.13 if tines < 6 else 0.075
    for x in spread(tines, -0.5, 0.5):
        canvas.limb([(x, -0.2), (x, -0.88)], _STEEL, width=width)
    canvas.limb([(0, 0.0), (0, 0.4)], _STEEL, width=0.14)
    canvas.polygon([(-0.59, -0.3), (0.59, -0.3), (0.54, -0.14), (0.36, 0.0), (0.1, 0.1), (-0.1, 0.1), (-0.36, 0.0),
                    (-0.54, -0.14)], _STEEL)  # fmt: skip
    canvas.polygon([(-0.1, 0.24), (0.1, 0.24), (0.17, 0.85), (0.1, 0.95), (-0.1, 0.95), (-0.17, 0.85)], handle)


def _traffic_light(canvas: Canvas, state: str, rng: random.Random) -> None:
    box = rng.choice(((52, 54, 60), (40, 70, 56), (44, 54, 90)))
    post = rng.choice(((110, 114, 122), (150, 130, 70)))
    lamps = number_of(state)
    red, yellow, green, blue = (238, 50, 48), (255, 206, 50), (60, 206, 90), (80, 160, 255)
    colours = {1: (red,), 2: (red, green), 3: (red, yellow, green)}.get(lamps, (red, yellow, green, blue))
    size, gap = (0.23, 0.52) if lamps < 4 else (0.18, 0.41)
    places = spread(lamps, -0.115 - gap * (lamps - 1) / 2, -0.115 + gap * (lamps - 1) / 2)
    canvas.rectangle(-0.1, 0.6, 0.1, 0.95, post)
    for y in places:
        for side in (-1, 1):
            canvas.polygon([(0.3 * side, y - size), (0.66 * side, y - size), (0.3 * side, y + size)], box)
    canvas.rectangle(-0.4, -0.95, 0.4, 0.72, box, radius=0.12)
    for y, colour in zip(places, colours, strict=True):
        canvas.circle(0, y, size, colour)


def _cup(canvas: Canvas, state: str, rng: random.Random) -> None:
    paint, drink = rng.choice(_PAINTS), rng.choice(((96, 56, 36), (190, 110, 40)))
    first = rng.choice((-1, 1))
    handles = number_of(state)
    both = ((1, 0.02, 0.27), (-1, 0.02, 0.27))
    for side, y, size in both[:handles] if handles < 3 else ((1, -0.22, 0.16), (1, 0.33, 0.16), both[1]):
        x = (0.52 if size > 0.2 else 0.6) * side * first
        curve = [(x + side * first * dx, y + dy) for dx, dy, _ in around(13, size, start=-130, sweep=260)]
        canvas.limb(curve, paint, width=0.02 + 0.36 * size)
    canvas.ellipse(0, 0.74, 0.8, 0.16, (244, 244, 246))
    canvas.polygon([(-0.56, -0.42), (0.56, -0.42), (0.5, 0.5), (0.36, 0.74), (-0.36, 0.74), (-0.5, 0.5)], paint)
    canvas.ellipse(0, -0.42, 0.56, 0.14, jitter(paint, 0.6))
    canvas.ellipse(0, -0.4, 0.44, 0.08, drink, outline=None)
    for x in (-0.2, 0.2):
        canvas.line([(x, -0.58), (x + 0.08, -0.68), (x - 0.04, -0.78), (x + 0.04, -0.92)], (150, 150, 160), width=0.05)


def _clock(canvas: Canvas, state: str, rng: random.Random) -> None:
    rim, hand = rng.choice(_PAINTS), rng.choice((INK, (190, 30, 40), (30, 60, 160)))
    turn = rng.uniform(0, 360)
    hands = number_of(state)
    canvas.circle(0, 0, 0.93, rim)
    canvas.circle(0, 0, 0.78, _WHITE)
    for place, (x, y, _) in enumerate(around(12, 0.68)):
        canvas.circle(x, y, 0.07 if place % 3 == 0 else 0.035, INK, outline=None)
    for place in range(hands):
        angle = math.radians(turn + place * (120 if hands < 4 else 72))
        reach = 0.36 if place % 2 else 0.54
        canvas.line([(0, 0), (reach * math.cos(angle), reach * math.sin(angle))], hand, width=0.11)
    canvas.circle(0, 0, 0.09, INK, outline=None)


def _glasses(canvas: Canvas, state: str, rng: random.Random) -> None:
    frame, lens = rng.choice((INK, *_PAINTS)), rng.choice(((176, 220, 246), (250, 226, 150), (190, 236, 200)))
    lenses = number_of(state)
    size = {1: 0.44, 2: 0.4, 3: 0.28}.get(lenses, 0.215)
    places = spread(lenses, size - 0.92, 0.92 - size)
    edge = places[-1] + size
    for side in (-1, 1):
        canvas.line(
            [(edge * side, 0.14), (0.88 * side, 0.1), (0.74 * side, -0.5), (0.54 * side, -0.6)], frame, width=0.1
        )
    canvas.line([(places[0], 0.2), (places[-1], 0.2)], frame, width=0.1)
    for x in places:
        canvas.circle(x, 0.24, size, lens, outline=frame, width=0.1 if lenses < 3 else 0.075)
        canvas.line([(x - 0.3 * size, 0.3), (x + 0.3 * size, 0.3 - 0.6 * size)], _WHITE, width=0.05)


CONCEPTS = (
    Concept(
        "bicycle wheels", "Everyday Objects", counted("wheel", 2, 1, 3, 4),
        "How many wheels does the bicycle have?", "Does the bicycle have {first} and not {second}?",
        "a bicycle with {state}", ("a bicycle",), _bicycle,
    ),
    Concept(
        "fork tines", "Everyday Objects", counted("tine", 4, 2, 3, 6),
        "How many tines does the fork have?", "Does the fork have {first} and not {second}?",
        "a fork with {state}", ("a fork",), _fork,
    ),
    Concept(
        "traffic light lamps", "Everyday Objects", counted("lamp", 3, 1, 2, 4),
        "How many lamps does the traffic light have?", "Does the traffic light have {first} and not {second}?",
        "a traffic light with {state}", ("a traffic light",), _traffic_light,
    ),
    Concept(
        "cup handles", "Everyday Objects", counted("handle", 1, 0, 2, 3),
        "How many handles does the cup have?", "Does the cup have {first} and not {second}?",
        "a cup with {state}", ("a cup",), _cup,
    ),
    Concept(
        "clock hands", "Everyday Objects", counted("hand", 2, 0, 1, 4),
        "How many hands does the clock have?", "Does the clock have {first} and not {second}?",
        "a clock with {state}", ("a clock",), _clock,
    ),
    Concept(
        "glasses lenses", "Everyday Objects", counted("lens", 2, 1, 3, 4, plural="lenses"),
        "How many lenses do the glasses have?", "Do the glasses have {first} and not {second}?",
        "glasses with {state}", ("a pair of glasses",), _glasses,
    ),
)  # fmt: skip
