from __future__ import annotations

import dataclasses
import json

import pytest

from claim_tables import hopeless_claims, twelve_claim_pairs
from small_tables import abstaining_calibrator, twelve_pairs
from unprior import SelectivePriorCalibrator
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq5.claim_order import STUDY, ClaimOrder, study_claim_order
from unprior.studies.rq5.claims import (
    claim_effects,
    claim_forms,
    effect_of,
    exchanges,
    fit_on_claims,
)

FORMS = twelve_claim_pairs()
ORIGINAL = SelectivePriorCalibrator(epsilon_cs=0.1).fit(twelve_pairs())


@pytest.fixture(scope="module")
def result() -> ClaimOrder:
    return study_claim_order(FORMS, ORIGINAL, resamples=100)


def test_every_method_answers_the_contrastive_test_questions(result: ClaimOrder) -> None:
    fitted = fit_on_claims(FORMS, 0.1)
    form = claim_forms(fitted.test)["contrastive"]
    given = (ORIGINAL.predict(fitted.test).final_positions, fitted.spc, fitted.cfg.answers)
    for method, answers in zip(result.methods, given, strict=True):
        assert method.effects == claim_effects(form, answers, resamples=100)
        assert method.exchanges == exchanges(form, answers)
    assert result.pairs == 8


def test_the_table_has_both_sides_of_every_method(result: ClaimOrder) -> None:
    assert [row.cells[0] for row in result.table.rows] == ["CF", "CS"] * 3
    first = result.methods[0]
    delta = effect_of(first.effects, "atypical-first", "cf").change.delta
    assert result.table.rows[0].cells[3] == f"{100 * delta:+.1f}"
    assert result.table.rows[0].cells[5] == "→".join(f"{share.value:.3f}" for share in first.exchanges[0].consistent)


def test_the_seed_decides_and_records_are_plain(result: ClaimOrder) -> None:
    assert study_claim_order(FORMS, ORIGINAL, resamples=100) == result
    records = result.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert len(records) == 3 * 6
    assert len({tuple(record) for record in records}) == 1


def test_words_about_intervals_follow_them(result: ClaimOrder) -> None:
    def with_intervals(first: tuple[float, float], second: tuple[float, float]) -> str:
        method = result.methods[0]
        limits = {"ordinary-first": first, "atypical-first": second, None: (0.0, 0.0)}
        effects = tuple(
            dataclasses.replace(effect, low=limits[effect.order][0], high=limits[effect.order][1])
            for effect in method.effects
        )
        return ClaimOrder((dataclasses.replace(method, effects=effects),), 8).sentences[0]

    assert with_intervals((0.1, 0.2), (-0.2, -0.1)).endswith("(both intervals exclude zero).")
    assert with_intervals((0.1, 0.2), (0.0, 0.1)).endswith("(only the first interval excludes zero).")
    assert with_intervals((0.0, 0.2), (0.1, 0.1)).endswith("(only the second interval excludes zero).")
    assert with_intervals((-0.1, 0.2), (0.0, 0.0)).endswith("(neither interval excludes zero).")


def test_calibrators_that_abstain_are_named_and_change_nothing() -> None:
    result = study_claim_order(hopeless_claims(), abstaining_calibrator(), resamples=20)
    assert [method.note for method in result.methods[:2]] == ["it abstains, no setting was feasible"] * 2
    assert [method.idle for method in result.methods] == [True, True, False]
    assert "SPC (standard, ε = 0.10) fitted on both orders cannot change an answer here: it abstains" in " ".join(
        result.sentences
    )
    assert all(effect.change.changed == 0 for method in result.methods[:2] for effect in method.effects)
    assert "not feasible" in str(result.methods[2].note)


def test_spc_that_never_saw_two_candidates_is_said_to_leave_them_alone(result: ClaimOrder) -> None:
    calibrator = SelectivePriorCalibrator(epsilon_cs=0.1).fit(twelve_pairs().where(task="mc"))
    idle = study_claim_order(FORMS, calibrator, resamples=20)
    assert [method.idle for method in idle.methods] == [True, False, False]
    assert idle.sentences[1] == (
        "SPC (standard, ε = 0.10) fitted on the original form cannot change an answer here: it was fitted on questions "
        "with 4 candidates, never on questions with two."
    )
    assert all(effect.change.changed == 0 for effect in idle.methods[0].effects)
    assert not any("cannot" in sentence for sentence in result.sentences)


def test_the_figure_has_a_dot_per_method_order_and_side(result: ClaimOrder) -> None:
    figure = result.figure()
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Counterfactual images", "Commonsense images"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert STUDY.run(StudyInputs(twelve_pairs(), {"forms": FORMS}, resamples=20)).figure() is not None
