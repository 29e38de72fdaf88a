"""The study of promises: every rule beside the others on the test pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from small_tables import count_changes
from study_checks import is_plain
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.evaluation.promise import check_promise, exact_interval
from unprior.studies.beyond.promises import Promises, study_promises
from unprior.studies.inputs import StudyInputs

RULES = ("paper", "certified", "expected")


@pytest.fixture(scope="module")
def result(table: ScoreTable) -> Promises:
    return study_promises(StudyInputs(table, epsilon=0.06))


def test_every_rule_is_what_its_calibrator_does(table: ScoreTable, result: Promises) -> None:
    test = table.where(split="test")
    rows = test.arrow.to_pylist()
    assert tuple(rule.rule for rule in result.rules) == RULES
    for rule in result.rules:
        fitted = SelectivePriorCalibrator(epsilon_cs=0.06, retention=rule.rule).fit(table)  # type: ignore[arg-type]
        finals = fitted.predict(test).final.tolist()
        for harm in rule.tasks:
            _, harms, total = count_changes(rows, finals, harm.change.task, "cs")
            assert (harm.harms, harm.pairs, harm.rate) == (harms, total, harms / total)
            assert (harm.low, harm.high) == exact_interval(harms, total)
        if fitted.certificate_ is None:
            assert (rule.check, rule.verdict(0)) == (None, "no promise")
        else:
            assert rule.check == check_promise(fitted.certificate_, test, fitted.predict(test).final_positions)
            assert rule.promise == fitted.certificate_.sentence
            assert {rule.verdict(0), rule.verdict(1)} <= ({"held"} if rule.rule == "certified" else {"within", "above"})


def test_it_is_fit_to_be_written(result: Promises) -> None:
    assert is_plain(result)
    assert len(result.table.rows) == len(result.records()) == 6
    assert result.sentences[0].startswith("SPC (standard, ε = 0.06): The paper's rule loses at most 6 points on the ")
    assert all("new ones" in each or "new pairs" in each for each in result.sentences[:-1])
    assert result.sentences[-1].startswith("The tested pairs are mixed otherwise")
    figure = result.figure()
    assert figure is not None
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(RULES)
    assert len(figure.axes) == 2


def test_who_abstains_and_who_breaks_is_said(table: ScoreTable, result: Promises) -> None:
    few = study_promises(StudyInputs(table, epsilon=0.02, promise={"delta": 0.2}))
    assert [rule.verdict(0) for rule in few.rules] == ["no promise", "abstains", "above"]
    assert (few.delta, few.rules[1].tasks[0].harms) == (0.2, 0)
    assert "so no answer is ever changed" in few.sentences[1]
    certified = result.rules[1]
    assert certified.check is not None
    broken = replace(certified.check, tasks=tuple(replace(each, verdict="broken") for each in certified.check.tasks))
    shown = replace(result, rules=(result.rules[0], replace(certified, check=broken), result.rules[2]))
    assert shown.rules[1].verdict(0) == "broken"
    assert "It did not hold: " in shown.sentences[1]
    assert {row.cells[-1] for row in shown.table.rows} >= {"no promise", "broken"}
