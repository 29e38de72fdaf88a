"""Selective Prior Calibration: make vision-language models believe their eyes.

The way through the package: benchmark and engine → score table → calibrator → decisions → evaluation.

>>> import unprior
>>> table = unprior.synthesize(seed=0)  # or unprior.score(engine, benchmark, "run"), or unprior.read_scores(path)
>>> calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
>>> test = table.where(split="test")
>>> evaluation = unprior.evaluate(test, calibrator.predict(test).final)
>>> evaluation.tasks[0].cf.change.delta > 0
True

`unprior.run` goes the whole way, and `unprior.run_models` for several models. `unprior.study` computes the experiments
of the paper for finished runs.

Names are imported when they are first used, so that ``import unprior`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unprior._version import __version__ as __version__

if TYPE_CHECKING:
    from unprior.benchmarks.registry import load_benchmark
    from unprior.calibration import (
        Constant,
        Decision,
        Decisions,
        Fixed,
        Grid,
        Learned,
        SelectivePriorCalibrator,
        Settings,
        recovery_bound,
        stable_ranges,
    )
    from unprior.engines.load import load_engine
    from unprior.errors import InvalidScoresError, UnpriorError, UnpriorWarning
    from unprior.evaluation import Evaluation, evaluate, holm, mcnemar, measure, pair_bootstrap
    from unprior.progress import Progress
    from unprior.runs.config import RunConfig
    from unprior.runs.export import export_run
    from unprior.runs.result import RunResult
    from unprior.runs.run import FinishedRuns, run, run_models
    from unprior.runs.study import StudyResults, study
    from unprior.scores import ScoreRow, ScoreTable, read_scores
    from unprior.scoring.ask import Answer, ask
    from unprior.scoring.benchmark import score
    from unprior.synthetic import synthesize

_PLACES = {
    "benchmarks.registry": ("load_benchmark",),
    "calibration": (
        *("Constant", "Decision", "Decisions", "Fixed", "Grid", "Learned", "SelectivePriorCalibrator", "Settings"),
        *("recovery_bound", "stable_ranges"),
    ),
    "engines.load": ("load_engine",),
    "errors": ("InvalidScoresError", "UnpriorError", "UnpriorWarning"),
    "evaluation": ("Evaluation", "evaluate", "holm", "mcnemar", "measure", "pair_bootstrap"),
    "progress": ("Progress",),
    "runs.config": ("RunConfig",),
    "runs.export": ("export_run",),
    "runs.result": ("RunResult",),
    "runs.run": ("FinishedRuns", "run", "run_models"),
    "runs.study": ("StudyResults", "study"),
    "scores": ("ScoreRow", "ScoreTable", "read_scores"),
    "scoring.ask": ("Answer", "ask"),
    "scoring.benchmark": ("score",),
    "synthetic": ("synthesize",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Answer",
    "Constant",
    "Decision",
    "Decisions",
    "Evaluation",
    "FinishedRuns",
    "Fixed",
    "Grid",
    "InvalidScoresError",
    "Learned",
    "Progress",
    "RunConfig",
    "RunResult",
    "ScoreRow",
    "ScoreTable",
    "SelectivePriorCalibrator",
    "Settings",
    "StudyResults",
    "UnpriorError",
    "UnpriorWarning",
    "ask",
    "evaluate",
    "export_run",
    "holm",
    "load_benchmark",
    "load_engine",
    "mcnemar",
    "measure",
    "pair_bootstrap",
    "read_scores",
    "recovery_bound",
    "run",
    "run_models",
    "score",
    "stable_ranges",
    "study",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, whether they are imported yet or not."""
    return sorted({*globals(), *__all__})
