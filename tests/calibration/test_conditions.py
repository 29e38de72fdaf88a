from __future__ import annotations

import pytest

from random_tables import random_rows
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.calibration.gate import CONDITIONS, Condition
from unprior.calibration.selection import Grid

TABLE = ScoreTable.from_rows(random_rows(seed=46, pairs=12))
ONE_SETTING = Grid(rho=(1.0,), max_strength=(1.2,), min_margin=(0.05,))


@pytest.mark.parametrize("allowed", [*((condition,) for condition in CONDITIONS), None])
def test_with_settings_given_only_the_conditions_differ(allowed: tuple[Condition, ...] | None) -> None:
    spc = SelectivePriorCalibrator(epsilon_cs=1.0, grid=ONE_SETTING).fit(TABLE).predict(TABLE)
    mine = SelectivePriorCalibrator(epsilon_cs=1.0, grid=ONE_SETTING, conditions=allowed).fit(TABLE).predict(TABLE)
    if spc.settings is None or mine.settings is None:
        pytest.fail("the one setting must be feasible for this test")
    expected = [
        decision.proposal
        if decision.proposal != decision.original
        and decision.margin >= 0.05
        and (allowed is None or decision.condition in allowed)
        else decision.original
        for decision in spc
    ]
    assert TABLE.candidate_names(mine.final_positions) == expected
    assert any(decision.condition is None and decision.proposal != decision.original for decision in spc)


def test_other_conditions_are_named() -> None:
    with pytest.raises(UnpriorError, match="conditions has 'luck'; there are conflict, absorption"):
        SelectivePriorCalibrator(conditions=("luck",)).fit(TABLE)  # type: ignore[arg-type]
