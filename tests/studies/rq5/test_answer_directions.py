from __future__ import annotations

import pytest

from small_tables import abstaining_calibrator, hopeless_table, twelve_pairs
from unprior import SelectivePriorCalibrator, UnpriorError
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq5.answer_directions import STUDY, study_answer_directions

TABLE = twelve_pairs()
DECISIONS = SelectivePriorCalibrator(epsilon_cs=0.1).fit(TABLE).predict(TABLE)


def test_groups_agree_with_plain_loops() -> None:
    rows, finals = TABLE.arrow.to_pylist(), TABLE.candidate_names(DECISIONS.final_positions)
    result = study_answer_directions({"SPC": DECISIONS})
    assert sum(row.change.total for row in result.rows) == sum(row["task"] == "qa" for row in rows)
    for found in result.rows:
        chosen = [
            (row, final)
            for row, final in zip(rows, finals, strict=True)
            if (row["task"], row["side"], row["answer"]) == ("qa", found.side, found.answer)
        ]
        net = sum((final == row["answer"]) - (row["original"] == row["answer"]) for row, final in chosen)
        assert found.change.total == len(chosen)
        assert found.change.delta == pytest.approx(net / len(chosen))


def test_sentences_follow_the_numbers() -> None:
    decisions = SelectivePriorCalibrator().fit(TABLE).predict(TABLE)
    decisions.final_positions[:] = (decisions.table.candidate_counts - 1).clip(max=1)  # always "no"
    result = study_answer_directions({"No": decisions})
    yes = [row for row in result.rows if row.answer == "yes" and row.change.delta < 0]
    assert f"No loses accuracy in {len(yes)} of {len(result.rows)} groups" in result.sentences[-1]
    decisions.final_positions[:] = decisions.table.original_positions
    assert "loses accuracy in 0 of" in study_answer_directions({"Keep": decisions}).sentences[-1]
    cf, cs = (max((row for row in result.rows if row.side == side), key=lambda row: row.change.total)
              for side in ("cf", "cs"))  # fmt: skip
    assert result.sentences[0] == (
        f"The right answer is {cf.answer} for {cf.change.total} of 12 CF examples and {cs.answer} for "
        f"{cs.change.total} of 12 CS examples."
    )


def test_every_version_is_a_section() -> None:
    result = STUDY.run(StudyInputs(TABLE))
    assert len(result.table.sections) == 3
    assert len(result.records()) == len(result.table.rows)
    assert result.figure() is None


def test_without_yes_no_questions_there_is_nothing_to_group() -> None:
    with pytest.raises(UnpriorError, match="no yes/no questions"):
        study_answer_directions({"SPC": abstaining_calibrator().predict(hopeless_table())})
