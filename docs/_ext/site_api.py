"""The public names of the package, in groups, as directives of autodoc."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import unprior

GROUPS = {
    "From a model to a result": ("load_engine", "load_benchmark", "score", "run", "run_models", "study", "ask"),
    "Scores": ("ScoreTable", "ScoreRow", "read_scores", "synthesize"),
    "Calibration": ("SelectivePriorCalibrator", "Learned", "Constant", "Fixed", "Grid", "Settings"),
    "Decisions": ("Decisions", "Decision", "Answer", "stable_ranges", "recovery_bound"),
    "Evaluation": ("evaluate", "Evaluation", "measure", "mcnemar", "holm", "pair_bootstrap"),
    "Runs and studies": ("RunConfig", "RunResult", "FinishedRuns", "StudyResults"),
    "Progress, warnings, errors": ("Progress", "UnpriorWarning", "UnpriorError", "InvalidScoresError"),
}


def _check() -> None:
    named = [name for names in GROUPS.values() for name in names]
    if sorted(named) != sorted(unprior.__all__):
        differ = sorted(set(named) ^ set(unprior.__all__))
        raise ValueError(f"GROUPS and unprior.__all__ differ in {differ}; put every public name into one group")


def _entry(name: str) -> Iterator[str]:
    thing = getattr(unprior, name)
    if not inspect.isclass(thing):
        yield f".. autofunction:: unprior.{name}"
        return
    yield f".. autoclass:: unprior.{name}"
    if issubclass(thing, Exception):
        yield "   :no-members:"
    elif name == "SelectivePriorCalibrator":  # what saves and publishes it is a class of its own
        yield "   :inherited-members:"


def markdown() -> str:
    """All public names by group."""
    _check()
    blocks = []
    for heading, names in GROUPS.items():
        blocks.append(f"### {heading}")
        blocks += ["```{eval-rst}\n" + "\n".join(_entry(name)) + "\n```" for name in names]
    return "\n\n".join(blocks)
