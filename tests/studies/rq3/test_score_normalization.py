from __future__ import annotations

import pytest

from small_tables import Row, corrected_winner, twelve_pairs
from study_checks import counts, expected_counts, finals_row_by_row, is_plain, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.studies.rq3.score_normalization import ScoreNormalization, study_score_normalization


def rows_with_lengths(*lengths: int) -> list[Row]:
    rows = twelve_pairs().arrow.to_pylist()
    for row in rows:
        count = len(row["candidates"])
        row["token_counts"] = [lengths[(row["pair_id"] + place) % len(lengths)] for place in range(count)]
    return rows


def _study(rows: list[Row], **settings: float) -> ScoreNormalization:
    table = ScoreTable.from_rows(rows)
    return study_score_normalization(table.where(split="dev"), table.where(split="test"), **settings)


@pytest.mark.parametrize("lengths", [(3,), (1, 2, 4)])
def test_against_plain_loops(lengths: tuple[int, ...]) -> None:
    rows = rows_with_lengths(*lengths)
    averaged = [
        row
        | {
            name: [score / count for score, count in zip(row[name], row["token_counts"], strict=True)]
            for name in ("image_scores", "prior_scores")
        }
        for row in rows
    ]
    result = _study(rows, epsilon=0.2)
    tested = [index for index, row in enumerate(rows) if row["split"] == "test"]
    finals = []
    for version in (rows, averaged):
        calibrator = SelectivePriorCalibrator(epsilon_cs=0.2).fit(ScoreTable.from_rows(version))
        finals.append(finals_row_by_row(calibrator, [version[index] for index in tested]))
    test = [rows[index] for index in tested]
    for task in result.tasks:
        name = task.summed.task
        assert counts(task.summed) == expected_counts(test, finals[0], name)
        assert counts(task.mean) == expected_counts(test, finals[1], name)
        fixed = [
            corrected_winner(one, 0.8) == corrected_winner(other, 0.8)
            for one, other in zip(rows, averaged, strict=True)
            if one["task"] == name
        ]
        assert (task.same_fixed.count, task.same_fixed.total) == (sum(fixed), len(fixed))
        for side, share in (("cf", task.same_cf), ("cs", task.same_cs)):
            same = [
                one == other
                for row, one, other in zip(test, *finals, strict=True)
                if (row["task"], row["side"]) == (name, side)
            ]
            assert (share.count, share.total) == (sum(same), len(same))
    assert is_plain(result)
    assert result.unequal == (0 if len(lengths) == 1 else len(rows))
    assert result.longest == max(lengths)


def test_equal_lengths_agree_at_a_fixed_strength_and_unequal_ones_need_not() -> None:
    equal, unequal = _study(rows_with_lengths(2)), _study(rows_with_lengths(1, 9))
    assert all(task.same_fixed.value == 1.0 for task in equal.tasks)
    assert equal.sentences[0].startswith("In none of 48 examples the candidates differ in length")
    assert any(task.same_fixed.value < 1.0 for task in unequal.tasks)
    assert unequal.sentences[0].startswith("In 48 of 48 examples")


def test_single_tokens_are_the_same_by_construction() -> None:
    single = _study(rows_with_lengths(1))
    assert single.sentences[0] == "Every candidate is one token, so sum and mean are the same by construction."
    assert f"{100 * single.tasks[0].summed.cf.delta:+.1f}/" in single.sentences[1]
    unknown = _study(twelve_pairs().arrow.to_pylist())
    assert unknown.identical
    assert "48 of 48 examples do not say so" in unknown.sentences[0]
    assert unknown.tasks[0].summed == unknown.tasks[0].mean
    assert unknown.figure() is None


def test_answers_of_test_rows_change_no_agreement() -> None:
    table = ScoreTable.from_rows(rows_with_lengths(1, 2, 4))
    development, test = table.where(split="dev"), table.where(split="test")
    before, after = (study_score_normalization(development, each) for each in (test, with_other_answers(test)))
    for one, other in zip(before.tasks, after.tasks, strict=True):
        assert (one.same_fixed, one.same_cf, one.same_cs) == (other.same_fixed, other.same_cf, other.same_cs)
