"""Where one thing is with respect to another."""

from __future__ import annotations

import random
from functools import partial

from unprior.benchmarks.microworld import things
from unprior.benchmarks.microworld.canvas import INK, Canvas, jitter, spread
from unprior.benchmarks.microworld.concepts import Concept
from unprior.benchmarks.microworld.things import Icon

_PLACES = {"above": (0, -1), "below": (0, 1), "left of": (-1, 0), "right of": (1, 0)}
_SKINS = ((255, 219, 172), (224, 172, 105), (198, 134, 66), (141, 85, 36))
_GAP = 0.03

Part = tuple[Icon, float, float]
"""An icon drawn around (0, 0) with half its width and half its height."""


def _place(canvas: Canvas, state: str, rng: random.Random, *, thing: Part, base: Part) -> None:
    """The thing stands next to the base on the side that the state names, and both are centred together."""
    x, y = _PLACES[state.rpartition(" the ")[0]]
    (draw_thing, wide, high), (draw_base, base_wide, base_high) = thing, base
    draw_base(canvas.moved(-x * (wide + _GAP), -y * high), random.Random(rng.random()))
    draw_thing(canvas.moved(x * base_wide, y * base_high), rng)


def _hat(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(things.PAINTS)
    canvas.rectangle(-0.32, -0.34, 0.32, 0.22, colour, radius=0.06)
    canvas.rectangle(-0.32, 0.04, 0.32, 0.18, (250, 240, 220))
    canvas.rectangle(-0.5, 0.18, 0.5, 0.34, colour, radius=0.06)


def _head(canvas: Canvas, rng: random.Random) -> None:
    canvas.ellipse(0, 0, 0.44, 0.5, rng.choice(_SKINS))
    for x in (-0.17, 0.17):
        canvas.circle(x, -0.1, 0.07, INK, outline=None)
    canvas.line([(-0.18, 0.2), (0, 0.27), (0.18, 0.2)], (170, 50, 60), width=0.07)


def _scoop(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(((250, 150, 180), (120, 72, 48), (120, 210, 150), (250, 214, 90)))
    canvas.circle(0, 0, 0.42, colour)
    for x in spread(4, -0.33, 0.33):
        canvas.circle(x, 0.3, 0.13, colour, outline=None)
    canvas.ellipse(-0.14, -0.18, 0.12, 0.08, jitter(colour, 0.6), outline=None)


def _cone(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(((230, 164, 80), (210, 140, 66)))
    canvas.polygon([(-0.4, -0.48), (0.4, -0.48), (0, 0.48)], colour)
    for x in (-0.2, 0.0, 0.2):
        canvas.line([(x, -0.45), (0.6 * x + 0.08, 0.1)], jitter(colour, -0.35), width=0.04)
        canvas.line([(-x, -0.45), (-0.6 * x - 0.08, 0.1)], jitter(colour, -0.35), width=0.04)
    canvas.rectangle(-0.45, -0.5, 0.45, -0.36, colour, radius=0.04)


def _flame(canvas: Canvas, rng: random.Random) -> None:
    things.flame(canvas.moved(0, 0, scale=0.42), rng)


def _candle(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(((250, 244, 226), (210, 60, 70), (90, 140, 210)))
    canvas.line([(0, -0.5), (0, -0.3)], width=0.06)
    canvas.rectangle(-0.22, -0.38, 0.22, 0.36, colour)
    canvas.line([(-0.12, -0.24), (-0.12, 0.05)], jitter(colour, 0.5), width=0.07)
    canvas.rectangle(-0.4, 0.32, 0.4, 0.5, (230, 180, 50), radius=0.06)


def _roof(canvas: Canvas, rng: random.Random) -> None:
    canvas.polygon([(-0.48, 0.36), (0, -0.36), (0.48, 0.36)], rng.choice(((200, 60, 50), (70, 90, 140), (110, 66, 44))))


def _walls(canvas: Canvas, rng: random.Random) -> None:
    canvas.rectangle(-0.42, -0.46, 0.42, 0.46, rng.choice(((250, 226, 160), (240, 240, 236), (236, 190, 160))))
    canvas.rectangle(-0.32, -0.28, -0.02, 0.02, (120, 190, 240))
    canvas.rectangle(0.08, -0.1, 0.32, 0.46, (120, 72, 40))


def _shoe(canvas: Canvas, rng: random.Random) -> None:
    shape = [(-0.4, -0.28), (0.0, -0.28), (0.1, -0.04), (0.4, 0.04), (0.48, 0.2), (-0.4, 0.2)]
    canvas.polygon(shape, rng.choice(things.PAINTS))
    canvas.rectangle(-0.44, 0.16, 0.5, 0.3, (250, 250, 250), radius=0.05)
    for y in (-0.16, -0.04):
        canvas.line([(-0.06, y), (0.08, y - 0.02)], (255, 255, 255), width=0.05)


def _leg(canvas: Canvas, rng: random.Random) -> None:
    skin = rng.choice(_SKINS)
    canvas.limb([(-0.04, -0.3), (0.02, 0.0), (-0.14, 0.5)], skin, width=0.26)
    canvas.line([(-0.02, 0.02), (0.1, 0.04)], jitter(skin, -0.35), width=0.05)
    shorts = rng.choice(((60, 70, 120), (90, 110, 70), (70, 70, 76)))
    canvas.polygon([(-0.3, -0.62), (0.3, -0.62), (0.24, -0.2), (-0.3, -0.2)], shorts)


def _sail(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(((255, 255, 255), (250, 200, 70), (230, 90, 80)))
    canvas.line([(0, -0.5), (0, 0.5)], (110, 66, 40), width=0.08)
    canvas.polygon([(0.04, -0.46), (0.44, 0.36), (0.04, 0.36)], colour)
    canvas.polygon([(-0.04, -0.36), (-0.04, 0.36), (-0.38, 0.36)], jitter(colour, -0.15))


def _boat(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(things.PAINTS)
    canvas.polygon([(-0.48, -0.24), (0.48, -0.24), (0.3, 0.24), (-0.3, 0.24)], colour)
    canvas.polygon([(-0.48, -0.24), (0.48, -0.24), (0.43, -0.1), (-0.43, -0.1)], (250, 250, 250))


def _basket(canvas: Canvas, rng: random.Random) -> None:
    wood = rng.choice(things.WOODS)
    for x in (-0.22, 0.22):
        canvas.line([(x, 0.0), (1.2 * x, -0.36)], width=0.05)
    canvas.rectangle(-0.3, -0.06, 0.3, 0.34, wood, radius=0.05)
    for x in (-0.15, 0.0, 0.15):
        canvas.line([(x, 0.0), (x, 0.3)], jitter(wood, -0.4), width=0.04)
    canvas.rectangle(-0.34, -0.1, 0.34, 0.04, wood)


def _balloon(canvas: Canvas, rng: random.Random) -> None:
    colour, stripe = rng.sample(things.PAINTS, 2)
    canvas.polygon([(-0.44, 0.1), (0.44, 0.1), (0.24, 0.54), (-0.24, 0.54)], colour)
    canvas.circle(0, -0.06, 0.48, colour)
    canvas.polygon([(-0.38, 0.2), (0.38, 0.2), (0.24, 0.5), (-0.24, 0.5)], colour, outline=None)
    canvas.polygon([(-0.06, -0.52), (0.06, -0.52), (0.2, 0.0), (0.1, 0.52), (-0.1, 0.52), (-0.2, 0.0)], stripe)


def _roots(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(((150, 100, 60), (176, 130, 84)))
    paths = (((-0.02, -0.3), (-0.26, -0.1), (-0.48, 0.02)), ((-0.02, -0.3), (-0.2, 0.08), (-0.3, 0.3)),
             ((0, -0.3), (0.02, 0.06), (0, 0.32)), ((0.02, -0.3), (0.2, 0.06), (0.3, 0.3)),
             ((0.02, -0.3), (0.26, -0.1), (0.48, 0.02)))  # fmt: skip
    for path in paths:
        canvas.line(path, INK, width=0.15)
    for path in paths:
        canvas.line(path, colour, width=0.09)


def _tree(canvas: Canvas, rng: random.Random) -> None:
    leaves = rng.choice(((50, 150, 70), (90, 170, 50), (30, 120, 80)))
    canvas.rectangle(-0.11, 0.0, 0.11, 0.54, (130, 84, 48))
    for grow, colour in ((0.03, INK), (0.0, leaves)):
        for x, y, radius in ((-0.22, -0.1, 0.23), (0.22, -0.1, 0.23), (0, -0.3, 0.24)):
            canvas.circle(x, y, radius + grow, colour, outline=None)


def _plate(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(((250, 250, 250), (120, 180, 230), (240, 200, 90)))
    canvas.ellipse(0, 0, 0.49, 0.24, colour)
    canvas.ellipse(0, 0, 0.28, 0.12, jitter(colour, -0.2))


def _cup(canvas: Canvas, rng: random.Random) -> None:
    colour = rng.choice(things.PAINTS)
    things.ring(canvas, 0.3, -0.04, 0.16, 0.1, colour)
    canvas.polygon([(-0.42, -0.44), (0.32, -0.44), (0.2, 0.5), (-0.3, 0.5)], colour)
    canvas.ellipse(-0.05, -0.44, 0.37, 0.1, (110, 66, 40))


def _wheels(canvas: Canvas, rng: random.Random) -> None:
    hub = rng.choice(((230, 60, 60), (250, 200, 60), (230, 230, 230)))
    for x in (-0.25, 0.25):
        canvas.circle(x, 0, 0.24, (60, 60, 68))
        canvas.circle(x, 0, 0.11, hub)


def _cart(canvas: Canvas, rng: random.Random) -> None:
    wood = rng.choice(things.WOODS)
    for x, y in ((-0.2, -0.3), (0.02, -0.36), (0.22, -0.3)):
        canvas.circle(x, y, 0.14, (250, 150, 40))
    canvas.polygon([(-0.48, -0.24), (0.46, -0.24), (0.38, 0.42), (-0.4, 0.42)], wood)
    for y in (-0.02, 0.2):
        canvas.line([(-0.38, y), (0.36, y)], jitter(wood, -0.4), width=0.05)


def _concept(thing: str, base: str, ordinary: str, part: Part, ground: Part, *, verb: str = "is") -> Concept:
    states = (ordinary, *(place for place in _PLACES if place != ordinary))
    article = "" if thing.endswith("s") or " " in thing else "a "
    objects = (article and f"a {thing}", "" if base.endswith("s") else f"a {base}")
    return Concept(
        f"{thing} place", "Spatial", tuple(f"{place} the {base}" for place in states),
        f"Where {verb} the {thing}?", f"{verb.capitalize()} the {thing} {{first}} and not {{second}}?",
        f"{article}{thing} {{state}}", tuple(filter(None, objects)),
        partial(_place, thing=part, base=ground),
    )  # fmt: skip


CONCEPTS = (
    _concept("hat", "head", "above", (_hat, 0.5, 0.34), (_head, 0.44, 0.48)),
    _concept("ice cream", "cone", "above", (_scoop, 0.42, 0.4), (_cone, 0.45, 0.46)),
    _concept("flame", "candle", "above", (_flame, 0.38, 0.42), (_candle, 0.4, 0.48)),
    _concept("roof", "walls", "above", (_roof, 0.48, 0.36), (_walls, 0.42, 0.46)),
    _concept("sail", "boat", "above", (_sail, 0.44, 0.5), (_boat, 0.48, 0.24)),
    _concept("shoe", "leg", "below", (_shoe, 0.47, 0.29), (_leg, 0.32, 0.62)),
    _concept("roots", "tree", "below", (_roots, 0.48, 0.34), (_tree, 0.45, 0.54), verb="are"),
    _concept("plate", "cup", "below", (_plate, 0.49, 0.22), (_cup, 0.46, 0.5)),
    _concept("basket", "balloon", "below", (_basket, 0.36, 0.34), (_balloon, 0.48, 0.54)),
    _concept("wheels", "cart", "below", (_wheels, 0.49, 0.23), (_cart, 0.46, 0.45), verb="are"),
)  # fmt: skip
