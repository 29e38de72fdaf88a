"""REVIS's numbers: planted directions are found again, layer and threshold by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unprior.baselines.revis.directions import (
    CaptionStates,
    choose_layer,
    cosine,
    directions,
    principal_component,
    risk,
    separation,
)


@pytest.fixture
def planted() -> tuple[CaptionStates, np.ndarray, np.ndarray]:
    """States where the image adds 3·visual + 5·prior, and a hallucination without an image adds 4·prior."""
    rng = np.random.default_rng(0)
    visual, prior = np.linalg.qr(rng.standard_normal((64, 2)))[0].T
    content, other, unknown = (rng.standard_normal((100, 64)) for _ in range(3))

    def noise() -> np.ndarray:
        return 0.1 * rng.standard_normal((100, 64))

    states = CaptionStates(
        seen=content + 3 * visual + 5 * prior + noise(),
        seen_hallucinated=other + noise(),
        blind=content + noise(),
        blind_hallucinated=unknown + 4 * prior + noise(),
        blind_unknown=unknown + noise(),
    )
    return states, visual, prior


def test_planted_directions_are_recovered_with_their_signs_and_length(
    planted: tuple[CaptionStates, np.ndarray, np.ndarray],
) -> None:
    states, visual, prior = planted
    found_visual, found_prior = directions(states)
    assert cosine(found_visual, visual) > 0.95
    assert cosine(found_prior, prior) > 0.95
    assert abs(cosine(found_visual, found_prior)) < 1e-6
    assert np.linalg.norm(found_prior) == pytest.approx(1)
    # Rows that remain are 3·visual with noise in 63 directions: √(9 + 63·2·0.01) = 3.203.
    assert np.linalg.norm(found_visual) == pytest.approx(3.203, abs=0.03)


def test_the_shared_shift_is_found_even_where_another_direction_varies_more() -> None:
    # Around their mean the rows vary only along the second axis; centring would give that one.
    rows = np.array([[3.0, 1.0], [3.0, -1.0]])
    assert principal_component(rows).tolist() == pytest.approx([1.0, 0.0])
    assert principal_component(-rows).tolist() == pytest.approx([-1.0, 0.0])


def test_where_the_image_adds_nothing_there_is_no_direction_and_no_risk() -> None:
    states = np.array([[1.0, 2.0], [3.0, 4.0]])
    visual, _ = directions(CaptionStates(states, states, states, states, 0 * states))
    assert visual.tolist() == [0.0, 0.0]
    assert risk(states, visual).tolist() == [0.0, 0.0]


def test_risk_is_the_negative_cosine() -> None:
    assert risk(np.array([[3.0, 4.0], [-2.0, 0.0]]), np.array([2.0, 0.0])).tolist() == pytest.approx([-0.6, 1.0])


def test_separation_counts_images_whose_own_caption_is_nearer(
    planted: tuple[CaptionStates, np.ndarray, np.ndarray],
) -> None:
    visual = np.array([1.0, 0.0])
    seen = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    hallucinated = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 1.0], [2.0, 1.0]])
    states = replace(planted[0], seen=seen, seen_hallucinated=hallucinated)
    assert separation(states, visual) == 0.5


def test_the_search_goes_from_the_last_layer_down_and_takes_the_first_that_separates() -> None:
    factual = np.tile([0.0, 0.1, 0.2, 0.3, 0.4], (4, 1))  # mean 0.2; 85 % lie below 0.3 + 0.4·0.1
    wrong = np.array([[0.9], [0.9], [0.3], [0.2]])  # in the last layer as much as, but not more
    choice = choose_layer(wrong, factual)
    assert choice.layer == 2
    assert choice.threshold == pytest.approx(0.34)
    assert choice.false_positive_risk == pytest.approx((0.9, 0.9, 0.3, 0.2))
    assert choice.factual_risk == pytest.approx((0.2,) * 4)
    assert "riskier (0.3000) than factual answers (0.2000)" in choice.reason


@pytest.mark.parametrize(("depth", "lowest"), [(4, 1), (20, 6), (21, 10), (64, 10)])
def test_the_search_ends_at_the_lowest_layer(depth: int, lowest: int) -> None:
    factual, wrong = np.zeros((depth, 2)), -np.ones((depth, 1))
    wrong[lowest] = 0.5
    assert choose_layer(wrong, factual).layer == lowest
    wrong[lowest], wrong[lowest - 1] = -1, 0.5
    choice = choose_layer(wrong, factual)
    assert (choice.layer, choice.threshold) == (None, None)
    assert choice.reason == (
        f"in no layer from {depth - 1} down to {lowest} are false positives riskier than factual answers"
    )


def test_without_false_positives_or_factual_answers_there_is_no_choice() -> None:
    some, none = np.zeros((4, 3)), np.zeros((4, 0))
    choice = choose_layer(none, some)
    assert (choice.layer, choice.reason) == (None, "no false positive among the presence questions")
    assert choice.false_positive_risk == ()
    assert choice.factual_risk == (0.0,) * 4
    assert choose_layer(some, none).reason == "no factual answer among the presence questions"
