"""The concepts: enough of them, texts that fit, drawings that show their state and nothing else of it."""

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from unprior.benchmarks.microworld import BENCHMARK_SEEDS, CONCEPTS, SELECTION_SEEDS, TRAINING_SEEDS, render
from unprior.benchmarks.microworld.canvas import Canvas
from unprior.benchmarks.microworld.concepts import Concept
from unprior.benchmarks.microworld.world import OBJECTS, absent_objects
from unprior.benchmarks.taxonomy import SUBCATEGORIES

each_concept = pytest.mark.parametrize("concept", CONCEPTS, ids=lambda concept: concept.name)


def test_every_subcategory_has_at_least_five_concepts() -> None:
    counts = Counter(concept.subcategory for concept in CONCEPTS)
    assert set(counts) == {name for _, name, _ in SUBCATEGORIES}
    assert min(counts.values()) >= 5
    assert len({concept.name for concept in CONCEPTS}) == len(CONCEPTS)


def test_seeds_for_training_selection_and_reporting_are_disjoint() -> None:
    for first, second in combinations((BENCHMARK_SEEDS, SELECTION_SEEDS, TRAINING_SEEDS), 2):
        assert max(first[0], second[0]) > min(first[-1], second[-1])


@each_concept
def test_texts_fit_their_templates(concept: Concept) -> None:
    assert len(set(concept.states)) == len(concept.states) == 4
    assert concept.question.endswith("?")
    claim = concept.claim.format(first=concept.ordinary, second=concept.alternatives[0])
    assert concept.ordinary in claim
    assert concept.alternatives[0] in claim
    assert claim.endswith("?")
    assert concept.alternatives[1] in concept.caption.format(state=concept.alternatives[1])
    assert all(name.split()[0] in {"a", "an"} for name in concept.objects)


@each_concept
def test_states_look_different_at_the_size_a_small_model_sees(concept: Concept) -> None:
    images = {
        state: np.asarray(render(concept, state, "seed", size=144, clean=True).resize((72, 72)), dtype=float)
        for state in concept.states
    }
    for first, second in combinations(concept.states, 2):
        changed = np.abs(images[first] - images[second]).max(axis=2) > 40
        assert changed.sum() >= 30, f"{first} and {second} differ in {changed.sum()} of 5184 pixels"


@each_concept
def test_looks_do_not_depend_on_the_state(concept: Concept) -> None:
    """Chance is used in the same way whatever the state, so the two images of a pair are alike in all else."""
    after = []
    for state in concept.states:
        rng = random.Random(5)
        concept.draw(Canvas.on(Image.new("RGB", (64, 64))), state, rng)
        after.append(rng.getstate())
    assert after.count(after[0]) == len(after)


@each_concept
def test_a_seed_gives_the_same_image_and_another_seed_another(concept: Concept) -> None:
    first, again, other = (render(concept, concept.ordinary, seed, size=72).tobytes() for seed in ("1", "1", "2"))
    assert first == again != other


@each_concept
def test_what_is_absent_is_not_there(concept: Concept) -> None:
    absent = absent_objects(concept)
    assert len(absent) > 20
    assert not set(absent) & set(concept.objects)


def test_every_object_can_be_present_or_absent() -> None:
    assert set(OBJECTS) == {name for concept in CONCEPTS for name in absent_objects(concept)}
