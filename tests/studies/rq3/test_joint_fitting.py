from __future__ import annotations

from small_tables import twelve_pairs
from study_checks import counts, expected_counts, finals_row_by_row, is_plain, with_other_answers
from unprior import SelectivePriorCalibrator
from unprior.studies.rq3.joint_fitting import JointFitting, study_joint_fitting

TABLE = twelve_pairs()
DEVELOPMENT, TEST = TABLE.where(split="dev"), TABLE.where(split="test")


def test_rows_against_plain_loops() -> None:
    result = study_joint_fitting(DEVELOPMENT, TEST, epsilon=0.1)
    rows = TEST.arrow.to_pylist()
    assert [variant.label for variant in result.rows] == ["MC and QA", "MC only", "QA only"]
    for variant, seen in zip(result.rows, (TABLE, TABLE.where(task="mc"), TABLE.where(task="qa")), strict=True):
        finals = finals_row_by_row(SelectivePriorCalibrator(epsilon_cs=0.1).fit(seen), rows)
        for outcome in variant.tasks:
            assert counts(outcome) == expected_counts(rows, finals, outcome.task)
    assert is_plain(result)


def test_a_task_with_an_unseen_number_of_candidates_stays() -> None:
    result = study_joint_fitting(DEVELOPMENT, TEST)
    assert result.of("mc").on("qa").cf.changed == result.of("mc").on("qa").cs.changed == 0
    assert result.sentences[0].endswith("SPC changes 0 of 14 QA answers.")


def test_sentences_follow_the_numbers() -> None:
    result = study_joint_fitting(DEVELOPMENT, TEST, epsilon=0.1)
    joint, mc, _ = result.rows
    assert joint.on("qa").cf.delta > 0, "otherwise the next lines compare nothing"
    worse = JointFitting((joint, type(mc)("qa", "QA only", mc.tasks)), result.method)
    assert "ΔCF of SPC (standard, ε = 0.10) on QA is lower than with a joint fit" in worse.sentences[0]
    better = JointFitting((mc, type(mc)("qa", "QA only", joint.tasks)), result.method)
    assert "ΔCF of SPC (standard, ε = 0.10) on QA is higher than with a joint fit" in better.sentences[0]
    same = JointFitting((joint, type(mc)("qa", "QA only", joint.tasks)), result.method)
    assert "ΔCF of SPC (standard, ε = 0.10) on QA is the same as with a joint fit" in same.sentences[0]


def test_one_task_alone_has_one_row() -> None:
    result = study_joint_fitting(DEVELOPMENT.where(task="qa"), TEST.where(task="qa"))
    assert [variant.name for variant in result.rows] == ["joint"]
    alone, change = result.sentences
    assert alone == "There is one task only (QA), so there is nothing to fit jointly."
    assert f"{100 * result.of('joint').on('qa').cf.delta:+.1f}/" in change
    (axes,) = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["QA"]


def test_answers_of_test_rows_change_no_decision() -> None:
    before, after = (study_joint_fitting(DEVELOPMENT, test).records() for test in (TEST, with_other_answers(TEST)))
    assert [record["changed"] for record in before] == [record["changed"] for record in after]
