"""What animals do, and where."""

from __future__ import annotations

import random

from unprior.benchmarks.microworld import animals, scenes
from unprior.benchmarks.microworld.canvas import Canvas
from unprior.benchmarks.microworld.concepts import Concept, Draw

_SWIM, _FLY, _SIT = "swimming in water", "flying in the sky", "sitting in a tree"
_WALK, _LIE, _STAND = "walking on grass", "lying in bed", "standing on ice"
_SCENES: dict[str, scenes.Scene] = {
    _SWIM: scenes.water, _FLY: scenes.sky, _SIT: scenes.tree, _WALK: scenes.grass, _LIE: scenes.bed, _STAND: scenes.ice,
}  # fmt: skip


def _placed(icon: animals.Icon) -> Draw:
    """The animal in the scene that belongs to the state; both may be mirrored."""

    def draw(canvas: Canvas, state: str, rng: random.Random) -> None:
        mirror, animal, place = rng.random() < 0.5, random.Random(rng.random()), random.Random(rng.random())
        _SCENES[state](canvas.moved(0, 0, mirror=mirror), lambda board: icon(board, animal), place)

    return draw


def _concept(name: str, icon: animals.Icon, *states: str) -> Concept:
    article = "an" if name[0] in "aeiou" else "a"
    return Concept(
        f"{name} behavior", "Animal Behavior", states,
        f"What is the {name} doing?", f"Is the {name} {{first}} and not {{second}}?",
        f"{article} {name} {{state}}", (f"{article} {name}",), _placed(icon),
    )  # fmt: skip


CONCEPTS = (
    _concept("fish", animals.fish, _SWIM, _FLY, _SIT, _LIE),
    _concept("whale", animals.whale, _SWIM, _WALK, _FLY, _SIT),
    _concept("bird", animals.bird, _FLY, _SWIM, _LIE, _STAND),
    _concept("bee", animals.bee, _FLY, _STAND, _SWIM, _LIE),
    _concept("owl", animals.owl, _SIT, _LIE, _SWIM, _STAND),
    _concept("cow", animals.cow, _WALK, _FLY, _SIT, _SWIM),
    _concept("horse", animals.horse, _WALK, _SIT, _FLY, _LIE),
    _concept("cat", animals.cat, _LIE, _SWIM, _STAND, _FLY),
    _concept("penguin", animals.penguin, _STAND, _FLY, _SIT, _LIE),
    _concept("frog", animals.frog, _SWIM, _LIE, _STAND, _FLY),
)  # fmt: skip
