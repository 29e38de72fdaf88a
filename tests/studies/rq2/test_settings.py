from __future__ import annotations

from dataclasses import replace

import pytest

from small_tables import abstaining_calibrator, count_changes, few_pairs, with_other_answers
from study_checks import finals_row_by_row, is_plain
from unprior import SelectivePriorCalibrator
from unprior.calibration.gate import Settings
from unprior.calibration.selection import Grid
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq2.settings import STUDY, SelectedSettings, study_settings

TABLE = few_pairs(development=4, test=1)
RESULT = STUDY.run(StudyInputs(TABLE))


def test_every_limit_of_the_paper_and_of_the_run_is_there_with_both_versions() -> None:
    result = STUDY.run(StudyInputs(TABLE, epsilon=0.03, wide_epsilon=0.1))
    assert [(each["version"], each["epsilon"]) for each in result.records()] == [
        (version, epsilon)
        for version in ("standard", "uncertainty-aware")
        for epsilon in (0.0, 0.02, 0.03, 0.04, 0.06, 0.1)
    ]
    assert [section.heading for section in result.table.sections] == ["Standard SPC", "Uncertainty-aware SPC"]
    assert is_plain(result)


def test_development_changes_are_those_of_the_rows_decided_one_by_one() -> None:
    rows = TABLE.where(split="dev").arrow.to_pylist()
    for record in RESULT.records():
        uncertainty = record["version"] == "uncertainty-aware"
        calibrator = SelectivePriorCalibrator(epsilon_cs=record["epsilon"], uncertainty=uncertainty).fit(TABLE)
        finals = finals_row_by_row(calibrator, rows)
        for task in ("mc", "qa"):
            for side in ("cf", "cs"):
                repairs, harms, total = count_changes(rows, finals, task, side)
                assert record[f"{task}_delta_{side}"] == pytest.approx((repairs - harms) / total)
        assert record["searched"] == (8640 if uncertainty else 80)
        assert 0 < record["feasible"] <= record["searched"]
        assert (record["max_distance"] is None) == (not uncertainty)


def test_a_standard_row_has_no_support_and_an_abstaining_one_no_settings() -> None:
    cells = RESULT.table.rows[0].cells
    assert cells[0] == "0.00"
    assert cells[4:8] == ("–", "–", "–", "2, 4")
    abstains = study_settings([abstaining_calibrator()])
    assert abstains.table.rows[0].cells[1:] == ("–",) * 6 + ("4", "0/80")
    assert abstains.sentences == ("Standard SPC finds nothing feasible with ε = 0.04 and keeps every answer there.",)
    assert is_plain(abstains)


def test_test_rows_are_not_looked_at() -> None:
    assert STUDY.run(StudyInputs(with_other_answers(TABLE, split="test"))) == RESULT
    assert RESULT.figure() is None


def test_ends_of_the_grid_are_found() -> None:
    grid = Grid(
        rho=(0.1,), max_strength=(0.7, 0.9), min_margin=(0.0,), support=(0.5, 1.01), distance_quantile=(0.2, 0.9)
    )
    calibrator = SelectivePriorCalibrator(uncertainty=True, grid=grid).fit(TABLE)
    (row,) = study_settings([calibrator]).rows
    assert row.settings is not None
    ends = dict(row.ends)
    assert ends["max_strength"] == ("smallest" if row.settings.max_strength == 0.7 else "largest")
    assert ends["conflict_support"] == ("smallest" if row.settings.conflict_support == 0.5 else "largest")
    assert "max_distance" in ends, "one of two is an end"
    assert not {"rho", "min_margin"} & set(ends), "a single value is no choice"


def test_sentences_say_which_limits_choose_the_same() -> None:
    first = RESULT.rows[0]
    one, two = Settings(0.01, 1.0, 0.3), Settings(0.01, 1.2, 0.0)
    rows = [
        replace(first, epsilon=epsilon, settings=settings, ends=ends)
        for epsilon, settings, ends in (
            (0.0, one, (("rho", "smallest"), ("min_margin", "largest"))),
            (0.02, one, (("rho", "smallest"), ("min_margin", "largest"))),
            (0.1, two, (("rho", "smallest"), ("min_margin", "smallest"))),
        )
    ]
    assert SelectedSettings(tuple(rows)).sentences == (
        "Standard SPC chooses 2 different settings with ε = 0.00, 0.02 and 0.10; ε = 0.00 and 0.02 choose the same.",
        "Of these 3 choices of standard SPC, the following are at an end of their grid: ρ (smallest in 3) and m_min "
        "(smallest in 1 and largest in 2).",
    )
    inner = [replace(row, ends=()) for row in rows[:2]]
    assert SelectedSettings(tuple(inner)).sentences == (
        "Standard SPC chooses one set of settings with ε = 0.00 and 0.02.",
        "Nothing that standard SPC chooses is at an end of its grid.",
    )
    differing = [replace(rows[0]), replace(rows[2])]
    assert (
        SelectedSettings(tuple(differing)).sentences[0]
        == "Standard SPC chooses 2 different settings with ε = 0.00 and 0.10."
    )
