"""Selective Prior Calibration: make vision-language models believe their eyes.

The way through the package: score table → calibrator → decisions → evaluation.

>>> import unprior
>>> table = unprior.synthesize(seed=0)
>>> calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
>>> test = table.where(split="test")
>>> evaluation = unprior.evaluate(test, calibrator.predict(test).final)
>>> evaluation.tasks[0].cf.change.delta > 0
True
"""

from unprior.calibration import (
    Decision,
    Decisions,
    Grid,
    SelectivePriorCalibrator,
    Settings,
    recovery_bound,
    stable_ranges,
)
from unprior.errors import InvalidScoresError, UnpriorError
from unprior.evaluation import Evaluation, evaluate, holm, mcnemar, measure, pair_bootstrap
from unprior.scores import ScoreRow, ScoreTable, read_scores
from unprior.synthetic import synthesize

__version__ = "0.1.0"

__all__ = [
    "Decision",
    "Decisions",
    "Evaluation",
    "Grid",
    "InvalidScoresError",
    "ScoreRow",
    "ScoreTable",
    "SelectivePriorCalibrator",
    "Settings",
    "UnpriorError",
    "evaluate",
    "holm",
    "mcnemar",
    "measure",
    "pair_bootstrap",
    "read_scores",
    "recovery_bound",
    "stable_ranges",
    "synthesize",
]
