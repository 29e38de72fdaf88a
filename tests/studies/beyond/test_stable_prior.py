"""The study of stable priors on made-up forms with canonical views."""

from __future__ import annotations

import numpy as np
import pytest

from claim_tables import ORDERS, twelve_claim_pairs, with_claim_views
from study_checks import is_plain
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.calibration.stable import CANONICAL_VIEWS
from unprior.evaluation.metrics import correct
from unprior.studies.beyond.stable_prior import (
    BIASES,
    REMEDIES,
    StablePrior,
    add_bias,
    study_stable_prior,
    with_swapped,
)
from unprior.studies.rq5.claims import in_fitted_form


@pytest.fixture(scope="module")
def forms() -> ScoreTable:
    return with_claim_views(twelve_claim_pairs())


@pytest.fixture(scope="module")
def result(forms: ScoreTable) -> StablePrior:
    return study_stable_prior(forms, epsilon=0.3)


def test_the_swapped_prior_is_that_of_the_other_order(forms: ScoreTable) -> None:
    rows = with_swapped(forms).arrow.to_pylist()
    prior = {(row["pair_id"], row["side"], row["form"], row["claim_order"]): row["prior_scores"] for row in rows}
    for row in rows:
        other = ORDERS[1 - ORDERS.index(row["claim_order"])]
        views = dict(row["views"])
        assert views["swapped"] == prior[row["pair_id"], row["side"], row["form"], other]
        assert set(views) == {"swapped", *CANONICAL_VIEWS}


@pytest.mark.parametrize("image", [False, True])
def test_a_bias_is_added_to_yes_and_to_nothing_else(forms: ScoreTable, image: bool) -> None:
    full = with_swapped(forms)
    for before, after in zip(full.arrow.to_pylist(), add_bias(full, 2.5, image=image).arrow.to_pylist(), strict=True):
        odds = {"prior_scores": 2.5, "image_scores": 2.5 * image}
        for name, nats in odds.items():
            assert np.subtract(after[name], before[name]) == pytest.approx([nats, 0.0])
        old, new = dict(before["views"]), dict(after["views"])
        for name, scores in old.items():
            biased = name == "swapped" or "canonical-text" in name or (image and "canonical-image" in name)
            assert np.subtract(new[name], scores) == pytest.approx([2.5 * biased, 0.0])
        assert (before["original"], before["answer"]) == (after["original"], after["answer"])


def test_remedies_are_what_their_calibrators_do(forms: ScoreTable, result: StablePrior) -> None:
    full = with_swapped(forms)
    test = full.where(split="test")
    rows = test.arrow.to_pylist()
    for name, (_, parameters) in REMEDIES.items():
        fitted = SelectivePriorCalibrator(epsilon_cs=0.3, **parameters).fit(in_fitted_form(full, "dev"), split=None)
        right, before = (
            correct(test, given) for given in (fitted.predict(test).final_positions, test.original_positions)
        )
        remedy = result.of(name)
        assert len(remedy.cells) == 8
        for cell in remedy.cells:
            for side, delta in (("cf", cell.delta_cf), ("cs", cell.delta_cs)):
                chosen = [
                    place
                    for place, row in enumerate(rows)
                    if (row["form"], row["claim_order"], row["side"]) == (cell.form, cell.order, side)
                ]
                assert delta == pytest.approx(right[chosen].mean() - before[chosen].mean())
        assert remedy.mean_cf == pytest.approx(np.mean([cell.delta_cf for cell in remedy.cells]))
        assert remedy.worst_cs == min(cell.delta_cs for cell in remedy.cells)
        assert remedy.answers == len(test) * (len(BIASES) - 1)
        assert remedy.worst_with_bias[BIASES.index(0.0)] == pytest.approx(remedy.worst_cs)


def test_stable_priors_are_not_moved_and_strict_answers_are_the_same(result: StablePrior) -> None:
    strict = result.of("strict")
    assert strict.same == (1.0, 1.0)
    assert (strict.moved, strict.moved_by_both) == (0, 0)
    assert result.of("canonical").moved == result.of("symmetric").moved == 0
    assert len({round(value, 9) for value in strict.worst_with_bias}) == 1
    plain = result.of("plain")
    assert plain.moved > 0
    assert min(plain.same) < 1.0
    assert plain.moved_by_both is None


def test_it_is_fit_to_be_written(result: StablePrior) -> None:
    assert is_plain(result)
    assert len(result.records()) == len(REMEDIES) * 8
    (consistency,) = result.further_tables
    assert [row.cells[0] for row in consistency.rows] == ["original answers", *(name for name, _ in REMEDIES.values())]
    assert consistency.rows[-1].cells[-1] == "0 (0)"
    assert "the same claim in all forms and orders on 100.0 % of CF and 100.0 % of CS pairs" in result.sentences[1]
    figure = result.figure()
    assert figure is not None
    assert len(figure.axes) == 2


def test_who_abstains_is_said(forms: ScoreTable) -> None:
    rows = [row | {"views": dict(row["views"])} for row in forms.arrow.to_pylist()]
    for row in rows:
        if row["split"] == "dev":  # whatever changes the original answers makes them worse
            row |= {"original": row["answer"], "image_scores": _against(row["answer"])}
    result = study_stable_prior(with_claim_views(ScoreTable.from_rows(rows)), epsilon=0.0)
    assert [each for each in result.sentences if each.endswith("abstains.")] == [
        f"SPC with the {REMEDIES[each.name][0]} abstains." for each in result.remedies if each.abstains
    ]
    assert result.of("plain").abstains
    assert result.of("plain").mean_cf == 0.0


def _against(answer: str) -> list[float]:
    return [-9.0, -0.1] if answer == "yes" else [-0.1, -9.0]
