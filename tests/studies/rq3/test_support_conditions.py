from __future__ import annotations

from random_tables import random_rows
from small_tables import hopeless_table, twelve_pairs
from study_checks import counts, expected_counts, is_plain, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.calibration.gate import Condition
from unprior.studies.rq3.support_conditions import AGAIN, KEPT, allow, study_support_conditions

# Without any structure every kind of proposal occurs, also those that meet no condition.
DEVELOPMENT = ScoreTable.from_rows(random_rows(seed=46, pairs=12))
TEST = ScoreTable.from_rows(random_rows(seed=1, pairs=12))
ALLOWED = {
    "full": tuple(Condition),
    "absorption": (Condition.ABSORPTION,),
    "conflict": (Condition.CONFLICT,),
    "none": None,
}


def test_kept_settings_against_plain_loops() -> None:
    result = study_support_conditions(DEVELOPMENT, TEST, epsilon=1.0)
    calibrator = SelectivePriorCalibrator(epsilon_cs=1.0).fit(DEVELOPMENT)
    assert calibrator.settings_ is not None
    least, rows = calibrator.settings_.min_margin, TEST.arrow.to_pylist()
    decisions = list(calibrator.predict(TEST))
    for name, allowed in ALLOWED.items():
        finals = [
            each.proposal
            if each.proposal != each.original
            and each.margin >= least
            and len(each.candidates) in calibrator.candidate_counts_
            and (allowed is None or each.condition in allowed)
            else each.original
            for each in decisions
        ]
        assert TEST.candidate_names(allow(calibrator.predict(TEST), allowed)) == finals
        for outcome in result.of(name, KEPT).tasks:
            assert counts(outcome) == expected_counts(rows, finals, outcome.task)
    assert len({result.of(name, KEPT).tasks for name in ALLOWED}) == 4, "every gate must differ"


def test_settings_are_selected_again_for_every_gate() -> None:
    result = study_support_conditions(DEVELOPMENT, TEST, epsilon=1.0)
    rows = TEST.arrow.to_pylist()
    for name, allowed in ALLOWED.items():
        fitted = SelectivePriorCalibrator(epsilon_cs=1.0, conditions=allowed).fit(DEVELOPMENT)
        finals = [decision.final for decision in fitted.predict(TEST)]
        for outcome in result.of(name, AGAIN).tasks:
            assert counts(outcome) == expected_counts(rows, finals, outcome.task)
    assert result.of("full", AGAIN).tasks == result.of("full", KEPT).tasks
    assert [section.heading for section in result.table.sections] == [AGAIN, KEPT]
    assert is_plain(result)
    assert len(result.plot()[0].get_yticklabels()) == 8


def test_sentences_say_what_a_condition_is_worth() -> None:
    table = twelve_pairs()
    result = study_support_conditions(table.where(split="dev"), table.where(split="test"))
    full, absorption = (result.of(name, AGAIN).on("qa").cf.delta for name in ("full", "absorption"))
    assert full > 0
    assert f"{absorption / full:.0%} of the full ΔCF" in result.sentences[3]
    nothing = study_support_conditions(hopeless_table(), table.where(split="test"))
    assert nothing.sentences == ("SPC (standard, ε = 0.10) abstains, so its conditions are never checked.",)
    assert {record["changed"] for record in nothing.records() if record["variant"] == "full"} == {0}


def test_answers_of_test_rows_change_no_decision() -> None:
    before, after = (study_support_conditions(DEVELOPMENT, test).records() for test in (TEST, with_other_answers(TEST)))
    assert [record["changed"] for record in before] == [record["changed"] for record in after]
