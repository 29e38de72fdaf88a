"""What a tool is used on."""

from __future__ import annotations

import random
from functools import partial

from unprior.benchmarks.microworld import things
from unprior.benchmarks.microworld.canvas import Canvas
from unprior.benchmarks.microworld.concepts import Concept
from unprior.benchmarks.microworld.things import Icon

_SITES: dict[str, Icon] = {
    "a nail": things.nail,
    "a loaf of bread": things.bread,
    "a sheet of paper": things.paper,
    "a lock": things.lock,
    "a plant": things.plant,
    "a log": things.log,
    "a painting": things.painting,
}


def _use(canvas: Canvas, state: str, rng: random.Random, *, tool: Icon, angle: float) -> None:
    """The tool at the top left points at the site at the bottom right."""
    _SITES[state](canvas.moved(0.4, 0.4, scale=0.55), random.Random(rng.random()))
    tool(canvas.moved(-0.41, -0.41, scale=0.66, angle=angle), rng)


def _pour(canvas: Canvas, state: str, rng: random.Random) -> None:
    """The watering can stands level and pours on the site."""
    _SITES[state](canvas.moved(0.4, 0.4, scale=0.55), random.Random(rng.random()))
    things.watering_can(canvas.moved(-0.4, -0.45, scale=0.58, angle=14), rng)
    for x, y in ((0.34, -0.36), (0.54, -0.46), (0.52, -0.12)):
        things.drop(canvas.moved(x, y, scale=0.12))


def _concept(tool: str, icon: Icon | None, *states: str, angle: float = -45.0) -> Concept:
    many = tool.endswith("s")
    verb, thing = ("are", f"a pair of {tool}") if many else ("is", f"a {tool}")
    return Concept(
        f"{tool} use", "Object Function", states,
        f"What {verb} the {tool} used on?", f"{verb.capitalize()} the {tool} used on {{first}} and not {{second}}?",
        f"{thing} used on {{state}}", (thing,),
        _pour if icon is None else partial(_use, tool=icon, angle=angle),
    )  # fmt: skip


CONCEPTS = (
    _concept("hammer", things.hammer, "a nail", "a loaf of bread", "a sheet of paper", "a plant", angle=45),
    _concept("knife", things.knife, "a loaf of bread", "a nail", "a lock", "a painting"),
    _concept("scissors", things.scissors, "a sheet of paper", "a nail", "a lock", "a log"),
    _concept("key", things.key, "a lock", "a loaf of bread", "a plant", "a log"),
    _concept("watering can", None, "a plant", "a loaf of bread", "a sheet of paper", "a painting"),
    _concept("saw", things.saw, "a log", "a sheet of paper", "a plant", "a painting"),
    _concept("paintbrush", things.paintbrush, "a painting", "a nail", "a lock", "a log"),
)  # fmt: skip
