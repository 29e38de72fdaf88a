"""Counting parts of animals."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, around, jitter, spread
from unprior.benchmarks.microworld.concepts import Concept, counted, number_of

_FURS = ((236, 150, 60), (150, 150, 162), (196, 140, 84), (112, 84, 70))
_BRIGHT = ((232, 72, 66), (244, 150, 40), (150, 84, 190), (40, 120, 200))
_WHITE = (255, 255, 255)
_PINK = (246, 164, 176)


def _face(canvas: Canvas, x: float, y: float, apart: float, size: float) -> None:
    """Two round eyes."""
    for side in (-1, 1):
        canvas.circle(x + apart * side, y, size, INK, outline=None)


def _cat(canvas: Canvas, state: str, rng: random.Random) -> None:
    fur = rng.choice(_FURS)
    canvas = canvas.moved(0, 0, mirror=rng.random() < 0.5)
    canvas.limb([(0.72, -0.02), (0.88, -0.3), (0.78, -0.62)], fur, width=0.13)
    legs = number_of(state)
    width = 0.13 if legs < 6 else 0.085
    for x in spread(legs, -0.46, 0.76):
        canvas.limb([(x, 0.2), (x, 0.78)], fur, width=width)
        canvas.ellipse(x - 0.01, 0.85, 0.8 * width, 0.08, _WHITE)
    canvas.rectangle(-0.56, -0.16, 0.86, 0.32, fur, radius=0.22)
    for side in (-1, 1):
        canvas.polygon([(-0.5 + 0.4 * side, -0.8), (-0.5 + 0.38 * side, -0.3), (-0.5 + 0.08 * side, -0.55)], fur)
    canvas.ellipse(-0.5, -0.27, 0.42, 0.36, fur)
    _face(canvas, -0.5, -0.32, 0.17, 0.07)
    canvas.polygon([(-0.57, -0.2), (-0.43, -0.2), (-0.5, -0.12)], _PINK)
    for side in (-1, 1):
        for rise in (-0.05, 0.05):
            canvas.line([(-0.5 + 0.2 * side, -0.12 + rise / 2), (-0.5 + 0.47 * side, -0.12 + rise)], width=0.02)


def _rabbit(canvas: Canvas, state: str, rng: random.Random) -> None:
    fur = rng.choice(((250, 250, 250), (176, 176, 186), (206, 160, 110), (130, 96, 74)))
    ears = number_of(state)
    lean = {1: 0, 2: 18, 3: 32}.get(ears, 43)
    for angle in spread(ears, -lean, lean):
        ear = canvas.moved(0, 0.45, angle=angle)
        ear.ellipse(0, -0.85, 0.16, 0.5, fur)
        ear.ellipse(0, -0.86, 0.08, 0.36, _PINK, outline=None)
    canvas.ellipse(0, 0.42, 0.6, 0.5, fur)
    _face(canvas, 0, 0.3, 0.25, 0.085)
    canvas.rectangle(-0.1, 0.66, 0.1, 0.84, _WHITE)
    for side in (-1, 1):
        canvas.ellipse(0.13 * side, 0.6, 0.17, 0.12, jitter(fur, 0.5))
    canvas.ellipse(0, 0.48, 0.1, 0.07, _PINK)


def _spider(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin = rng.choice(((88, 70, 110), (120, 60, 50), (60, 90, 80), (70, 70, 76)))
    spots = rng.choice(((240, 80, 70), (250, 200, 60), (240, 240, 240)))
    for side in (-1, 1):
        turned = canvas.moved(0, 0, mirror=side < 0)
        half = number_of(state) // 2
        fan = {1: 0, 2: 34, 3: 46}.get(half, 54)
        for angle in spread(half, -fan, fan):
            leg = turned.moved(0.1, -0.02, angle=angle)
            bend = -0.16 if angle <= 0 else 0.16
            leg.line([(0.2, 0), (0.55, bend), (0.88, 0)], INK, width=0.1)
    canvas.ellipse(0, 0.12, 0.33, 0.38, skin)
    for x, y in ((0, 0.02), (-0.13, 0.24), (0.13, 0.24)):
        canvas.circle(x, y, 0.075, spots, outline=None)
    canvas.circle(0, -0.34, 0.23, skin)
    for x in (-0.1, 0.1):
        canvas.circle(x, -0.38, 0.09, _WHITE)
        canvas.circle(x, -0.39, 0.04, INK, outline=None)


def _starfish(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin = rng.choice(((240, 130, 50), (230, 80, 90), (150, 100, 200), (230, 180, 50)))
    arms = number_of(state)
    waist = {3: 0.28, 4: 0.34, 5: 0.36}.get(arms, 0.28)
    places = around(arms, 0.76)
    points = []
    for x, y, angle in places:
        tips = around(3, 0.13, start=angle - 60, sweep=120)
        points += [(x + dx, y + dy) for dx, dy, _ in tips]
        points += [(px, py) for px, py, _ in around(1, waist, start=angle + 180 / arms)]
    canvas.polygon(points, skin, width=0.045)
    for x, y, _ in places:
        for reach, size in ((0.95, 0.05), (0.68, 0.065)):
            canvas.circle(reach * x, reach * y, size, jitter(skin, 0.6), outline=None)
    _face(canvas, 0, -0.06, 0.13, 0.065)
    canvas.line([(-0.12, 0.1), (0, 0.16), (0.12, 0.1)], width=0.04)


def _butterfly(canvas: Canvas, state: str, rng: random.Random) -> None:
    colour, dot = rng.choice(_BRIGHT), rng.choice(((255, 226, 90), (255, 255, 255), (250, 190, 210)))
    first = rng.choice((-1, 1))
    wings = number_of(state)
    for side, count in ((first, (wings + 1) // 2), (-first, wings // 2)):
        turned = canvas.moved(0, 0.02, mirror=side < 0)
        for angle in (-38, 34)[:count] if count < 3 else (-54, 0, 54):
            wing = turned.moved(0.04, 0, angle=angle)
            wing.ellipse(0.5, 0, 0.46, 0.3 if count < 3 else 0.2, colour)
            wing.circle(0.64, 0, 0.14 if count < 3 else 0.11, dot)
        turned.line([(0, -0.4), (0.1, -0.68), (0.2, -0.8)], width=0.045)
    canvas.ellipse(0, 0.06, 0.1, 0.5, (70, 56, 60))
    canvas.circle(0, -0.42, 0.13, (70, 56, 60))


def _cow(canvas: Canvas, state: str, rng: random.Random) -> None:
    patch = rng.choice(((50, 46, 50), (140, 84, 50), (190, 110, 60)))
    side = rng.choice((-1, 1))
    horns = number_of(state)
    for x in spread(horns, -0.15 * horns, 0.15 * horns):
        lean = 0.5 * x
        tip = (x + lean, -0.92)
        canvas.polygon([(x - 0.12, -0.35), (x - 0.1 + 0.9 * lean, -0.66), tip, (x + 0.1 + 0.9 * lean, -0.66),
                        (x + 0.12, -0.35)], (252, 206, 84))  # fmt: skip
    for ear in (-1, 1):
        canvas.ellipse(0.76 * ear, -0.08, 0.22, 0.12, patch, angle=-12 * ear)
    canvas.rectangle(-0.6, -0.44, 0.6, 0.7, (252, 252, 250), radius=0.25)
    canvas.ellipse(0.3 * side, -0.06, 0.24, 0.3, patch, outline=None)
    for x in (-0.28, 0.28):
        canvas.circle(x, 0.0, 0.12, _WHITE)
        canvas.circle(x, 0.02, 0.06, INK, outline=None)
    canvas.ellipse(0, 0.58, 0.66, 0.34, _PINK)
    for x in (-0.26, 0.26):
        canvas.ellipse(x, 0.54, 0.08, 0.11, (150, 70, 84), outline=None)


CONCEPTS = (
    Concept(
        "cat legs", "Animal Parts", counted("leg", 4, 2, 3, 6),
        "How many legs does the cat have?", "Does the cat have {first} and not {second}?",
        "a cat with {state}", ("a cat",), _cat,
    ),
    Concept(
        "rabbit ears", "Animal Parts", counted("ear", 2, 1, 3, 4),
        "How many ears does the rabbit have?", "Does the rabbit have {first} and not {second}?",
        "a rabbit with {state}", ("a rabbit",), _rabbit,
    ),
    Concept(
        "spider legs", "Animal Parts", counted("leg", 8, 2, 4, 6),
        "How many legs does the spider have?", "Does the spider have {first} and not {second}?",
        "a spider with {state}", ("a spider",), _spider,
    ),
    Concept(
        "starfish arms", "Animal Parts", counted("arm", 5, 3, 4, 7),
        "How many arms does the starfish have?", "Does the starfish have {first} and not {second}?",
        "a starfish with {state}", ("a starfish",), _starfish,
    ),
    Concept(
        "butterfly wings", "Animal Parts", counted("wing", 4, 2, 3, 6),
        "How many wings does the butterfly have?", "Does the butterfly have {first} and not {second}?",
        "a butterfly with {state}", ("a butterfly",), _butterfly,
    ),
    Concept(
        "cow horns", "Animal Parts", counted("horn", 2, 1, 3, 4),
        "How many horns does the cow have?", "Does the cow have {first} and not {second}?",
        "a cow with {state}", ("a cow",), _cow,
    ),
)  # fmt: skip
