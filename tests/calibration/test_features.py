from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import straightforward
from unprior import ScoreTable
from unprior.calibration.features import FEATURE_NAMES, observe, top_two


def features_of(table: ScoreTable) -> np.ndarray:
    features = np.empty((len(table), len(FEATURE_NAMES)))
    for block in table.blocks():
        features[block.rows] = observe(block).features
    return features


def test_features_equal_a_row_by_row_computation(table: ScoreTable) -> None:
    expected = [straightforward.features(row) for row in table.arrow.to_pylist()]
    np.testing.assert_allclose(features_of(table), expected, rtol=0, atol=1e-12)


def test_features_of_an_example_worked_out_by_hand() -> None:
    # softmax of the image scores is (3/4, 1/4), of the prior scores (1/2, 1/2).
    row = {
        "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "no", "answer": "no",
        "image_scores": [np.log(3.0), 0.0], "prior_scores": [-7.0, -7.0],
    }  # fmt: skip
    values = dict(zip(FEATURE_NAMES, features_of(ScoreTable.from_rows([row]))[0], strict=True))
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(2)
    mixture = np.array([0.625, 0.375])
    divergence = 0.5 * (0.75 * np.log(0.75 / mixture[0]) + 0.25 * np.log(0.25 / mixture[1]))
    divergence += 0.5 * (0.5 * np.log(0.5 / mixture[0]) + 0.5 * np.log(0.5 / mixture[1]))
    assert values == pytest.approx(
        {
            "bias": 1.0,
            "candidate_count": 0.5,
            "image_entropy": entropy,
            "prior_entropy": 1.0,
            "image_peak": 0.75,
            "prior_peak": 0.5,
            "image_margin": np.tanh(np.log(3.0) / 4),
            "prior_margin": 0.0,
            "divergence": divergence,
            "image_agrees_with_prior": 1.0,  # the prior is tied, and ties go to the first
            "original_agrees_with_image": 0.0,
            "original_agrees_with_prior": 0.0,
            "margin_gap": np.tanh(-np.log(3.0) / 4),
        }
    )


def test_a_null_original_is_seen_as_the_image_winner() -> None:
    row = {
        "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": None, "answer": "no",
        "image_scores": [0.0, 1.0], "prior_scores": [1.0, 0.0],
    }  # fmt: skip
    values = dict(zip(FEATURE_NAMES, features_of(ScoreTable.from_rows([row]))[0], strict=True))
    assert values["original_agrees_with_image"] == 1.0
    assert values["original_agrees_with_prior"] == 0.0


def test_extreme_scores_give_finite_features() -> None:
    row = {
        "pair_id": 1, "side": "cf", "task": "mc", "candidates": ["a", "b", "c"], "original": "a", "answer": "b",
        "image_scores": [0.0, -1e4, -1e5], "prior_scores": [-1e5, 0.0, -3.0],
    }  # fmt: skip
    features = features_of(ScoreTable.from_rows([row]))[0]
    assert np.isfinite(features).all()
    assert features[FEATURE_NAMES.index("divergence")] == pytest.approx(np.log(2), abs=0.03)


def test_probabilities_inside_logarithms_are_floored() -> None:
    """At p ≈ 1e-15 the logarithm is that of 1e-12."""
    gap = -np.log(1e-15)
    row = {
        "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes", "answer": "no",
        "image_scores": [0.0, -gap], "prior_scores": [0.0, -gap],
    }  # fmt: skip
    entropy = features_of(ScoreTable.from_rows([row]))[0][FEATURE_NAMES.index("image_entropy")] * np.log(2)
    small = 1e-15 / (1 + 1e-15)
    assert entropy == pytest.approx(-(1 - small) * np.log1p(-small) - small * np.log(1e-12), rel=1e-6)


@given(st.lists(st.lists(st.integers(-5, 5), min_size=3, max_size=3), min_size=1, max_size=20))
def test_top_two_is_a_stable_sort(columns: list[list[int]]) -> None:
    scores = np.array(columns, dtype=np.float64).T
    winner, first, second = top_two(scores)
    for column, values in enumerate(columns):
        assert winner[column] == values.index(max(values))
        assert [first[column], second[column]] == sorted(values, reverse=True)[:2]
