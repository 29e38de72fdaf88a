"""Studies that were run: each with its result, or with what it lacks and the command that makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from unprior.errors import UnpriorError
from unprior.progress import Progress, Report, silent
from unprior.studies.by_model import ByModel
from unprior.studies.common.variants import spc_name
from unprior.studies.inputs import NEEDS, StudyInputs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study


@dataclass(frozen=True, slots=True)
class FinishedStudy:
    """A study with its result, or with what it lacks."""

    study: Study
    result: StudyResult | None
    lacks: str | None = None
    """Why there is no result, or a part of it is absent, and what to do about it."""
    limits: tuple[float, float] = (0.04, 0.10)
    """The primary and the wider limit of commonsense loss that it was computed with."""
    uncertainty: bool = False
    """Whether the version under study was the uncertainty-aware one."""

    @property
    def method(self) -> str:
        """The version under study as tables and sentences name it, such as ``SPC (standard, ε = 0.04)``."""
        return spc_name(self.limits[0], uncertainty=self.uncertainty)

    @property
    def how(self) -> str:
        """How the numbers were computed, with this version and these limits."""
        return self.study.explained(*self.limits, uncertainty=self.uncertainty)

    def __getattr__(self, name: str) -> Any:
        """What the result gives: ``table``, ``sentences``, ``records``, ``plot``, ``to_pandas`` and so on."""
        if name.startswith("_"):
            raise AttributeError(name)
        if self.result is None:
            raise UnpriorError(self.lacks or f"{self.study.name} has no result")
        return getattr(self.result, name)

    def _repr_html_(self) -> str:
        """The result, for notebooks."""
        shown = "" if self.result is None else self.result._repr_html_()
        return f"<h4>{escape(self.study.title)}</h4>{shown}" + (f"<p>{escape(self.lacks)}</p>" if self.lacks else "")


def run_studies(
    chosen: Sequence[Study], runs: Sequence[StudyInputs], *, report: Report = silent
) -> list[FinishedStudy]:
    """Run every study whose needs are met, on one run or on several side by side.

    >>> from unprior import synthesize
    >>> from unprior.studies.registry import choose_studies
    >>> [each.lacks is None for each in run_studies(choose_studies(["rq1"]), [StudyInputs(synthesize(seed=0))])]
    [True]
    """
    names = name_runs(runs)
    finished = []
    for number, study in enumerate(chosen):
        report(Progress(study.title, number, len(chosen)))
        results: dict[str, StudyResult] = {}
        lacking = []
        for name, inputs in zip(names, runs, strict=True):
            which = f"{name}: " if len(runs) > 1 else ""
            if missing := study.missing(inputs, wanted=True):
                lacking.append(which + _lacks(study, missing, inputs))
            if study.missing(inputs):
                continue
            try:
                results[name] = study.run(inputs)
            except UnpriorError as error:
                lacking.append(f"{which}{study.name}: {error}")
        result = next(iter(results.values()), None) if len(runs) == 1 else ByModel(results) if results else None
        limits = runs[0].epsilon, runs[0].wide_epsilon
        finished.append(FinishedStudy(study, result, " ".join(lacking) or None, limits, runs[0].uncertainty))
    return finished


def name_runs(runs: Sequence[StudyInputs]) -> list[str]:
    """A different name for every run: its model, and its folder where two have the same model."""
    models = [inputs.model or "?" for inputs in runs]
    folders = [
        str(number) if inputs.folder is None else inputs.folder.resolve().name for number, inputs in enumerate(runs, 1)
    ]
    same_model, same_name = Counter(models), Counter(folders)
    names = [
        model if same_model[model] == 1 else f"{model} ({folder if same_name[folder] == 1 else inputs.folder})"
        for model, folder, inputs in zip(models, folders, runs, strict=True)
    ]
    if len(set(names)) < len(names):  # a model may be called like another one with its folder
        names = [f"{name}, run {number}" for number, name in enumerate(names, 1)]
    return names


def _lacks(study: Study, needs: Sequence[str], inputs: StudyInputs) -> str:
    named = "; ".join(f"{NEEDS[need].about} ({', '.join(inputs.missing(need))})" for need in needs)
    verb = "needs" if study.missing(inputs) else "would also show"
    where = "" if inputs.folder is None else f" --run {inputs.folder}"
    return f"{study.name} {verb} {named}: `unprior study {study.name}{where} --prepare` makes it."
