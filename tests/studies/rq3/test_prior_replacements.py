from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from small_tables import Row, example, twelve_pairs
from unprior import ScoreTable
from unprior.studies.rq3.prior_replacements import (
    Replacement,
    derangements,
    image_as_prior,
    mean_prior,
    prior_of_another_question,
    shuffled_prior,
)

TABLE = twelve_pairs()
DEVELOPMENT, TEST = TABLE.where(split="dev"), TABLE.where(split="test")


def _centred(row: Row) -> tuple[float, ...]:
    scores = row["prior_scores"]
    return tuple(round(score - sum(scores) / len(scores), 9) for score in scores)


def _replaced(replace: Replacement, table: ScoreTable, seed: int = 0) -> list[Row]:
    rows: list[Row] = replace(DEVELOPMENT, table, np.random.default_rng(seed)).arrow.to_pylist()
    return rows


def test_image_scores_become_the_prior() -> None:
    assert all(row["prior_scores"] == row["image_scores"] for row in _replaced(image_as_prior, TEST))


def test_the_mean_is_over_development_rows_of_the_same_task() -> None:
    for row in _replaced(mean_prior, TEST):
        alike = [_centred(other) for other in DEVELOPMENT.arrow.to_pylist() if other["task"] == row["task"]]
        mean = [sum(entries) / len(alike) for entries in zip(*alike, strict=True)]
        assert row["prior_scores"] == pytest.approx(mean)


@pytest.mark.parametrize("table", [DEVELOPMENT, TEST])
def test_another_question_is_another_development_question_of_the_task(table: ScoreTable) -> None:
    owners = {(_centred(row), row["task"]): row["pair_id"] for row in DEVELOPMENT.arrow.to_pylist()}
    donors: dict[tuple[int, str], set[int]] = {}
    for seed in range(30):
        rows = _replaced(prior_of_another_question, table, seed)
        of_question: dict[tuple[int, str], set[int]] = {}
        for row in rows:
            key = (row["pair_id"], row["task"])
            of_question.setdefault(key, set()).add(owners[_centred(row), row["task"]])
        for key, owner in of_question.items():
            assert len(owner) == 1, "both images of a pair get the same prior"
            donors.setdefault(key, set()).update(owner)
    known = {row["pair_id"] for row in DEVELOPMENT.arrow.to_pylist()}
    assert all(given == known - {pair} for (pair, _), given in donors.items()), "all others occur, never the own"


@pytest.mark.parametrize("seed", range(5))
def test_shuffling_keeps_the_scores_of_a_row_but_none_at_its_place(seed: int) -> None:
    for before, after in zip(TEST.arrow.to_pylist(), _replaced(shuffled_prior, TEST, seed), strict=True):
        assert sorted(before["prior_scores"]) == sorted(after["prior_scores"])
        assert len(set(before["prior_scores"])) == len(before["candidates"])
        pairs = zip(before["prior_scores"], after["prior_scores"], strict=True)
        assert all(was != now for was, now in pairs)
        if len(before["candidates"]) == 2:
            assert after["prior_scores"] == before["prior_scores"][::-1]


@pytest.mark.parametrize(("count", "orders"), [(2, 1), (3, 2), (4, 9), (5, 44)])
def test_every_order_without_a_fixed_place_is_equally_likely(count: int, orders: int) -> None:
    draws = 400 * orders
    drawn = Counter(map(tuple, derangements(count, draws, np.random.default_rng(0)).T.tolist()))
    assert len(drawn) == orders
    assert all(sorted(order) == list(range(count)) for order in drawn)
    assert all(entry != place for order in drawn for place, entry in enumerate(order))
    # χ² with orders − 1 degrees of freedom; a fixed seed, so that this is one outcome and not a matter of luck.
    assert sum((seen - 400) ** 2 / 400 for seen in drawn.values()) < orders + 4 * (2 * orders) ** 0.5


@pytest.mark.parametrize("replace", [mean_prior, prior_of_another_question])
def test_what_no_development_question_is_like_gets_a_flat_prior(replace: Replacement) -> None:
    table = ScoreTable.from_rows([example(90, "cf", [-1.0, -2.0, -3.0], [-0.1, -2.0, -3.0], "A", "B")])
    assert _replaced(replace, table)[0]["prior_scores"] == [0.0, 0.0, 0.0]


def test_the_only_question_of_its_kind_has_no_other() -> None:
    table = ScoreTable.from_rows([example(1, "cf", [-1.0, -2.0], [-0.1, -2.0], "yes", "no")])
    assert prior_of_another_question(table, table, np.random.default_rng(0)).column("prior_scores") == [[0.0, 0.0]]


@pytest.mark.parametrize("replace", [prior_of_another_question, shuffled_prior])
def test_a_seed_gives_the_same_scores_twice_and_another_gives_others(replace: Replacement) -> None:
    first, again, other = (_replaced(replace, TEST, seed) for seed in (3, 3, 4))
    assert first == again != other
