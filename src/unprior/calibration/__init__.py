"""The method: features, strength, gate, selection, and the estimator that joins them."""

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.certificate import Certificate
from unprior.calibration.decisions import Decision, Decisions
from unprior.calibration.features import ALL_FEATURES, IMAGE_FEATURES, PRIOR_FEATURES
from unprior.calibration.gate import Condition, Reason, Settings
from unprior.calibration.open_answers import OpenAnswers, OpenScale
from unprior.calibration.ranges import RecoveryBound, recovery_bound, stable_ranges
from unprior.calibration.selection import Grid, Selection, TaskChange
from unprior.calibration.state import FittedState
from unprior.calibration.strength_rules import Constant, Fixed, Learned, Split

__all__ = [
    "ALL_FEATURES",
    "IMAGE_FEATURES",
    "PRIOR_FEATURES",
    "Certificate",
    "Condition",
    "Constant",
    "Decision",
    "Decisions",
    "FittedState",
    "Fixed",
    "Grid",
    "Learned",
    "OpenAnswers",
    "OpenScale",
    "Reason",
    "RecoveryBound",
    "Selection",
    "SelectivePriorCalibrator",
    "Settings",
    "Split",
    "TaskChange",
    "recovery_bound",
    "stable_ranges",
]
