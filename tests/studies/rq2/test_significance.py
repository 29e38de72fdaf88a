from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from small_tables import abstaining_calibrator, count_changes, hopeless_table, twelve_pairs
from unprior import SelectivePriorCalibrator, synthesize
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq2.significance import STUDY, study_significance

TABLE = twelve_pairs()
TEST = TABLE.where(split="test")
DECISIONS = SelectivePriorCalibrator(epsilon_cs=0.1).fit(TABLE).predict(TEST)


def exact_p(repairs: int, harms: int) -> float:
    total, least = repairs + harms, min(repairs, harms)
    return min(1.0, 2 * sum(comb(total, count) for count in range(least + 1)) / 2**total)


def test_every_comparison_has_its_exact_and_adjusted_p() -> None:
    family = study_significance({"SPC": DECISIONS}).rows
    rows, finals = TEST.arrow.to_pylist(), TEST.candidate_names(DECISIONS.final_positions)
    raw = []
    for row in family:
        repaired, harmed, _ = count_changes(rows, finals, row.task, row.side)
        assert (row.change.repairs, row.change.harms) == (repaired, harmed)
        assert row.p == pytest.approx(exact_p(repaired, harmed))
        raw.append(row.p)
    largest = 0.0
    for rank, place in enumerate(sorted(range(4), key=raw.__getitem__)):
        largest = max(largest, min(1.0, raw[place] * (4 - rank)))
        assert family[place].holm_p == pytest.approx(largest)


def test_families_are_adjusted_apart() -> None:
    one = study_significance({"SPC": DECISIONS}).families["SPC"]
    two = study_significance({"SPC": DECISIONS, "again": DECISIONS}).families
    assert two["SPC"] == one
    assert two["again"] == [replace(row, version="again") for row in one]


def test_sentences_count_what_is_left() -> None:
    nothing = study_significance({"SPC": abstaining_calibrator().predict(hopeless_table())})
    assert nothing.sentences == (
        "With SPC none of 2 changes is significant at 0.05 after adjustment.",
        "The smallest adjusted p of all versions is 1.000000.",
    )
    every = synthesize(seed=0)
    decisions = SelectivePriorCalibrator().fit(every).predict(every.where(task="mc"))
    decisions.final_positions[:] = np.where(decisions.table.is_cf, decisions.table.answer_positions, -1)
    assert study_significance({"SPC": decisions}).sentences == (
        "With SPC 2 of 2 changes are significant at 0.05 after adjustment: MC CF (gain) and MC CS (loss).",
        "The smallest adjusted p of all versions is 8.04e-87.",
    )
    together, _ = study_significance({"SPC": decisions, "again": decisions}).sentences
    assert together.startswith("With SPC and again 2 of 2 changes"), "the same outcome is said once"


def test_the_study_has_a_family_for_every_version() -> None:
    result = STUDY.run(StudyInputs(TABLE))
    assert [section.heading for section in result.table.sections] == [
        "SPC (standard, ε = 0.04)", "SPC (standard, ε = 0.10)", "SPC (uncertainty-aware, ε = 0.10)",
    ]  # fmt: skip
    assert len(result.records()) == 12
    assert result.figure() is None
    assert [(test.family, test.name, test.p, test.holm_p) for test in result.tests()] == [
        (record["version"], f"{record['task']} {record['side']}".upper(), record["p"], record["holm_p"])
        for record in result.records()
    ]
