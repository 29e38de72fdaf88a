"""The control for a prior that is none: its scores are subtracted, but no feature may look at them."""

from __future__ import annotations

import numpy as np

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.features import FEATURE_NAMES
from unprior.calibration.strength import Standardisation
from unprior.scores.table import FloatArray

PRIOR_FEATURES = tuple(name for name in FEATURE_NAMES if "prior" in name or name in ("divergence", "margin_gap"))
"""Features that depend on the prior scores."""
# Large enough that no hidden feature can move strength or distance, small enough to stand in a calibrator file.
_OUT_OF_REACH = 1e300


class PriorBlindCalibrator(SelectivePriorCalibrator):
    """SPC whose strength depends on the image scores and the original answer only.

    >>> from unprior import synthesize
    >>> len(PRIOR_FEATURES), PRIOR_FEATURES[-1]
    (7, 'margin_gap')
    >>> calibrator = PriorBlindCalibrator().fit(synthesize(seed=0))
    >>> bool(abs(calibrator.model_.theta[FEATURE_NAMES.index("prior_peak")]) < 1e-12)
    True
    """

    def _standardise(self, features: FloatArray) -> Standardisation:
        known = super()._standardise(features)
        hidden = np.isin(FEATURE_NAMES, PRIOR_FEATURES)
        return Standardisation(np.where(hidden, 0.0, known.mean), np.where(hidden, _OUT_OF_REACH, known.scale))
