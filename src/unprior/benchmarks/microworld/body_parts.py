"""Counting parts of the body."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, around, jitter, spread
from unprior.benchmarks.microworld.concepts import Concept, counted, number_of

_SKINS = ((255, 219, 172), (241, 194, 125), (224, 172, 105), (198, 134, 66), (141, 85, 36))
_HAIRS = ((70, 46, 30), (25, 24, 28), (184, 122, 50), (196, 66, 30))
_SHIRTS = ((70, 130, 200), (200, 70, 80), (80, 160, 100), (230, 170, 60), (140, 100, 180))


def _hand(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin = rng.choice(_SKINS)
    fingers = number_of(state)
    width = 0.2 if fingers < 7 else 0.17
    canvas.limb([(0, 0.45), (0, 0.95)], skin, width=0.5)
    for x, y, _ in around(fingers, 0.92, start=-172, sweep=164):
        canvas.limb([(0.3 * x, 0.3 + 0.25 * y), (x, 0.3 + 1.15 * y)], skin, width=width)
    canvas.circle(0, 0.33, 0.43, skin)
    canvas.rectangle(-0.23, 0.45, 0.23, 0.93, skin, outline=None)


def _foot(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin = rng.choice(_SKINS)
    toes = number_of(state)
    sole = [(-0.66, -0.3), (0.66, -0.3), (0.6, 0.1), (0.48, 0.4), (0.46, 0.68), (0.32, 0.88), (0, 0.96), (-0.32, 0.88),
            (-0.46, 0.68), (-0.46, 0.4), (-0.62, 0.1)]  # fmt: skip
    for place, x in enumerate(spread(toes, -0.66, 0.66)):
        size = min(0.17, 0.66 / toes) + (0.03 if place == 0 else 0)
        canvas.ellipse(x, -0.52, size, 0.3, skin)
        canvas.ellipse(x, -0.7, size * 0.5, 0.08, jitter(skin, 0.6), outline=None)
    canvas.polygon(sole, skin)


def _head(canvas: Canvas, skin: tuple[int, int, int], hair: tuple[int, int, int]) -> None:
    canvas.ellipse(0, -0.08, 0.82, 0.9, hair)
    canvas.ellipse(0, 0.12, 0.74, 0.8, skin)


def _eyes(canvas: Canvas, state: str, rng: random.Random) -> None:
    _head(canvas, rng.choice(_SKINS), rng.choice(_HAIRS))
    eyes = number_of(state)
    size = {1: 0.26, 2: 0.22, 3: 0.18}.get(eyes, 0.15)
    for x in spread(eyes, -0.15 * eyes + 0.02, 0.15 * eyes - 0.02):
        canvas.circle(x, -0.02, size, (255, 255, 255))
        canvas.circle(x, 0.0, size * 0.5, INK, outline=None)
    canvas.line([(-0.25, 0.58), (0, 0.66), (0.25, 0.58)], (170, 50, 60), width=0.07)


def _noses(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin = rng.choice(_SKINS)
    _head(canvas, skin, rng.choice(_HAIRS))
    for x in (-0.3, 0.3):
        canvas.circle(x, -0.25, 0.11, INK, outline=None)
    noses = number_of(state)
    for x in spread(noses, -0.2 * (noses - 1), 0.2 * (noses - 1)):
        canvas.polygon([(x, -0.1), (x + 0.16, 0.32), (x - 0.16, 0.32)], jitter((226, 110, 90), 0.05))
    canvas.line([(-0.25, 0.6), (0, 0.68), (0.25, 0.6)], (170, 50, 60), width=0.07)


def _arms(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin, shirt = rng.choice(_SKINS), rng.choice(_SHIRTS)
    arms = number_of(state)
    for x in (-0.16, 0.16):
        canvas.limb([(x, 0.5), (x * 1.2, 0.95)], (60, 70, 110), width=0.2)
    right, left = (arms + 1) // 2, arms // 2
    for side, count in ((1, right), (-1, left)):
        for place in range(count):
            height = 0.02 + 0.3 * place
            canvas.limb([(0.2 * side, height), (0.82 * side, height - 0.25)], skin, width=0.15)
    canvas.rectangle(-0.32, -0.2, 0.32, 0.62, shirt, radius=0.14)
    canvas.circle(0, -0.52, 0.33, skin)
    canvas.ellipse(0, -0.74, 0.32, 0.14, rng.choice(_HAIRS))
    for x in (-0.12, 0.12):
        canvas.circle(x, -0.52, 0.045, INK, outline=None)
    canvas.line([(-0.1, -0.38), (0.1, -0.38)], (170, 50, 60), width=0.045)


def _legs(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin, shirt = rng.choice(_SKINS), rng.choice(_SHIRTS)
    legs = number_of(state)
    for x in spread(legs, -0.14 * legs, 0.14 * legs):
        canvas.limb([(x * 0.8, 0.2), (x * 1.5, 0.86)], (60, 70, 110), width=0.19)
        canvas.ellipse(x * 1.5 + 0.04, 0.92, 0.15, 0.08, INK, outline=None)
    width = max(0.3, 0.13 * legs + 0.08)
    for side in (-1, 1):
        canvas.limb([(0.24 * side, -0.2), (0.5 * side, 0.12)], skin, width=0.13)
    canvas.rectangle(-width, -0.32, width, 0.3, shirt, radius=0.12)
    canvas.circle(0, -0.6, 0.29, skin)
    canvas.ellipse(0, -0.8, 0.28, 0.12, rng.choice(_HAIRS))
    for x in (-0.1, 0.1):
        canvas.circle(x, -0.6, 0.04, INK, outline=None)


CONCEPTS = (
    Concept(
        "hand fingers", "Body Parts", counted("finger", 5, 4, 6, 7),
        "How many fingers are on the hand?", "Does the hand have {first} and not {second}?",
        "a hand with {state}", ("a hand",), _hand,
    ),
    Concept(
        "foot toes", "Body Parts", counted("toe", 5, 3, 4, 7),
        "How many toes are on the foot?", "Does the foot have {first} and not {second}?",
        "a foot with {state}", ("a foot",), _foot,
    ),
    Concept(
        "face eyes", "Body Parts", counted("eye", 2, 1, 3, 4),
        "How many eyes does the face have?", "Does the face have {first} and not {second}?",
        "a face with {state}", ("a face",), _eyes,
    ),
    Concept(
        "face noses", "Body Parts", counted("nose", 1, 0, 2, 3),
        "How many noses does the face have?", "Does the face have {first} and not {second}?",
        "a face with {state}", ("a face",), _noses,
    ),
    Concept(
        "person arms", "Body Parts", counted("arm", 2, 1, 3, 4),
        "How many arms does the person have?", "Does the person have {first} and not {second}?",
        "a person with {state}", ("a person",), _arms,
    ),
    Concept(
        "person legs", "Body Parts", counted("leg", 2, 1, 3, 4),
        "How many legs does the person have?", "Does the person have {first} and not {second}?",
        "a person with {state}", ("a person",), _legs,
    ),
)  # fmt: skip
