from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import straightforward
from random_tables import random_rows
from unprior import Grid, ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.baselines.controls import fixed_strength_answers
from unprior.calibration import Constant, Fixed
from unprior.calibration.gate import Reason


def only_the_bias_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle with an intercept-only strength; distances still come from all features."""
    covariance = straightforward.laplace_covariance

    def strength_inputs(prepared: straightforward.Prepared) -> straightforward.Prepared:
        bias = np.eye(1, 13)[0]
        return [(dataclasses.replace(example, features=bias), answer) for example, answer in prepared]

    def fit_theta(
        rho: float, prepared: straightforward.Prepared, numeric: bool
    ) -> tuple[straightforward.Vector, float]:
        return fitted(rho, strength_inputs(prepared), numeric)

    def of_the_bias(theta: straightforward.Vector, rho: float, prepared: straightforward.Prepared) -> np.ndarray:
        variance = covariance(theta, rho, strength_inputs(prepared))[0, 0]
        return np.diag([variance] + [0.0] * 12)

    fitted = straightforward.fit_theta
    monkeypatch.setattr(straightforward, "fit_theta", fit_theta)
    monkeypatch.setattr(straightforward, "laplace_covariance", of_the_bias)


@pytest.mark.parametrize(
    ("source", "uncertainty"), [("synthetic", False), ("random", False), ("synthetic", True), ("random", True)]
)
def test_it_is_spc_whose_strength_sees_no_features(
    development: ScoreTable, monkeypatch: pytest.MonkeyPatch, source: str, uncertainty: bool
) -> None:
    table = development if source == "synthetic" else ScoreTable.from_rows(random_rows(seed=4))
    rows = table.arrow.to_pylist()[:120]
    only_the_bias_is_learned(monkeypatch)
    theirs = straightforward.fit(rows, epsilon_cs=0.06, uncertainty=uncertainty)
    table = ScoreTable.from_rows(rows)
    ours = SelectivePriorCalibrator(epsilon_cs=0.06, uncertainty=uncertainty, strength=Constant()).fit(table)
    assert (ours.settings_ is None) == (theirs.settings is None)
    if ours.settings_ is not None and theirs.settings is not None:
        assert ours.settings_.min_margin == theirs.settings["min_margin"]
        if uncertainty:
            assert ours.settings_.max_distance == pytest.approx(theirs.settings["max_distance"])
    finals = table.candidate_names(ours.predict(table).final_positions)
    assert finals == [straightforward.decide(theirs, row)["final"] for row in rows]


@pytest.mark.parametrize("strength", [Constant(), Fixed(0.8)], ids=repr)
def test_the_distance_is_that_of_spc(table: ScoreTable, strength: Constant | Fixed) -> None:
    """The whole revision rule is kept: a row unlike the development data is left alone here, too."""
    grid = Grid(support=(0.5,), min_margin=(0.0,), distance_quantile=(0.5,))
    spc = SelectivePriorCalibrator(epsilon_cs=1.0, uncertainty=True, grid=grid).fit(table)
    control = spc.clone(strength=strength).fit(table)
    distances = spc.predict(table.where(split="dev")).distance
    assert control.settings_ is not None
    assert distances is not None
    assert control.settings_.max_distance == pytest.approx(np.median(distances))
    decisions = control.predict(table)
    np.testing.assert_allclose(decisions.distance, spc.predict(table).distance)
    assert {decision.reason for decision in decisions} >= {Reason.FAR_FROM_DEVELOPMENT}


def test_features_move_neither_the_strength_nor_its_uncertainty(table: ScoreTable) -> None:
    control = SelectivePriorCalibrator(epsilon_cs=1.0, uncertainty=True, strength=Constant()).fit(table)
    assert control.model_.covariance is not None
    assert np.count_nonzero(control.model_.theta[1:]) == np.count_nonzero(control.model_.covariance.ravel()[1:]) == 0
    assert control.gradient_norm_ < 1e-6
    assert np.ptp(control.predict(table).strength) == 0.0


def test_one_strength_that_can_be_saved(table: ScoreTable, tmp_path: Path) -> None:
    control = SelectivePriorCalibrator(strength=Constant()).fit(table)
    strengths = control.predict(table).strength
    np.testing.assert_allclose(strengths, strengths[0], rtol=1e-12)
    control.save(tmp_path / "fixed.json")
    again = SelectivePriorCalibrator.load(tmp_path / "fixed.json").predict(table)
    np.testing.assert_array_equal(again.final_positions, control.predict(table).final_positions)


@pytest.mark.parametrize("uncertainty", [False, True])
@pytest.mark.parametrize("strength", [0.05, 0.8, 1.7])
def test_a_given_strength_is_exact_and_survives(
    table: ScoreTable, tmp_path: Path, strength: float, uncertainty: bool
) -> None:
    """Whatever the grid of caps; the gate then decides about the proposals of that strength."""
    control = SelectivePriorCalibrator(epsilon_cs=0.5, uncertainty=uncertainty, strength=Fixed(strength)).fit(table)
    assert control.settings_ is not None
    decisions = control.predict(table)
    np.testing.assert_allclose(decisions.strength, strength, rtol=1e-15)
    np.testing.assert_array_equal(decisions.proposal_positions, fixed_strength_answers(table, strength))
    control.save(tmp_path / "fixed.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "fixed.json")
    np.testing.assert_array_equal(loaded.predict(table).final_positions, decisions.final_positions)
    assert loaded.strength == Fixed(strength)


def test_the_loss_is_that_of_the_given_strength(development: ScoreTable) -> None:
    expected = 0.0
    for row in development.arrow.to_pylist():
        corrected = np.array(row["image_scores"]) - 0.8 * np.array(row["prior_scores"])
        expected += np.log(np.exp(corrected).sum()) - corrected[row["candidates"].index(row["answer"])]
    control = SelectivePriorCalibrator(strength=Fixed(0.8), grid=Grid(rho=(1e-9,))).fit(development)
    assert control.loss_ == pytest.approx(expected)


def test_parameters_can_be_cloned_and_are_checked(development: ScoreTable) -> None:
    control = SelectivePriorCalibrator(epsilon_cs=0.1, strength=Fixed(0.8))
    assert repr(control) == "SelectivePriorCalibrator(epsilon_cs=0.1, strength=Fixed(value=0.8))"
    assert repr(control.clone()) == repr(control)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UnpriorError, match=r"strength is .* must be positive"):
            SelectivePriorCalibrator(strength=Fixed(wrong)).fit(development)
    with pytest.raises(UnpriorError, match=r"strength is 0.8, it must be Learned\(\), .* or Split"):
        SelectivePriorCalibrator(strength=0.8).fit(development)  # type: ignore[arg-type]
