"""The study of trust measures what is scored already."""

from __future__ import annotations

import math

import numpy as np
import pytest

from claim_tables import FORMS, ORDERS, twelve_claim_pairs, with_claim_views
from study_checks import is_plain
from unprior import ScoreTable
from unprior.studies.beyond.prior_trust import study_prior_trust


@pytest.fixture(scope="module")
def tested() -> ScoreTable:
    return with_claim_views(twelve_claim_pairs()).where(split="test")


def test_measures_equal_a_count_by_hand(tested: ScoreTable) -> None:
    result = study_prior_trust(tested)
    rows = [row for row in tested.arrow.to_pylist() if row["side"] == "cf"]
    for form in result.trust.forms:
        first, second = (
            np.array([row["prior_scores"][0] - row["prior_scores"][1] for row in rows
                      if (row["form"], row["claim_order"]) == (form.form, order)])
            for order in ORDERS
        )  # fmt: skip
        options = []
        for row in rows:
            if (row["form"], row["claim_order"]) == (form.form, ORDERS[0]):
                views = dict(row["views"])
                options.append(views["options-text-first"][0] - views["options-text-second"][0])
        prior = (first - second) / 2
        assert form.questions == 8
        assert form.flips == np.mean(first * second < 0)
        assert form.agrees == np.mean(prior * np.array(options) > 0)
        assert form.aligned == np.mean(prior > 0)
        assert form.yes_bias == pytest.approx(np.mean(first + second) / 2)
    assert tuple(form.form for form in result.trust.forms) == FORMS
    assert is_plain(result)


def test_neither_images_nor_the_order_of_candidates_have_a_part_in_it(tested: ScoreTable) -> None:
    rows = [row | {"views": dict(row["views"])} for row in tested.arrow.to_pylist()]
    turned = [
        row | {"image_scores": [-3.0, -1.0], "candidates": ["no", "yes"], "prior_scores": row["prior_scores"][::-1]}
        for row in rows
    ]
    before, after = (study_prior_trust(ScoreTable.from_rows(each)).records() for each in (rows, turned))
    assert before == after


def test_without_canonical_scores_nobody_knows_whether_options_agree() -> None:
    result = study_prior_trust(twelve_claim_pairs().where(split="test"))
    assert all(math.isnan(form.agrees) for form in result.trust.forms)
    assert is_plain(result)
