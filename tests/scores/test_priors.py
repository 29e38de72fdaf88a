"""The paper's combinations of prior views, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from unprior import ScoreTable, UnpriorError
from unprior.scores.priors import COMBINATIONS, VIEWS, combine_priors, with_prior

# Four views of two candidates: centred they are ±1, ±2, ±3, and ∓1 (the mean image disagrees).
SCORES = {"text": [1.0, -1.0], "white": [4.0, 0.0], "black": [3.0, -3.0], "mean": [-1.0, 1.0]}


def views(*names: str) -> dict[str, np.ndarray]:
    return {name: np.array(SCORES[name])[:, None] for name in names or VIEWS}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("median", 1.5),  # median sign +1, median scale of 1, 2, 3, 1
        ("median3", 2.0),  # median scale of 1, 2, 3
        ("adjusted", 0.75 * 1.0 + 0.25 * 1.5),
        ("weighted", 1.0 + 0.25 * 1.0 * 0.5),  # median disagreement of 0, 0, 0, 2 is 0, so the weight is 1
    ],
)
def test_by_hand(name: str, expected: float) -> None:
    np.testing.assert_allclose(combine_priors(name, views()).ravel(), [expected, -expected])


def test_disagreement_weakens_the_adjustment() -> None:
    split = {
        "text": np.array([[1.0], [-1.0]]), "white": np.array([[1.0], [-1.0]]),
        "black": np.array([[-2.0], [2.0]]), "mean": np.array([[-2.0], [2.0]]),
    }  # fmt: skip
    # Signs +1, +1, −1, −1: median 0, disagreement 1, weight 0.1 / 1.1.
    expected = 1.0 + 0.25 * (0.1 / 1.1) * (0.0 - 1.0)
    np.testing.assert_allclose(combine_priors("weighted", split).ravel(), [expected, -expected])


@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_are_centred_and_ignore_constants(name: str) -> None:
    generator = np.random.default_rng(0)
    scores = {view: generator.normal(size=(4, 50)) for view in VIEWS}
    combined = combine_priors(name, scores)
    np.testing.assert_allclose(combined.mean(axis=0), 0.0, atol=0.7 if name.startswith("median") else 0.3)
    shifted = {view: values + 7.0 for view, values in scores.items()}
    np.testing.assert_allclose(combine_priors(name, shifted), combined, atol=1e-12)


def test_a_view_without_preference_is_not_divided_by_zero() -> None:
    flat = views() | {"mean": np.zeros((2, 1))}
    assert np.isfinite(combine_priors("weighted", flat)).all()


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UnpriorError, match=r"median needs the views text, white, black, mean; mean is not scored"):
        combine_priors("median", views("text", "white", "black"))
    with pytest.raises(UnpriorError, match="unknown combination 'average'"):
        combine_priors("average", views())
    assert combine_priors("median3", views("text", "white", "black")).shape == (2, 1)


def row(count: int, **views: list[float]) -> dict[str, object]:
    names = [f"c{index}" for index in range(count)]
    return {
        "pair_id": 1, "side": "cf", "task": "mc", "candidates": names, "original": names[0], "answer": names[1],
        "image_scores": [0.0] * count, "prior_scores": list(range(count)), "views": views or None,
    }  # fmt: skip


def test_a_table_takes_another_prior() -> None:
    table = ScoreTable.from_rows([row(2, white=[5.0, 6.0]), row(3, white=[7.0, 8.0, 9.0]), row(2, white=[1.0, 0.0])])
    assert with_prior(table, "text") is table
    assert with_prior(table, "white").column("prior_scores") == [[5.0, 6.0], [7.0, 8.0, 9.0], [1.0, 0.0]]
    assert table.column("prior_scores")[0] == [0.0, 1.0]  # the table itself stays


def test_a_table_takes_a_combination() -> None:
    rows = [row(3, white=[2.0, 0.0, 1.0], black=[3.0, 1.0, 0.0], mean=[0.0, 0.0, 3.0]) for _ in range(2)]
    table = ScoreTable.from_rows(rows)
    views = {"text": [0.0, 1.0, 2.0], "white": [2.0, 0.0, 1.0], "black": [3.0, 1.0, 0.0], "mean": [0.0, 0.0, 3.0]}
    for name in COMBINATIONS:
        expected = combine_priors(name, {view: np.array(scores)[:, None] for view, scores in views.items()}).ravel()
        np.testing.assert_allclose(with_prior(table, name).column("prior_scores"), [expected] * 2)


def test_a_missing_view_is_named_with_its_remedy() -> None:
    table = ScoreTable.from_rows([row(2, white=[5.0, 6.0]), row(2)])
    with pytest.raises(
        UnpriorError, match=r"1 rows have no view 'white' \(first: row 2\); `unprior score --views white`"
    ):
        with_prior(table, "white")
    with pytest.raises(UnpriorError, match="unknown prior 'grey'"):
        with_prior(table, "grey")
