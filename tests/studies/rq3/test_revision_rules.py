from __future__ import annotations

import json
from dataclasses import replace

import pytest

import straightforward
from made_up_methods import made_up
from small_tables import corrected_winner, count_changes, few_pairs, hopeless_table, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.baselines.controls import CONTROLS, fixed_strength_answers, guided_answers, run_controls
from unprior.evaluation import Change, Share
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.rq3.revision_rules import PAPER, RevisionRules, study_revision_rules


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=3, test=1)


def run(table: ScoreTable) -> RevisionRules:
    development, test = table.where(split="dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator().fit(development)
    return study_revision_rules(calibrator, development, test, made_up(test))


def test_rows_against_plain_loops(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    rows = test.arrow.to_pylist()
    model = straightforward.fit(development.arrow.to_pylist())
    decisions = [straightforward.decide(model, row) for row in rows]
    nolan = next(each for each in made_up(test) if each.info.name == "nolan")
    finals: dict[str, list[str | None]] = {
        "spc": [decision["final"] for decision in decisions],
        "ungated-adaptive": [decision["proposal"] for decision in decisions],
        "fixed-strength": [corrected_winner(row, 0.8) for row in rows],
        "direct-subtraction": [corrected_winner(row, 1.0) for row in rows],
        "nolan": test.candidate_names(nolan.answers),
    }
    for control in run_controls(development, test, names=["selected-strength-gated", "learned-rule-direct"]):
        finals[control.name] = test.candidate_names(control.answers)
    result = run(table)
    assert [row.name for row in result.rows][: len(PAPER)] == list(PAPER)
    assert {row.name for row in result.rows} == {*CONTROLS, "spc", "nolan"}
    for name, given in finals.items():
        for task in result.of(name).tasks:
            for side, change in (("cf", task.cf), ("cs", task.cs)):
                expected = count_changes(rows, given, task.task, side)
                assert (change.repairs, change.harms, change.total) == expected, name


def test_test_answers_are_not_looked_at(table: ScoreTable) -> None:
    mine, theirs = run(table), run(with_other_answers(table, split="test"))
    for one, other in zip(mine.rows, theirs.rows, strict=True):
        assert one.settings == other.settings
        if one.name != "nolan":  # the made-up answers do look
            assert [task.cf.changed for task in one.tasks] == [task.cf.changed for task in other.tasks]
    assert run(table) == mine, "the same twice"


def test_nolan_is_left_out_where_it_was_not_run(table: ScoreTable) -> None:
    calibrator = SelectivePriorCalibrator().fit(table)
    result = study_revision_rules(calibrator, table.where(split="dev"), table.where(split="test"))
    assert "nolan" not in {row.name for row in result.rows}
    assert [section.heading for section in result.table.sections] == [None, "Other controls"]


def with_gains(result: RevisionRules, name: str, repairs: int, *, feasible: bool = True) -> RevisionRules:
    better = (TradeOff("mc", Change(repairs, 0, repairs, 100), Change(0, 0, 0, 100)),)
    kept = (TradeOff("mc", Change(5, 0, 5, 100), Change(0, 2, 2, 100)),)
    return replace(
        result,
        rows=tuple(
            replace(row, tasks=better if row.name == name else kept, feasible=feasible or row.name != name)
            for row in result.rows
        ),
    )


def test_sentences_name_the_best_row_and_whether_it_keeps_the_limit(table: ScoreTable) -> None:
    result = run(table)
    spc = with_gains(result, "spc", 20).sentences
    assert spc[0].endswith("SPC (standard, ε = 0.04) changes ΔCF/ΔCS by -15.0/-2.0 on MC.")
    assert spc[-1] == "SPC (standard, ε = 0.04) has the highest U (+20.0), averaged over the tasks."
    beyond = with_gains(result, "direct-subtraction", 20, feasible=False).sentences
    assert beyond[-2] == "“Direct (PMI, λ = 1)” has the highest U (+20.0), averaged over the tasks."
    others = len(result.rows) - 1
    assert beyond[-1].endswith(f"(ε = 0.04) on the development pairs, {others} rows have the highest U (+4.0).")


def test_what_abstains_says_so() -> None:
    test = few_pairs().where(split="test", task="mc")
    calibrator = SelectivePriorCalibrator().fit(hopeless_table())
    result = study_revision_rules(calibrator, hopeless_table(), test)
    assert result.of("spc").abstains
    assert result.sentences[0].startswith("No setting of SPC (standard, ε = 0.04) is feasible")
    assert json.loads(json.dumps(result.records(), allow_nan=False))[0]["settings"] is None
    assert result.figure() is not None


def test_agreement_of_the_proposals_that_learned_rules_judge(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    fixed, direct = run_controls(development, test, names=["learned-rule-fixed", "learned-rule-direct"])
    result = run(table)
    for found, part in zip(result.agreement, (development, test), strict=True):
        mine = fixed_strength_answers(part, fixed.settings["scale"])
        theirs = guided_answers(part, direct.settings["scale"])
        same = [one == other for one, other in zip(mine.tolist(), theirs.tolist(), strict=True)]
        assert (found.same.count, found.same.total) == (sum(same), len(part))
    assert result.agreement[0].same_answer is None
    differing = [place for place, alike in enumerate(same) if not alike]
    alike = sum(bool(fixed.answers[place] == direct.answers[place]) for place in differing)
    assert result.agreement[1].same_answer == Share(alike, len(differing))
    records = [record for record in result.records() if record["method"].startswith("learned-rule")]
    assert {record["proposal_agreement_test"] for record in records} == {sum(same) / len(same)}
    assert {record["proposal_agreement_test"] for record in result.records() if record["method"] == "spc"} == {None}
    agreement = "Proposals of the fixed strength and of direct subtraction agree on "
    assert sum(sentence.startswith(agreement) for sentence in result.sentences) == 1
