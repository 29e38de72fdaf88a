from __future__ import annotations

import pytest

from small_tables import hopeless_table, twelve_pairs
from study_checks import counts, expected_counts, finals_row_by_row, is_plain, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator, synthesize
from unprior.studies.rq3.paired_fitting import study_paired_fitting

TABLE = twelve_pairs()
DEVELOPMENT, TEST = TABLE.where(split="dev"), TABLE.where(split="test")


def test_rows_against_plain_loops() -> None:
    result = study_paired_fitting(DEVELOPMENT, TEST)
    rows = TEST.arrow.to_pylist()
    calibrators = [
        SelectivePriorCalibrator(),
        SelectivePriorCalibrator(select_on="cf"),
        SelectivePriorCalibrator(fit_on="cf", select_on="cf"),
    ]
    for variant, calibrator in zip(result.rows, calibrators, strict=True):
        finals = finals_row_by_row(calibrator.fit(TABLE), rows)
        for outcome in variant.tasks:
            assert counts(outcome) == expected_counts(rows, finals, outcome.task)
    assert is_plain(result)
    cf = result.of("cf").on("mc").cf
    assert result.table.rows[2].cells[1].endswith(f"({cf.repairs}/{cf.harms})")


def test_commonsense_development_answers_reach_only_those_who_may_look() -> None:
    rows = DEVELOPMENT.arrow.to_pylist()
    for row in rows:
        if row["side"] == "cs":
            row["answer"] = next(name for name in row["candidates"] if name != row["answer"])
    before, after = study_paired_fitting(DEVELOPMENT, TEST), study_paired_fitting(ScoreTable.from_rows(rows), TEST)
    assert before.of("cf") == after.of("cf")
    assert before.of("both") != after.of("both")


def test_answers_of_test_rows_change_no_decision() -> None:
    changed = [
        [record["changed"] for record in study_paired_fitting(DEVELOPMENT, test).records()]
        for test in (TEST, with_other_answers(TEST))
    ]
    assert changed[0] == changed[1]
    assert study_paired_fitting(DEVELOPMENT, TEST) == study_paired_fitting(DEVELOPMENT, TEST)


@pytest.mark.parametrize(
    ("places", "words"), [((0, 2), "a lower ΔCS"), ((2, 0), "a higher ΔCS"), ((0, 0), "the same ΔCS")]
)
def test_sentences_follow_the_numbers(places: tuple[int, int], words: str) -> None:
    result = study_paired_fitting(*synthetic_split())
    variants = [result.rows[place] for place in (*places, 2)]
    assert result.of("cf").on("mc").cs.delta < result.of("both").on("mc").cs.delta
    assert words in type(result)(tuple(variants), result.method).sentences[0]


def synthetic_split() -> tuple[ScoreTable, ScoreTable]:
    table = synthesize(seed=0)
    return table.where(split="dev"), table.where(split="test")


def test_nothing_feasible_leaves_all_answers() -> None:
    result = study_paired_fitting(hopeless_table(), TEST.where(task="mc"))
    assert result.rows[0].abstains
    assert result.table.rows[0].cells[0].endswith("(abstains)")
    assert result.of("both").on("mc").cf.changed == 0
    assert is_plain(result)
