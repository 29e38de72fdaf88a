from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import straightforward
from random_tables import random_rows
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.calibration.fixed import FixedStrengthCalibrator


@pytest.mark.parametrize(("source", "uncertainty"), [("synthetic", False), ("random", False), ("synthetic", True)])
def test_it_is_spc_without_features(
    development: ScoreTable, monkeypatch: pytest.MonkeyPatch, source: str, uncertainty: bool
) -> None:
    table = development if source == "synthetic" else ScoreTable.from_rows(random_rows(seed=4))
    rows = table.arrow.to_pylist()[:120]
    monkeypatch.setattr(straightforward, "features", lambda row: [1.0] + [0.0] * 12)
    theirs = straightforward.fit(rows, epsilon_cs=0.06, uncertainty=uncertainty)
    table = ScoreTable.from_rows(rows)
    ours = FixedStrengthCalibrator(epsilon_cs=0.06, uncertainty=uncertainty).fit(table)
    assert (ours.settings_ is None) == (theirs.settings is None)
    if ours.settings_ is not None and theirs.settings is not None:
        assert ours.settings_.min_margin == theirs.settings["min_margin"]
    finals = table.candidate_names(ours.predict(table).final)
    assert finals == [straightforward.decide(theirs, row)["final"] for row in rows]


def test_one_strength_that_can_be_saved(table: ScoreTable, tmp_path: Path) -> None:
    control = FixedStrengthCalibrator().fit(table)
    strengths = control.predict(table).strength
    np.testing.assert_allclose(strengths, strengths[0], rtol=1e-12)
    control.save(tmp_path / "fixed.json")
    again = SelectivePriorCalibrator.load(tmp_path / "fixed.json").predict(table)
    np.testing.assert_array_equal(again.final, control.predict(table).final)
