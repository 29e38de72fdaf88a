from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from claim_tables import FORMS, ORDERS, cell, twelve_claim_pairs, with_wrong_test_answers
from plain_selection import best
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, pair_bootstrap, read_scores
from unprior.baselines.controls import guided_answers
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq5.claims import (
    CLAIM_SEED,
    claim_effects,
    claim_forms,
    claim_options,
    effect_of,
    exchanges,
    fit_on_claims,
    fitted_form,
    in_fitted_form,
    read_claim,
)

TABLE = twelve_claim_pairs()
TEST = TABLE.where(split="test")
ROWS = TEST.arrow.to_pylist()
ANSWERS = np.random.default_rng(5).integers(-1, 2, len(TEST))
SAID = [None if answer < 0 else ("yes", "no")[answer] for answer in ANSWERS.tolist()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ORDERS)
def test_form_and_order_are_read_off_the_columns_or_else_the_name(form: str, order: str) -> None:
    assert read_claim(form, order, "any name") == (form, order)
    assert read_claim(form, order, "7-cf-choice-ordinary-first") == (form, order), "columns come first"
    assert read_claim(None, None, f"a-b-7-cf-{form}-{order}") == (form, order)


@pytest.mark.parametrize("name", [None, "12-cf-qa", "12-cf-contrastive", "contrastive-ordinary-first"])
def test_a_name_that_does_not_tell_is_refused(name: str | None) -> None:
    with pytest.raises(UnpriorError, match="has form None and claim_order None; the study needs one of contrastive"):
        read_claim(None, None, name)


@pytest.mark.parametrize(("form", "order"), [("choice", None), (None, "ordinary-first"), ("other", "ordinary-first")])
def test_columns_that_tell_half_are_refused(form: str | None, order: str | None) -> None:
    with pytest.raises(UnpriorError, match="example '1-cf-choice-ordinary-first' has form"):
        read_claim(form, order, "1-cf-choice-ordinary-first")


def test_tables_of_version_0_1_0_name_form_and_order_in_the_example_only(tmp_path: Path) -> None:
    stored = tmp_path / "forms.parquet"
    pq.write_table(TEST.arrow.drop_columns(["form", "claim_order"]), stored)
    old = read_scores(stored)
    assert set(old.column("form")) == {None}
    renamed = ScoreTable.from_rows([row | {"example_id": str(place)} for place, row in enumerate(ROWS)])
    for table in (old, renamed):
        for name, form in claim_forms(table).items():
            for place, rows in form.rows.items():
                assert rows.tolist() == claim_forms(TEST)[name].rows[place].tolist()


def test_rows_of_a_form_are_aligned_by_pair() -> None:
    forms = claim_forms(TEST)
    assert tuple(forms) == FORMS
    for name, form in forms.items():
        assert form.pairs == tuple(range(5, 13))
        for (order, side), rows in form.rows.items():
            assert rows.tolist() == cell(ROWS, name, order, side)


def test_a_pair_without_all_its_questions_is_refused() -> None:
    with pytest.raises(UnpriorError, match="pair 5 does not have both images in both claim orders of the contrastive"):
        claim_forms(TEST.take(np.arange(1, len(TEST))))
    other = ScoreTable.from_rows([row for row in ROWS if "-choice-" in row["example_id"]])
    with pytest.raises(UnpriorError, match="no row of split test has the contrastive form"):
        fitted_form(other)
    with pytest.raises(UnpriorError, match="no row of split dev has the contrastive form"):
        in_fitted_form(other.with_columns(split="dev"), "dev")


@pytest.mark.parametrize("chosen", [None, np.arange(8) % 3 == 0])
def test_effects_agree_with_plain_loops(chosen: np.ndarray | None) -> None:
    form = claim_forms(TEST)["instead"]
    effects = claim_effects(form, ANSWERS, chosen, resamples=200)
    members = range(8) if chosen is None else np.flatnonzero(chosen).tolist()
    for side in ("cf", "cs"):
        nets = dict.fromkeys(members, 0)
        for order in ORDERS:
            places = [cell(ROWS, "instead", order, side)[member] for member in members]
            repaired = sum(ROWS[at]["original"] != ROWS[at]["answer"] == SAID[at] for at in places)
            harmed = sum(ROWS[at]["original"] == ROWS[at]["answer"] != SAID[at] for at in places)
            found = effect_of(effects, order, side)
            assert (found.change.repairs, found.change.harms, found.change.total) == (repaired, harmed, len(places))
            assert found.low <= found.change.delta <= found.high
            for member, at in zip(members, places, strict=True):
                nets[member] += (SAID[at] == ROWS[at]["answer"]) - (ROWS[at]["original"] == ROWS[at]["answer"])
        together = effect_of(effects, None, side)
        assert together.change.delta == pytest.approx(sum(nets.values()) / (2 * len(nets)))
        assert together.p is None
        # Another draw of the same bootstrap: many resamples agree.
        many = effect_of(claim_effects(form, ANSWERS, chosen, resamples=20_000), None, side)
        plain = pair_bootstrap([[net / 2] for net in nets.values()], resamples=20_000, seed=1)
        assert (many.low, many.high) == pytest.approx((plain.low[0], plain.high[0]), abs=0.07)


def test_no_pairs_have_no_effect() -> None:
    effects = claim_effects(claim_forms(TEST)["choice"], ANSWERS, np.zeros(8, np.bool_))
    assert all(np.isnan([effect.change.delta, effect.low, effect.high]).all() for effect in effects)
    assert not any(effect.clear for effect in effects)


def test_consistency_and_joint_accuracy_agree_with_plain_loops() -> None:
    originals = [row["original"] for row in ROWS]
    for found in exchanges(claim_forms(TEST)["choice"], ANSWERS):
        first, second = (cell(ROWS, "choice", order, found.side) for order in ORDERS)
        for given, consistent, twice in zip((originals, SAID), found.consistent, found.right_twice, strict=True):
            pairs = [(given[one], given[other]) for one, other in zip(first, second, strict=True)]
            right = [
                given[one] == ROWS[one]["answer"] and given[other] == ROWS[other]["answer"]
                for one, other in zip(first, second, strict=True)
            ]
            assert consistent.count == sum(pair in (("yes", "no"), ("no", "yes")) for pair in pairs)
            assert (twice.count, twice.total) == (sum(right), 8)


def test_fitting_uses_both_orders_of_the_contrastive_development_rows_only() -> None:
    rows = [row for row in TABLE.arrow.to_pylist() if row["split"] == "dev" and "-contrastive-" in row["example_id"]]
    development = ScoreTable.from_rows(rows)
    fitted = fit_on_claims(TABLE, 0.1)
    expected = SelectivePriorCalibrator(epsilon_cs=0.1).fit(development)
    assert fitted.calibrator.settings_ == expected.settings_
    assert (fitted.spc == expected.predict(TEST).final_positions).all()
    assert (fitted.spc != TEST.original_positions).any()

    def guided(scale: float) -> list[str | None]:
        return development.candidate_names(guided_answers(development, scale))

    scale, feasible = best(rows, (1.1, 1.5, 2.0), guided, Fraction(1, 10))
    assert fitted.cfg.settings == {"scale": {"qa": scale}}
    assert fitted.cfg.feasible == feasible
    assert (fitted.cfg.answers == guided_answers(TEST, scale)).all()


def test_right_answers_of_test_rows_have_no_part_in_what_is_fitted() -> None:
    one, other = fit_on_claims(TABLE, 0.1), fit_on_claims(with_wrong_test_answers(TABLE), 0.1)
    assert one.calibrator.settings_ == other.calibrator.settings_
    assert (one.spc == other.spc).all()
    assert (one.cfg.answers == other.cfg.answers).all()


def test_the_seed_is_the_papers_unless_another_is_given() -> None:
    inputs = StudyInputs(TABLE)
    assert claim_options(inputs) == {"epsilon": 0.1, "resamples": 10_000, "seed": CLAIM_SEED}
    assert CLAIM_SEED == 20260715
    assert claim_options(dataclasses.replace(inputs, seed=7))["seed"] == 7
