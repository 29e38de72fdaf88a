from __future__ import annotations

import numpy as np
import pytest

from small_tables import twelve_pairs
from unprior.calibration.features import FEATURE_NAMES, observe
from unprior.calibration.prior_blind import PRIOR_FEATURES, PriorBlindCalibrator


def test_exactly_the_features_that_move_with_the_prior_are_hidden() -> None:
    table = twelve_pairs()
    generator = np.random.default_rng(0)
    other = table.with_prior_scores(generator.normal(size=len(table.prior_scores)))
    moved = set()
    for before, after in zip(table.blocks(), other.blocks(), strict=True):
        change = np.abs(observe(before).features - observe(after).features).max(axis=0)
        moved |= {name for name, size in zip(FEATURE_NAMES, change.tolist(), strict=True) if size > 1e-12}
    assert moved == set(PRIOR_FEATURES)


def test_the_strength_does_not_follow_the_prior() -> None:
    table = twelve_pairs()
    calibrator = PriorBlindCalibrator(epsilon_cs=1.0).fit(table)
    other = table.with_prior_scores(np.random.default_rng(1).normal(size=len(table.prior_scores)))
    assert calibrator.settings_ is not None
    strengths = calibrator.predict(table).strength
    assert strengths == pytest.approx(calibrator.predict(other).strength, abs=1e-12)
    assert np.ptp(strengths) > 1e-3, "other features still matter"
