from __future__ import annotations

from made_up_methods import COSTS, made_up
from small_tables import twelve_pairs
from unprior.baselines.answers import Cost, MethodAnswers, MethodInfo
from unprior.studies.rq2.cost import Costs, study_cost
from unprior.studies.rq2.methods import compare_methods

TEST = twelve_pairs().where(split="test")


def test_costs_are_relative_to_the_original_answer() -> None:
    result = study_cost(made_up(TEST), COSTS)
    assert [row.method for row in result.rows] == ["original", "spc", "nolan"], "the prompt was not measured"
    records = {record["method"]: record for record in result.records()}
    assert (records["nolan"]["passes_times"], records["nolan"]["seconds_times"]) == (8.0 / 4.0, 0.4 / 0.2)
    assert records["original"]["images_times"] == 1.0
    assert [row.bold for row in result.table.rows] == [False, True, False]


def test_sentences_name_the_slowest_and_compare_with_spc() -> None:
    result = study_cost(made_up(TEST), COSTS)
    assert "SPC takes 1.5 times the forward passes and 1.2 times the seconds" in result.sentences[0]
    assert "encodes no further image" in result.sentences[0]
    assert "1 of 1 other method takes longer than SPC." in result.sentences
    quick = MethodAnswers(
        MethodInfo("quick", "Quick", "edit", {}, Cost(2.0, 1.0, 0.1, 20)), TEST.original_positions, None
    )
    result = study_cost([*made_up(TEST), quick], COSTS)
    assert result.sentences[1:] == (
        "NoLan (0.4 s) is the slowest of the other methods, Quick (0.1 s) the fastest.",
        "1 of 2 other methods takes longer than SPC.",
    )
    alone = study_cost(made_up(TEST), COSTS)
    assert not any("slowest" in sentence for sentence in alone.sentences), "one method is not the slowest of several"


def test_nothing_measured_is_said_and_nothing_to_compare_with_is_a_dash() -> None:
    assert study_cost([], {}).sentences == ("No costs were measured.",)
    assert study_cost([], {}).table.rows == ()
    result = study_cost(made_up(TEST), {})
    assert result.table.rows[0].cells[-2:] == ("–", "–")
    assert result.records()[0]["seconds_times"] is None
    assert result.figure() is None


def test_compared_methods_have_the_same_costs() -> None:
    compared = compare_methods(TEST, TEST.original_positions, made_up(TEST), references=COSTS, resamples=20)
    assert Costs.from_methods(compared) == study_cost(made_up(TEST), COSTS)
    unmeasured = compare_methods(TEST, TEST.original_positions, made_up(TEST)[:1], resamples=20)
    assert Costs.from_methods(unmeasured).rows == ()
