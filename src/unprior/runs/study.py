"""The experiments of the paper, computed for one finished run or for several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import as_path, check_output_file, check_output_folder
from unprior.errors import UnpriorError, format_option, require_type, warn
from unprior.progress import Progress, Report, check_report, silent
from unprior.runs.config import OPTIONS, RunConfig
from unprior.runs.folder import find_config
from unprior.studies.finished import FinishedStudy, find_study, name_runs, run_studies
from unprior.studies.inputs import StudyInputs, wide_limit
from unprior.studies.registry import choose_studies
from unprior.tables.format import as_sentence

if TYPE_CHECKING:
    import pandas as pd

RUN = Path("unprior-run")
"""Where `unprior run` leaves its files unless told otherwise."""


@dataclass(frozen=True)
class StudyResults(Mapping[str, FinishedStudy]):
    """Finished studies by name, in the order of the paper."""

    runs: tuple[StudyInputs, ...]
    finished: tuple[FinishedStudy, ...]

    def __getitem__(self, name: str) -> FinishedStudy:
        """The study of this name."""
        return find_study(self.finished, name)

    def __iter__(self) -> Iterator[str]:
        """The names of the studies."""
        return (each.study.name for each in self.finished)

    def __len__(self) -> int:
        """How many studies were asked for; some may have no result."""
        return len(self.finished)

    @property
    def title(self) -> str:
        """Models and benchmarks, as the heading of the page."""
        from unprior.report.page import default_title

        return default_title(*(each.table for each in self.runs))

    def to_pandas(self, name: str) -> pd.DataFrame:
        """The records of a study as a data frame; those of several runs say their model."""
        return self[name].to_pandas()

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write every study as CSV, JSON, LaTeX and figures, and all of them as one page; returns the page."""
        from unprior.report.page import provenance_facts
        from unprior.report.study_page import PAGE, write_study, write_study_page

        page = as_path("folder", folder) / PAGE
        for each in self.finished:
            write_study(page.parent, each)
        runs = dict(zip(name_runs(self.runs), self.runs, strict=True))
        facts = {name: provenance_facts(each.table) for name, each in runs.items()}
        told = {name: map(as_sentence, each.cautions) for name, each in runs.items()}
        notes = [f"{name}: {note}" if len(runs) > 1 else note for name, notes in told.items() for note in notes]
        write_study_page(page, self.title, self.finished, facts, notes=notes)
        return page

    def _repr_html_(self) -> str:
        """Every study, for notebooks."""
        return "".join(each._repr_html_() for each in self.finished)


def study(
    names: str | Sequence[str] = "all",
    run: str | PathLike[str] | Sequence[str | PathLike[str]] = RUN,
    *,
    out: str | PathLike[str] | None = None,
    prepare: bool = False,
    epsilon_cs: float | None = None,
    wide_epsilon_cs: float | None = None,
    uncertainty: bool | None = None,
    revis_data: Path | None = None,
    batch_size: int | None = None,
    trust_remote_code: bool = False,
    few_threads: bool = False,
    report: Report = silent,
) -> StudyResults:
    """Compute experiments of the paper for one run, or for several with a block of rows for each.

    A study whose needs are not met has no result; its ``lacks`` says what is missing and which command makes it.

    Parameters
    ----------
    names
        Studies, research questions (``rq1`` … ``rq5``), or ``all``; see ``unprior.studies.registry.STUDIES``.
    run
        The folder of a run, made by `unprior run`, or several of them.
    out
        Folder to write the results to; without it nothing is written.
    prepare
        First ask the model of every run what the studies lack: option orders, question forms, views, other methods.
    epsilon_cs, uncertainty
        The limit of commonsense loss and the version of SPC; by default those of the run.
    wide_epsilon_cs
        The second, wider limit; by default 0.10, or twice the first.
    revis_data, batch_size, trust_remote_code, few_threads
        For ``prepare``: what REVIS learns from, questions in one pass (by default as in the run), permission to run
        the model's own code, and see ``load_engine``.
    report
        Told how far the studies are.

    >>> import tempfile
    >>> from unprior import synthesize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for seed in (0, 1):
    ...         synthesize(seed=seed).write(Path(folder, f"run-{seed}", "scores.parquet"))
    ...     results = study("components", [Path(folder, "run-0"), Path(folder, "run-1")])
    >>> [section.heading for section in results["components"].result.table.sections]
    ['synthetic (run-0)', 'synthetic (run-1)']
    >>> results.to_pandas("components").columns.tolist()[:3]
    ['model', 'variant', 'label']
    """
    require_type("names", names, (str, list, tuple), "the name of a study, or a list of them")
    if not names:
        raise UnpriorError("no study is named; choose all, or some of `unprior study list`")
    require_type("prepare", prepare, bool, "True or False")
    check_report(report)
    chosen = choose_studies([names] if isinstance(names, str) else names)
    folders = as_folders(run)
    target = None if out is None else as_path("out", out)
    settings = _settings(folders, epsilon_cs, wide_epsilon_cs, uncertainty)
    report(Progress("Reading the scores"))
    inputs = [_open(folder, settings) for folder in folders]
    if target is not None:
        check_output_folder(target)
        check_output_file(target / "index.html")
    if prepare:
        from unprior.runs.prepare import prepare_inputs

        for folder in folders:
            prepare_inputs(
                folder, chosen, revis_data=revis_data, batch_size=batch_size, trust_remote_code=trust_remote_code,
                few_threads=few_threads, report=report,
            )  # fmt: skip
        inputs = [_open(folder, settings) for folder in folders]
    for problem in (problem for each in inputs for problem in each.problems):
        warn(f"left aside: {problem}")
    results = StudyResults(tuple(inputs), tuple(run_studies(chosen, inputs, report=report)))
    if target is not None:
        report(Progress("Drawing and writing"))
        results.write(target)
    return results


def as_folders(run: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    """The folders of runs, each once.

    >>> as_folders(["a", "b", "./a"])
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: a is given twice as a run; give every run once
    """
    require_type("run", run, (str, PathLike, list, tuple), "the folder of a run, or a list of them")
    folders = [as_path("run", each) for each in ([run] if isinstance(run, str | PathLike) else run)]
    if not folders:
        raise UnpriorError(f"no run is given; name its folder, e.g. {format_option('run', 'unprior-run')}")
    places = [folder.resolve() for folder in folders]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UnpriorError(f"{folders[number]} is given twice as a run; give every run once")
    return folders


def _settings(
    folders: Sequence[Path], epsilon_cs: float | None, wide_epsilon_cs: float | None, uncertainty: bool | None
) -> dict[str, Any]:
    """The settings of the studies: those that are given, and else those that all runs have in common."""
    given = {"epsilon_cs": epsilon_cs, "uncertainty": uncertainty}
    config = RunConfig.from_options(**{name: value for name, value in given.items() if value is not None})
    if None in given.values():
        runs = {folder: find_config(folder) or RunConfig() for folder in folders}
        for name in (name for name, value in given.items() if value is None):
            found = {folder: run.get(name) for folder, run in runs.items()}
            if len(set(found.values())) > 1:
                told, first = ", ".join(f"{value} in {folder}" for folder, value in found.items()), found[folders[0]]
                raise UnpriorError(
                    f"the runs differ in {name} ({told}); choose one for all, e.g. {format_option(name, first)}"
                )
            config = config.with_options(**{name: found[folders[0]]})
    config.check()
    epsilon = config.method.epsilon_cs
    wide = wide_limit(epsilon) if wide_epsilon_cs is None else OPTIONS["epsilon_cs"].convert(wide_epsilon_cs)
    promises = [run.method.calibrator.promise_parameters for folder in folders if (run := find_config(folder))]
    promise = promises[0] if promises and all(each == promises[0] for each in promises) else {}
    return {"epsilon": epsilon, "wide_epsilon": wide, "uncertainty": config.method.uncertainty, "promise": promise}


def _open(folder: Path, settings: Mapping[str, Any]) -> StudyInputs:
    """Every study is about pairs in two splits; without them there is nothing to do."""
    inputs = StudyInputs.from_run(folder, **settings)
    models = sorted(str(name) for name in inputs.table.values_of("model"))
    if len(models) > 1:
        raise UnpriorError(
            f"{folder}: the score table holds several models ({', '.join(models)}); make a folder with the scores of "
            f"each, and give them as several runs"
        )
    lacking = inputs.missing("scores")
    if lacking:
        raise UnpriorError(
            f"{folder}: the score table lacks {' and '.join(lacking)}; studies fit on development pairs and judge on "
            f"test pairs of a cf and a cs image. Mark them in the benchmark and score it again."
        )
    return inputs
