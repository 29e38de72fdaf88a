from __future__ import annotations

import numpy as np
import pytest

from small_tables import twelve_pairs
from unprior import SelectivePriorCalibrator, UnpriorError
from unprior.calibration import ALL_FEATURES, IMAGE_FEATURES, PRIOR_FEATURES
from unprior.calibration.features import FEATURE_NAMES, observe


def test_exactly_the_features_that_move_with_the_prior_are_hidden() -> None:
    table = twelve_pairs()
    generator = np.random.default_rng(0)
    other = table.with_prior_scores(generator.normal(size=len(table.prior_scores)))
    moved = set()
    for before, after in zip(table.blocks(), other.blocks(), strict=True):
        change = np.abs(observe(before).features - observe(after).features).max(axis=0)
        moved |= {name for name, size in zip(FEATURE_NAMES, change.tolist(), strict=True) if size > 1e-12}
    assert moved == set(PRIOR_FEATURES)
    assert set(ALL_FEATURES) - moved == set(IMAGE_FEATURES)


def test_the_strength_does_not_follow_the_prior() -> None:
    table = twelve_pairs()
    calibrator = SelectivePriorCalibrator(epsilon_cs=1.0, features=IMAGE_FEATURES).fit(table)
    other = table.with_prior_scores(np.random.default_rng(1).normal(size=len(table.prior_scores)))
    assert calibrator.settings_ is not None
    strengths = calibrator.predict(table).strength
    assert strengths == pytest.approx(calibrator.predict(other).strength, abs=1e-12)
    assert np.ptp(strengths) > 1e-3, "other features still matter"
    assert abs(calibrator.model_.theta[FEATURE_NAMES.index("prior_peak")]) < 1e-12


def test_features_that_are_none_are_named() -> None:
    with pytest.raises(UnpriorError, match=r"features has 'prior_peek' \(did you mean prior_peak\?\); there are"):
        SelectivePriorCalibrator(features=("prior_peek",)).fit(twelve_pairs())
    with pytest.raises(UnpriorError, match="features is 'prior_peak', it must be a tuple of names"):
        SelectivePriorCalibrator(features="prior_peak").fit(twelve_pairs())  # type: ignore[arg-type]
