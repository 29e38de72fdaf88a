"""The whole way in one command: benchmark, scores, calibrator, decisions, report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import AsJson, output, print_json, print_tables, warn
from unprior.cli.estimate import DryRun, print_plan
from unprior.cli.lazy import examples
from unprior.cli.options import option, takes_config
from unprior.cli.progress import reporting
from unprior.errors import UnpriorError
from unprior.runs.config import RunConfig

if TYPE_CHECKING:
    from unprior.runs.result import RunResult
    from unprior.runs.run import FinishedRun, FinishedRuns
    from unprior.studies.finished import FinishedStudy

_Models = Annotated[
    list[str] | None,
    option(
        "model",
        "embedded (comes with the package), or a folder or hub id of a model; given several times, each gets a folder "
        "below --out, and their studies stand side by side. \\[default: embedded]",
    ),
]


@examples(
    "unprior run",
    "unprior run --model Qwen/Qwen3-VL-8B-Instruct --benchmark cdh-bench --out run",
)
@takes_config(
    "model", "engine", "prompt", "benchmark", "method", "output",
    leave_out=("model",),
)  # fmt: skip
def run(model: _Models = None, *, config: RunConfig, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Ask a model every question of a benchmark, calibrate it on the development pairs, judge it on the rest.

    Without options: the embedded model on the microworld, no download needed. The same command again computes only
    what is missing.
    """
    from unprior.runs.run import finish_run, run_models

    if model:
        config = config.with_options(model=list(dict.fromkeys(model)))
    if dry_run:
        print_plan(config, as_json=as_json)
        return
    if len(config.models) > 1:
        with reporting() as report:
            finished = run_models(config=config, few_threads=True, report=report)
        _print_runs(finished, as_json=as_json)
        return
    with reporting() as report:
        done = finish_run(config, few_threads=True, report=report)
    _print_finished(done, as_json=as_json)
    if not done.is_complete:
        raise typer.Exit(1)


def _print_finished(done: FinishedRun, *, as_json: bool) -> None:
    result, folder = done.result, done.config.output.folder
    if as_json:
        warn(*result.cautions)
        print_json(json.loads((folder / "report.json").read_text(encoding="utf-8")))
        return
    print_run(result)
    for note in done.notes:
        output.print(note)
        output.print()
    output.print(f"Report: {folder / 'report.html'}", soft_wrap=True)


def _print_runs(finished: FinishedRuns, *, as_json: bool) -> None:
    """The studies of several models side by side; exit code 1 says that a model, or a part of one, is missing."""
    if finished.page is None:
        raise UnpriorError("none of the models could be run; see the reasons above")
    if as_json:
        print_json(
            {
                "models": {each.config.models[0]: str(each.config.output.folder) for each in finished.runs},
                "failures": finished.failures,
                "studies": {
                    each.study.name: None if each.result is None else each.result.records() for each in finished.studies
                },
            }
        )
    else:
        print_studies(finished.studies)
        for one in finished.runs:
            (name,), page = one.config.models, one.config.output.folder / "report.html"
            output.print(*(f"{name}: {note}\n" for note in one.notes), sep="\n", end="")
            output.print(f"Report of {name}: {page}", soft_wrap=True)
        output.print(f"Side by side: {finished.page}", soft_wrap=True)
    if finished.failures or not all(each.is_complete for each in finished.runs):
        raise typer.Exit(1)


def print_run(result: RunResult) -> None:
    """The headline, and the table of every study of the run."""
    from rich.padding import Padding

    output.print(Padding(result.headline, (0, 0, 1, 0)))
    print_studies(result.studies)


def print_studies(studies: Iterable[FinishedStudy]) -> None:
    """The tables of studies; what one lacks takes their place."""
    from rich.padding import Padding

    for each in studies:
        if each.result is None:
            output.print(Padding(f"Left out: {each.lacks}", (0, 0, 1, 0)))
            continue
        print_tables(each.result.table, *each.result.further_tables)
