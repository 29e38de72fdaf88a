from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import straightforward
from random_tables import random_rows
from unprior import Grid, ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.baselines.controls import fixed_strength_answers
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


@pytest.mark.parametrize("uncertainty", [False, True])
@pytest.mark.parametrize("strength", [0.05, 0.8, 1.7])
def test_a_given_strength_is_exact_and_survives(
    table: ScoreTable, tmp_path: Path, strength: float, uncertainty: bool
) -> None:
    """Whatever the grid of caps; the gate then decides about the proposals of that strength."""
    control = FixedStrengthCalibrator(epsilon_cs=0.5, uncertainty=uncertainty, strength=strength).fit(table)
    assert control.settings_ is not None
    decisions = control.predict(table)
    np.testing.assert_allclose(decisions.strength, strength, rtol=1e-15)
    np.testing.assert_array_equal(decisions.proposal, fixed_strength_answers(table, strength))
    control.save(tmp_path / "fixed.json")
    for kind in (FixedStrengthCalibrator, SelectivePriorCalibrator):
        again = kind.load(tmp_path / "fixed.json")
        np.testing.assert_array_equal(again.predict(table).final, decisions.final)
    loaded = FixedStrengthCalibrator.load(tmp_path / "fixed.json")
    assert loaded.get_params() == control.get_params()
    assert loaded.get_params()["strength"] == strength


def test_the_loss_is_that_of_the_given_strength(development: ScoreTable) -> None:
    expected = 0.0
    for row in development.arrow.to_pylist():
        corrected = np.array(row["image_scores"]) - 0.8 * np.array(row["prior_scores"])
        expected += np.log(np.exp(corrected).sum()) - corrected[row["candidates"].index(row["answer"])]
    control = FixedStrengthCalibrator(strength=0.8, grid=Grid(rho=(1e-9,))).fit(development)
    assert control.loss_ == pytest.approx(expected)


def test_parameters_can_be_cloned_and_are_checked(development: ScoreTable) -> None:
    control = FixedStrengthCalibrator(epsilon_cs=0.1, strength=0.8)
    assert repr(FixedStrengthCalibrator(**control.get_params())) == repr(control)
    assert "strength=0.8" in repr(control)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UnpriorError, match=r"strength is .* must be positive"):
            FixedStrengthCalibrator(strength=wrong).fit(development)
