"""The control for adaptivity: one strength for all examples, everything else as in SPC."""

from __future__ import annotations

import numpy as np

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.strength import Standardisation
from unprior.scores.table import FloatArray

# Large enough that no feature can move the strength, small enough to stand in a calibrator file.
_OUT_OF_REACH = 1e300


class FixedStrengthCalibrator(SelectivePriorCalibrator):
    """SPC with an intercept-only strength: the same λ for every example, the same gate and selection.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> strengths = FixedStrengthCalibrator().fit(table).predict(table).strength
    >>> bool(np.ptp(strengths) < 1e-12)
    True
    """

    def _standardise(self, features: FloatArray) -> Standardisation:
        scale = np.full(features.shape[1], _OUT_OF_REACH)
        scale[0] = 1.0
        return Standardisation(np.zeros(features.shape[1]), scale)
