"""All concepts of the microworld, and which seeds are for what."""

from __future__ import annotations

from unprior.benchmarks.microworld import (
    animal_behavior,
    animal_parts,
    body_parts,
    causality,
    color,
    everyday_objects,
    luminescence,
    material,
    object_function,
    physical_state,
    plant_structure,
    size_scale,
    spatial,
    temperature,
)
from unprior.benchmarks.microworld.concepts import Concept

_MODULES = (
    body_parts, animal_parts, plant_structure, everyday_objects,
    animal_behavior, object_function, spatial, size_scale, causality,
    color, material, temperature, physical_state, luminescence,
)  # fmt: skip

CONCEPTS: tuple[Concept, ...] = tuple(concept for module in _MODULES for concept in module.CONCEPTS)
"""Every concept, in the order of the subcategories."""

OBJECTS: tuple[str, ...] = tuple(dict.fromkeys(name for concept in CONCEPTS for name in concept.objects))
"""Everything whose presence can be asked for, with its article."""

_BODIES = frozenset(
    ("a face", "a head", "a leg", "a foot", "a hand", "a person", "a shoe", "a hat", "a top hat", "a boot",
     "a red boot", "a blue boot")
)  # fmt: skip
_SHOW_BODIES = frozenset(
    ("Body Parts", "Animal Parts", "Animal Behavior", "Size Scale", "Spatial", "Color", "Causality",
     "Luminescence/Transparency")
)  # fmt: skip
_SCENERY = frozenset(
    ("a tree", "a flower", "a tulip", "a cloud", "a house", "a roof", "a window", "a chimney", "a candle", "a flame",
     "a campfire", "a cup", "a plate", "a bowl", "a basket", "a bottle", "a drinking glass", "a jar", "a table")
)  # fmt: skip
_SHOW_SCENERY = frozenset(
    ("Plant Structure", "Animal Behavior", "Object Function", "Spatial", "Size Scale", "Causality", "Material",
     "Temperature", "Physical State", "Everyday Objects")
)  # fmt: skip


def absent_objects(concept: Concept) -> tuple[str, ...]:
    """Things that are surely in no image of a concept; parts and scenery that a drawing may show do not count."""
    texts = " ".join((concept.name, concept.question, concept.caption, *concept.states))
    return tuple(
        name
        for name in OBJECTS
        if name not in concept.objects
        and name.split()[-1] not in texts
        and not (name in _BODIES and concept.subcategory in _SHOW_BODIES)
        and not (name in _SCENERY and concept.subcategory in _SHOW_SCENERY)
    )


BENCHMARK_SEEDS = range(1_000)
"""Worlds for reporting. No setting of the embedded model was chosen by looking at them."""
SELECTION_SEEDS = range(1_000, 2_000)
"""Worlds for choosing settings of the embedded model."""
TRAINING_SEEDS = range(1_000_000, 2_000_000)
"""Worlds for training the embedded model."""
