"""Studies that were run: each with its result, or with what it lacks and the command that makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from unprior.errors import UnpriorError, did_you_mean
from unprior.plots.panels import Panels
from unprior.plots.style import LIGHT, FigureStyle
from unprior.progress import Progress, Report, silent
from unprior.studies.by_model import ByModel
from unprior.studies.common.variants import spc_name
from unprior.studies.inputs import NEEDS, StudyInputs
from unprior.studies.result import StudyResult, Test
from unprior.studies.study import Study
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that studies of one run are without."""

    run: str
    """The name of the run where there are several, else empty."""
    what: str
    """What is not there, or why it cannot be computed."""
    folder: Path | None = None
    """The folder of the run."""
    made_by: bool = True
    """Whether a command makes it."""

    def command(self, *names: str) -> str | None:
        """The command that makes it for studies of these names; None where there is none.

        >>> Gap("", "answers of other methods (baselines)", Path("my run")).command("methods", "cost")
        "unprior study methods cost --run 'my run' --prepare"
        """
        where = "" if self.folder is None else f" --run {quote(str(self.folder))}"
        return f"unprior study {' '.join(names)}{where} --prepare" if self.made_by else None


@dataclass(frozen=True, slots=True)
class FinishedStudy(StudyResult):
    """A study with its result, or with what it lacks; shows what its result shows."""

    study: Study
    result: StudyResult | None
    lacks: str | None = None
    """Why there is no result, or a part of it is absent, and what to do about it."""
    limits: tuple[float, float] = (0.04, 0.10)
    """The primary and the wider limit of commonsense loss that it was computed with."""
    uncertainty: bool = False
    """Whether the version under study was the uncertainty-aware one."""
    gaps: tuple[Gap, ...] = ()
    """What ``lacks`` tells, piece by piece, so that pages can say once what several studies are without."""

    @property
    def method(self) -> str:
        """The version under study as tables and sentences name it, such as ``SPC (standard, ε = 0.04)``."""
        return spc_name(self.limits[0], uncertainty=self.uncertainty)

    @property
    def how(self) -> str:
        """How the numbers were computed, with this version and these limits."""
        return self.study.explained(*self.limits, uncertainty=self.uncertainty)

    @property
    def given(self) -> StudyResult:
        """The result; where there is none, the error says what is lacking."""
        if self.result is None:
            raise UnpriorError(self.lacks or f"{self.study.name} has no result")
        return self.result

    @property
    def table(self) -> Table:
        """The table of the paper."""
        return self.given.table

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """Tables below the first one."""
        return self.given.further_tables

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say."""
        return self.given.sentences

    def records(self) -> list[dict[str, Any]]:
        """Flat dictionaries of plain values."""
        return self.given.records()

    def tests(self) -> tuple[Test, ...]:
        """Significance tests."""
        return self.given.tests()

    def panels(self) -> Panels | None:
        """The panels of the figure; None for a study without one."""
        return self.given.panels()

    def figure(self, style: FigureStyle = LIGHT, *, narrow: bool = False) -> Figure | None:
        """The figure of the paper where it has one, else None; ``narrow`` for the screen of a telephone."""
        return self.given.figure(style, narrow=narrow)

    @property
    def _named(self) -> str:
        return f"the study {self.study.name}"

    def _repr_html_(self) -> str:
        """The result, for notebooks."""
        shown = "" if self.result is None else self.result._repr_html_()
        return f"<h4>{escape(self.study.title)}</h4>{shown}" + (f"<p>{escape(self.lacks)}</p>" if self.lacks else "")


class NoStudyError(UnpriorError, KeyError):
    """A mistake for people, and for mappings what they expect."""

    __str__ = UnpriorError.__str__


def find_study(finished: Sequence[FinishedStudy], name: str) -> FinishedStudy:
    """The study of this name."""
    found = {each.study.name: each for each in finished}
    if name not in found:
        like = did_you_mean(str(name), found)
        raise NoStudyError(f"no study {name!r} among these results{like}; they are {', '.join(found)}")
    return found[name]


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
        lacking: dict[Gap, str] = {}
        for name, inputs in zip(names, runs, strict=True):
            which = name if len(runs) > 1 else ""
            if missing := study.missing(inputs, wanted=True):
                gap = Gap(which, _named(missing, inputs), inputs.folder)
                verb = "needs" if study.missing(inputs) else "can also show"
                lacking[gap] = f"The study {study.name} {verb} {gap.what}. To compute it: `{gap.command(study.name)}`."
            if study.missing(inputs):
                continue
            try:
                results[name] = study.run(inputs if study.takes_open else inputs.closed())
            except UnpriorError as error:
                lacking[Gap(which, str(error), made_by=False)] = f"{study.name}: {error}"
        told = " ".join(f"{gap.run}: {words}" if gap.run else words for gap, words in lacking.items())
        result = next(iter(results.values()), None) if len(runs) == 1 else ByModel(results) if results else None
        limits = runs[0].epsilon, runs[0].wide_epsilon
        finished.append(FinishedStudy(study, result, told or None, limits, runs[0].uncertainty, tuple(lacking)))
    return _with_tests_once(finished)


def _with_tests_once(finished: Sequence[FinishedStudy]) -> list[FinishedStudy]:
    """Tests of several models that several studies have are shown by the last of them, and the others name it."""
    shown: dict[frozenset[object], Study] = {}
    found: list[FinishedStudy] = []
    for each in reversed(finished):
        if not isinstance(each.result, ByModel):
            found.append(each)
            continue
        families = {family: frozenset(members) for family, members in each.result.families().items()}
        tests_in = {family: shown[tests] for family, tests in families.items() if tests in shown}
        shown = dict.fromkeys(families.values(), each.study) | shown
        found.append(replace(each, result=replace(each.result, tests_in=tests_in)))
    return found[::-1]


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


def _named(needs: Sequence[str], inputs: StudyInputs) -> str:
    return "; ".join(f"{NEEDS[need].about} ({', '.join(inputs.missing(need))})" for need in needs)
