"""What `unprior run` does: benchmark, scores, calibrator, decisions, report; for one model or for several."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior.errors import UnpriorError, require_type, warn, wrong_type
from unprior.progress import Progress, Report, silent
from unprior.runs.config import RunConfig
from unprior.runs.folder import check_folder
from unprior.runs.questions import check_questions, load_questions

if TYPE_CHECKING:
    from unprior.runs.result import RunResult
    from unprior.scoring.rows import Failure
    from unprior.scoring.run import Summary
    from unprior.studies.finished import FinishedStudy


@dataclass(frozen=True)
class FinishedRun:
    """A run with everything that came out of it."""

    config: RunConfig
    result: RunResult
    summary: Summary
    """What was scored."""
    lost: Sequence[Failure]
    """Answers of other methods that are missing."""
    notes: tuple[str, ...]
    """Sentences that a reader of the numbers should see first."""

    @property
    def is_complete(self) -> bool:
        """Whether every example has its scores and its answers."""
        return not (self.summary.failures or self.lost)


def run(config: RunConfig | None = None, *, report: Report = silent, **options: Any) -> RunResult:
    """Ask a model every question of a benchmark, calibrate it on the development pairs, judge it on the rest.

    Everything is written to the folder ``out``; the same call again computes only what is missing.

    Parameters
    ----------
    config
        What determines the run; by default the embedded model on the microworld.
    report
        Told how far it is.
    options
        Changes to the configuration, named as on the command line: ``model``, ``benchmark``, ``out``, ``epsilon_cs``,
        ``batch_size`` and so on; see :data:`unprior.runs.config.OPTIONS`.

    >>> run(model="embedded", epsilon=0.04)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: epsilon: no such option of a run (did you mean epsilon_cs?)
    """
    config = _configured(config, options)
    if len(config.models) > 1:
        raise UnpriorError("model: run takes one model; unprior.run_models runs several, side by side")
    return finish_run(config, report=report).result


def _configured(config: RunConfig | None, options: Mapping[str, Any]) -> RunConfig:
    require_type("config", config, RunConfig | None, "a RunConfig, and options by their names")
    return (config or RunConfig()).with_options(**options)


def finish_run(config: RunConfig, *, few_threads: bool = False, report: Report = silent) -> FinishedRun:
    """Do a run, and tell everything about it; see :func:`run` and, for ``few_threads``, ``load_engine``."""
    from unprior.baselines.names import choose_methods
    from unprior.baselines.suite import (
        ANSWERS,
        MethodOptions,
        answer_with_methods,
        fitting_answers,
        prepare_methods,
    )
    from unprior.calibration.show import warn_about_abstaining
    from unprior.engines.load import load_engine, with_internals
    from unprior.runs.result import FILES, RunResult, scoring_notes
    from unprior.runs.score import score_all, write_open
    from unprior.scoring.benchmark import check_images, warn_about_failures

    method, out, batch_size = config.method, config.output.folder, config.engine.batch_size
    options = MethodOptions.from_names(method.baselines, method.revis_data, method.revis_strength, method.cost_examples)
    config.check(needs_internals=bool(choose_methods(options.names).decoded))
    check_folder(config, *FILES)
    benchmark = load_questions(config, report)
    check_images(benchmark)
    for caution in check_questions(benchmark, method.epsilon_cs):
        warn(caution)
    engine = load_engine(**config.loading, few_threads=few_threads, report=report)
    prepared = None
    if options.names and engine.capabilities.hidden_states:
        prepared = prepare_methods(
            with_internals(engine), benchmark, out, options, batch_size=batch_size, report=report
        )
    config.write(early=True)
    scored, side = score_all(config, engine, benchmark, report)
    table = scored.table("calibrate")
    if table.is_open.any():
        write_open(config, engine, benchmark, side)
    answers: Path | None = None
    lost: tuple[Failure, ...] = ()
    left_out: Mapping[str, str] = {}
    if prepared is not None:
        lost, left_out = answer_with_methods(
            with_internals(engine), benchmark, out, prepared, table=table, resize=side, batch_size=batch_size,
            cost_examples=options.cost_examples, report=report,
        )  # fmt: skip
        warn_about_failures(lost, "answers of other methods", "made")
        answers = None if lost else fitting_answers(out / ANSWERS, table)
    result = RunResult.from_table(
        table, method.calibrator, baselines=answers, left_out=left_out, folder=out, report=report
    )
    warn_about_abstaining(result.calibrator)
    report(Progress("Writing the report"))
    notes = scoring_notes(scored.summary, table, len(lost))
    result.write(out, benchmark, note=" ".join(notes) or None)
    config.write()
    return FinishedRun(config, result, scored.summary, lost, (*notes, *result.notes))


@dataclass(frozen=True)
class FinishedRuns:
    """Runs of several models, each with its ``config`` and its ``result``, and their studies side by side."""

    runs: tuple[FinishedRun, ...]
    failures: dict[str, str]
    """Models that could not be run, and why."""
    studies: list[FinishedStudy] = field(default_factory=list)
    page: Path | None = None
    """The page of the studies; None without any finished run."""


def run_models(
    models: Sequence[str] | None = None,
    config: RunConfig | None = None,
    *,
    few_threads: bool = False,
    report: Report = silent,
    **options: Any,
) -> FinishedRuns:
    """Run several models alike, each in a folder of its own, and write their studies side by side.

    A model that cannot be run is named in a warning, and the others go on. The configuration of all is left in ``out``.

    Parameters
    ----------
    models
        Names of models, as ``model`` of :func:`run`; by default those of the configuration.
    config, options
        What determines the runs, see :func:`run`; every model gets a folder below ``out``.
    few_threads, report
        See :func:`unprior.engines.load.load_engine` and :func:`run`.

    >>> run_models("embedded")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: models: give a list of names, such as ['embedded'], not 'embedded'
    """
    config = _configured(config, options)
    if models is None:
        models = config.models
    if not models or not isinstance(models, list | tuple):
        raise wrong_type("models", models, "a list of names, such as ['embedded']")
    config = config.with_options(model=models)
    check_folder(config)
    base, method, done, failures = config.output.folder, config.method, [], {}
    for model, own in zip(models, configs_of_models(models, config), strict=True):
        try:
            done.append(finish_run(own, few_threads=few_threads, report=report))
            if len(models) > 1:
                config.write()
        except UnpriorError as error:
            failures[model] = str(error)
            warn(f"{model} is left out: {error}")
    if not done:
        return FinishedRuns((), failures)
    from unprior.runs.study import StudyResults
    from unprior.studies.finished import run_studies
    from unprior.studies.inputs import StudyInputs, wide_limit
    from unprior.studies.registry import studies_of_run

    limits = {"epsilon": method.epsilon_cs, "wide_epsilon": wide_limit(method.epsilon_cs)}
    folders = [each.config.output.folder for each in done]
    promise = method.calibrator.promise_parameters
    inputs = [StudyInputs.from_run(each, **limits, uncertainty=method.uncertainty, promise=promise) for each in folders]
    studies = run_studies(studies_of_run(*(each.table for each in inputs)), inputs, report=report)
    report(Progress("Drawing and writing"))
    page = StudyResults(tuple(inputs), tuple(studies)).write(base)
    return FinishedRuns(tuple(done), failures, studies, page)


def configs_of_models(models: Sequence[str], config: RunConfig) -> list[RunConfig]:
    """The configuration of every model, whose folder below that of all is named after it."""
    named = zip(models, _folders(models), strict=True)
    return [config.with_options(model=model, out=config.output.folder / folder) for model, folder in named]


def _folders(models: Sequence[str]) -> list[str]:
    """A folder for each model, named after it; on some disks a and A are the same.

    >>> _folders(["Qwen/Qwen3-VL-8B-Instruct", "models/mine", "models/mine/", "embedded"])
    ['Qwen-Qwen3-VL-8B-Instruct', 'models-mine', 'models-mine-2', 'embedded']
    >>> _folders(["llava-2", "llava", "LLaVA", "llava"])
    ['llava-2', 'llava', 'LLaVA-3', 'llava-4']
    """
    folders: list[str] = []
    for model in models:
        slug = re.sub(r"[^\w.-]+", "-", str(model)).strip("-.") or "model"
        taken = {folder.casefold() for folder in folders}
        names = (slug, *(f"{slug}-{number}" for number in range(2, len(models) + 2)))
        folders.append(next(name for name in names if name.casefold() not in taken))
    return folders
