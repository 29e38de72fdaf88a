"""The command of the experiments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, errors, output, print_json, warn
from unprior.cli.model import TrustRemoteCode
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.report.study_page import FinishedStudy
    from unprior.studies.inputs import StudyInputs
    from unprior.studies.study import Study

_RUN = Path("unprior-run")


def study(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help="Studies, rq1 … rq5, or all; `list` shows them.", show_default=False),
    ],
    run: Annotated[Path, typer.Option("--run", help="Folder of a run, made by `unprior run`.")] = _RUN,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default `study` in the run.")] = None,
    prepare: Annotated[
        bool,
        typer.Option("--prepare", help="First ask the model what the studies lack: orders, forms, views, methods."),
    ] = False,
    epsilon_cs: Annotated[float, typer.Option(help="The primary limit of commonsense loss.")] = 0.04,
    wide_epsilon_cs: Annotated[float, typer.Option(help="The second, wider limit.")] = 0.10,
    revis_data: Annotated[
        Path | None, typer.Option("--revis-data", help="What REVIS learns from, to prepare with another model.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Questions in one pass while preparing.", min=1)] = 16,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Compute the experiments of the paper for a scored model: tables, figures, sentences, LaTeX, one page.

    Every study needs the scores of a run; some need more, which --prepare computes. What is lacking is named, and the
    other studies go on.
    """
    from unprior.report.page import provenance_facts
    from unprior.report.study_page import PAGE, write_study, write_study_page
    from unprior.studies.inputs import StudyInputs
    from unprior.studies.registry import choose_studies

    if names == ["list"]:
        _print_list(run, as_json)
        return
    chosen = choose_studies(names)
    folder = out or run / "study"
    settings = {"epsilon": epsilon_cs, "wide_epsilon": wide_epsilon_cs}
    inputs = StudyInputs.from_run(run, **settings)
    _refuse_other_tables(inputs, run)
    if prepare:
        from unprior.runs.prepare import prepare_inputs

        prepare_inputs(
            run,
            chosen,
            revis_data=revis_data,
            batch_size=batch_size,
            trust_remote_code=trust_remote_code,
            few_threads=True,
        )
        inputs = StudyInputs.from_run(run, **settings)
    for problem in inputs.problems:
        warn(f"left aside: {problem}")
    finished = run_studies(chosen, inputs, run)
    with errors.status("Drawing and writing …"):
        for each in finished:
            write_study(folder, each)
        write_study_page(folder / PAGE, _title(inputs), finished, provenance_facts(inputs.table))
    if as_json:
        print_json([_record(folder, each) for each in finished])
    else:
        _print_results(finished)
        output.print(f"Results: {folder / PAGE}", soft_wrap=True)
    if all(each.result is None for each in finished):
        raise typer.Exit(1)


def run_studies(chosen: Sequence[Study], inputs: StudyInputs, run: Path) -> list[FinishedStudy]:
    """Run every study whose needs are met, with progress."""
    from unprior.report.study_page import FinishedStudy

    finished = []
    limits = inputs.epsilon, inputs.wide_epsilon
    with errors.status("") as status:
        for number, each in enumerate(chosen, start=1):
            status.update(f"{number} of {len(chosen)}: {each.title} …")
            lacking = each.missing(inputs)
            if lacking:
                finished.append(FinishedStudy(each, None, _lacks(each, lacking, inputs, run), limits))
                continue
            try:
                finished.append(FinishedStudy(each, each.run(inputs), None, limits))
            except UnpriorError as error:
                finished.append(FinishedStudy(each, None, str(error), limits))
    return finished


def _refuse_other_tables(inputs: StudyInputs, run: Path) -> None:
    """Every study is about pairs in two splits; without them there is nothing to do."""
    lacking = inputs.missing("scores")
    if lacking:
        raise UnpriorError(
            f"{run}: the score table lacks {' and '.join(lacking)}; studies fit on development pairs and judge on test "
            f"pairs of a cf and a cs image. Mark them in the benchmark and score it again."
        )


def _lacks(study: Study, needs: Sequence[str], inputs: StudyInputs, run: Path) -> str:
    from unprior.studies.inputs import NEEDS

    named = "; ".join(f"{NEEDS[need].about} ({', '.join(inputs.missing(need))})" for need in needs)
    return f"{study.name} needs {named}: `unprior study {study.name} --run {run} --prepare` makes it."


def _print_list(run: Path, as_json: bool) -> None:
    from unprior.studies.inputs import NEEDS, StudyInputs
    from unprior.studies.registry import STUDIES
    from unprior.tables.terminal import plain_table

    # Without a run there is still a list to show, unless somebody asked for one that is not there.
    inputs = StudyInputs.from_run(run) if (run / "scores.parquet").exists() or run != _RUN else None
    rows = [
        {
            "name": each.name,
            "question": each.question,
            "title": each.title,
            "needs": list(each.needs),
            "ready": None if inputs is None else not each.missing(inputs),
        }
        for each in STUDIES.values()
    ]
    if as_json:
        print_json(rows)
        return
    table = plain_table("Studies")
    for name in ("", "Study", "Title", "Needs", *(["Ready"] if inputs else [])):
        table.add_column(name, no_wrap=name in ("", "Study"))
    seen = ""
    for row in rows:
        question = "" if row["question"] == seen else str(row["question"]).upper()
        seen = str(row["question"])
        ready = [] if inputs is None else ["yes" if row["ready"] else "–"]
        table.add_row(question, str(row["name"]), str(row["title"]), ", ".join(row["needs"]), *ready)  # type: ignore[arg-type]
    output.print(table)
    output.print("; ".join(f"{name}: {need.about}" for name, need in NEEDS.items()), soft_wrap=False)


def _print_results(finished: Sequence[FinishedStudy]) -> None:
    from rich.padding import Padding

    from unprior.tables.terminal import as_rich, fitting

    for each in finished:
        if each.result is None:
            errors.print(f"left out: {each.lacks}", style="yellow", soft_wrap=True)
            errors.print()
            continue
        for part in fitting(each.result.table, output.width - 1):
            output.print(as_rich(part))
        output.print(Padding(" ".join(each.result.sentences), (0, 0, 1, 0)))


def _record(folder: Path, finished: FinishedStudy) -> dict[str, Any]:
    if finished.result is None:
        return {"name": finished.study.name, "lacks": finished.lacks}
    record: dict[str, Any] = json.loads((folder / f"{finished.study.name}.json").read_text(encoding="utf-8"))
    return record


def _title(inputs: StudyInputs) -> str:
    names = [inputs.table.column(name)[0] for name in ("model", "benchmark")]
    return " on ".join(dict.fromkeys(str(name) for name in names if name)) or "Score table"
