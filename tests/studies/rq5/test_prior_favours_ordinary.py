from __future__ import annotations

import json

import numpy as np
import pytest

from claim_tables import FORMS, cell, hopeless_claims, twelve_claim_pairs
from unprior import ScoreTable
from unprior.studies.rq5.claims import (
    claim_effects,
    claim_forms,
    effect_of,
    fit_on_claims,
)
from unprior.studies.rq5.prior_favours_ordinary import PriorFavours, study_prior_favours

TABLE = twelve_claim_pairs()
FITTED = fit_on_claims(TABLE, 0.1)
ROWS = FITTED.test.arrow.to_pylist()


@pytest.fixture(scope="module")
def result() -> PriorFavours:
    return study_prior_favours(TABLE, resamples=100)


def test_pairs_are_grouped_by_text_only_scores(result: PriorFavours) -> None:
    yes = [row["prior_scores"][0] >= row["prior_scores"][1] for row in ROWS]
    assert [(group.form, group.favours) for group in result.groups] == [
        (form, flag) for form in FORMS for flag in (True, False)
    ]
    sizes = []
    for group in result.groups:
        first, second = (cell(ROWS, group.form, order, "cf") for order in ("ordinary-first", "atypical-first"))
        favours = np.array([yes[one] and not yes[other] for one, other in zip(first, second, strict=True)])
        chosen = favours == group.favours
        sizes.append(group.pairs.count)
        assert (group.pairs.count, group.pairs.total) == (int(chosen.sum()), 8)
        expected = claim_effects(claim_forms(FITTED.test)[group.form], FITTED.spc, chosen, resamples=100)
        assert str(group.effects) == str(expected), "compared as text because NaN is not equal to itself"
    assert min(sizes[1::2]) < max(sizes[1::2]), "the groups differ between forms"


def test_groups_together_are_the_whole_form(result: PriorFavours) -> None:
    for one, other in zip(result.groups[::2], result.groups[1::2], strict=True):
        whole = claim_effects(claim_forms(FITTED.test)[one.form], FITTED.spc, resamples=20)
        for side in ("cf", "cs"):
            parts = [effect_of(group.effects, None, side).change for group in (one, other)]
            assert sum(part.repairs for part in parts) == effect_of(whole, None, side).change.repairs
            assert sum(part.harms for part in parts) == effect_of(whole, None, side).change.harms


def test_empty_groups_are_dashes_and_none(result: PriorFavours) -> None:
    rows = [row | {"prior_scores": [-0.1, -3.0]} for row in TABLE.arrow.to_pylist()]
    nobody = study_prior_favours(ScoreTable.from_rows(rows), resamples=20)
    assert all(row.cells[1:6] == ("0", "0.0", "–/–", "–", "–") for row in nobody.table.rows[::2])
    records = nobody.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert {record["delta"] for record in records if record["prior_favours_ordinary"]} == {None}
    assert any("there is no pair in any form" in sentence for sentence in nobody.sentences)
    assert nobody.figure() is not None
    assert len(result.records()) == 8 * 6


def test_sentences_count_forms_that_gain_in_both_orders(result: PriorFavours) -> None:
    groups = [group for group in result.groups if group.favours and group.pairs.count]
    gains = [
        all(effect_of(group.effects, order, "cf").change.delta > 0 for order in ("ordinary-first", "atypical-first"))
        for group in groups
    ]
    assert f"in both claim orders in {sum(gains)} of {len(groups)} forms" in result.sentences[0]
    abstaining = study_prior_favours(hopeless_claims(), resamples=20).sentences
    assert abstaining[0].startswith("SPC (standard, ε = 0.10) abstains")
    assert "in both claim orders in 0 of" in abstaining[2]
