"""Things that are hot, cold, burning or neither."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld.canvas import INK, Canvas, jitter
from unprior.benchmarks.microworld.concepts import Concept, Draw
from unprior.benchmarks.microworld.textures import arc, chilled, heat, icicles

_CUPS = ((230, 80, 70), (250, 190, 60), (90, 170, 110), (150, 90, 180))
_HOT, _FROZEN, _FIRE, _ROOM = "steaming hot", "frozen", "on fire", "at room temperature"


def _coffee(canvas: Canvas, state: str, rng: random.Random) -> None:
    cup, mirror = chilled(rng.choice(_CUPS), state), rng.random() < 0.5
    board = canvas.moved(0, 0, mirror=mirror)
    if state != _HOT:
        heat(board, state, 0.05, 0.62)
    board.line(arc(0.56, 0.42, 0.28, 0.24, -80, 80), INK, width=0.2)
    board.line(arc(0.56, 0.42, 0.28, 0.24, -80, 80), cup, width=0.13)
    board.polygon([(-0.66, 0.05), (0.66, 0.05), (0.54, 0.8), (0.4, 0.93), (-0.4, 0.93), (-0.54, 0.8)], cup)
    board.ellipse(0, 0.06, 0.66, 0.17, chilled((250, 246, 238), state))
    board.ellipse(0, 0.08, 0.54, 0.11, chilled((92, 52, 26), state), outline=None)
    _finish(board, state, 0.05, 0.62)


def _soup(canvas: Canvas, state: str, rng: random.Random) -> None:
    bowl, soup = chilled(rng.choice(_CUPS), state), rng.choice(((240, 130, 40), (120, 180, 60), (220, 70, 40)))
    spoon = rng.choice((-1, 1))
    if state != _HOT:
        heat(canvas, state, 0.15, 0.66)
    canvas.polygon([*arc(0, 0.16, 0.9, 0.76, 0, 180, 16)], bowl)
    canvas.ellipse(0, 0.16, 0.9, 0.22, chilled((250, 246, 238), state))
    canvas.ellipse(0, 0.18, 0.76, 0.15, chilled(soup, state), outline=None)
    canvas.limb([(0.3 * spoon, 0.2), (0.86 * spoon, -0.1)], (190, 196, 206), width=0.08)
    _finish(canvas, state, 0.15, 0.66)


def _ice_cream(canvas: Canvas, state: str, rng: random.Random) -> None:
    scoop = rng.choice(((255, 160, 190), (140, 84, 50), (250, 240, 190)))
    if state != _HOT:
        heat(canvas, state, -0.12, 0.6)
    canvas.polygon([(-0.42, 0.25), (0.42, 0.25), (0, 0.95)], chilled((226, 166, 84), state))
    for x in (-0.2, 0.2):
        canvas.line([(x, 0.28), (-x * 0.4, 0.76)], (150, 96, 40), width=0.045)
    canvas.circle(0, 0.08, 0.44, chilled(scoop, state))
    canvas.rectangle(-0.5, 0.2, 0.5, 0.36, chilled(jitter(scoop, 0.15), state), radius=0.08)
    _finish(canvas, state, -0.2, 0.5, ice=0.3)


def _popsicle(canvas: Canvas, state: str, rng: random.Random) -> None:
    flavour = rng.choice(((235, 60, 90), (250, 150, 40), (150, 80, 190)))
    if state != _HOT:
        heat(canvas, state, -0.14, 0.6)
    canvas.limb([(0, 0.6), (0, 0.88)], (222, 180, 120), width=0.15)
    canvas.polygon([*arc(0, 0.14, 0.4, 0.36, 180, 360), (0.4, 0.68), (-0.4, 0.68)], chilled(flavour, state))
    for x in (-0.16, 0.16):
        canvas.line([(x, 0.12), (x, 0.5)], chilled(jitter(flavour, -0.3), state), width=0.09)
    _finish(canvas, state, -0.18, 0.44, ice=0.16)


def _campfire(canvas: Canvas, state: str, rng: random.Random) -> None:
    log, stone = rng.choice(((140, 88, 46), (110, 70, 44))), rng.choice(((150, 150, 160), (130, 120, 116)))
    if state != _HOT:
        heat(canvas, state, 0.32, 0.62)
    for side in (-1, 1):
        canvas.limb([(-0.6 * side, 0.3), (0.6 * side, 0.68)], chilled(log, state), width=0.2)
        canvas.circle(-0.6 * side, 0.3, 0.1, chilled((226, 184, 120), state))
    for x in (-0.76, -0.38, 0.0, 0.38, 0.76):
        canvas.ellipse(x, 0.8 - 0.1 * abs(x), 0.22, 0.15, chilled(stone, state))
    _finish(canvas, state, 0.26, 0.62, ice=0.36)


def _candle(canvas: Canvas, state: str, rng: random.Random) -> None:
    wax = rng.choice(((250, 240, 214), (230, 90, 90), (150, 110, 200)))
    dish = rng.choice(((214, 166, 60), (120, 124, 134)))
    canvas.ellipse(0, 0.82, 0.62, 0.13, chilled(dish, state))
    canvas.rectangle(-0.3, 0.08, 0.3, 0.84, chilled(wax, state), radius=0.04)
    canvas.ellipse(0, 0.1, 0.3, 0.09, chilled(jitter(wax, 0.3), state))
    canvas.line([(0, 0.1), (0, -0.1)], width=0.05)
    heat(canvas, state, -0.06, 0.5)
    if state == _FROZEN:
        icicles(canvas, -0.34, 0.34, 0.14, 0.4)


def _apple(canvas: Canvas, state: str, rng: random.Random) -> None:
    skin, mirror = rng.choice(((220, 40, 46), (120, 190, 50), (240, 190, 50))), rng.random() < 0.5
    board = canvas.moved(0, 0, mirror=mirror)
    if state != _HOT:
        heat(board, state, -0.02, 0.66)
    for colour, rim in ((INK, 0.035), (chilled(skin, state), 0.0)):
        for side in (-1, 1):
            board.ellipse(0.2 * side, 0.45, 0.42 + rim, 0.49 + rim, colour, angle=-10 * side, outline=None)
    board.line([(0, 0.14), (0.06, -0.18)], (96, 62, 34), width=0.09)
    board.ellipse(0.26, -0.1, 0.22, 0.1, chilled((70, 160, 60), state), angle=-20)
    board.ellipse(-0.4, 0.3, 0.08, 0.14, jitter(chilled(skin, state), 0.6), outline=None)
    _finish(board, state, 0.0, 0.5, ice=0.14)


def _book(canvas: Canvas, state: str, rng: random.Random) -> None:
    cover = rng.choice(_CUPS)
    if state != _HOT:
        heat(canvas, state, 0.08, 0.66)
    canvas.polygon([(-0.92, 0.1), (0.92, 0.1), (0.92, 0.92), (-0.92, 0.92)], chilled(cover, state))
    for side in (-1, 1):
        page = [(0, 0.12), (0.4 * side, 0.0), (0.82 * side, 0.06), (0.82 * side, 0.8), (0.4 * side, 0.74), (0, 0.86)]
        canvas.polygon(page, chilled((255, 253, 244), state))
        for y in (0.22, 0.38, 0.54):
            canvas.line([(0.16 * side, y + 0.04), (0.68 * side, y - 0.02)], chilled((90, 90, 100), state), width=0.05)
    _finish(canvas, state, 0.0, 0.66, ice=0.14)


def _finish(canvas: Canvas, state: str, top: float, width: float, ice: float | None = None) -> None:
    """What is in front of the thing: steam that rises from it or icicles on its rim."""
    if state == _HOT:
        heat(canvas, state, top + 0.08, width)
    elif state == _FROZEN:
        icicles(canvas, -width, width, top + 0.1 if ice is None else ice)


def _concept(thing: str, draw: Draw, objects: str, caption: str, ordinary: str) -> Concept:
    others = (state for state in (_HOT, _FROZEN, _FIRE, _ROOM) if state != ordinary)
    return Concept(
        f"{thing} temperature", "Temperature", (ordinary, *others), f"What is the temperature of the {thing}?",
        f"Is the {thing} {{first}} and not {{second}}?", f"{caption} that is {{state}}", (objects,), draw,
    )  # fmt: skip


CONCEPTS = (
    _concept("coffee", _coffee, "a cup", "coffee", _HOT),
    _concept("soup", _soup, "a bowl", "soup", _HOT),
    _concept("ice cream", _ice_cream, "an ice cream", "ice cream", _FROZEN),
    _concept("popsicle", _popsicle, "a popsicle", "a popsicle", _FROZEN),
    _concept("campfire", _campfire, "a campfire", "a campfire", _FIRE),
    _concept("candle", _candle, "a candle", "a candle", _FIRE),
    _concept("apple", _apple, "an apple", "an apple", _ROOM),
    _concept("book", _book, "a book", "a book", _ROOM),
)
