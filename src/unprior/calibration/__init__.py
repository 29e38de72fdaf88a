"""The method: features, strength, gate, selection, and the estimator that joins them."""

from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.decisions import Decision, Decisions
from unprior.calibration.gate import Condition, Reason, Settings
from unprior.calibration.ranges import RecoveryBound, recovery_bound, stable_ranges
from unprior.calibration.selection import Grid, Selection, TaskChange

__all__ = [
    "Condition",
    "Decision",
    "Decisions",
    "Grid",
    "Reason",
    "RecoveryBound",
    "Selection",
    "SelectivePriorCalibrator",
    "Settings",
    "TaskChange",
    "recovery_bound",
    "stable_ranges",
]
