"""The command of the experiments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, errors, flag, output, print_json, print_tables
from unprior.cli.lazy import examples
from unprior.cli.options import option
from unprior.cli.progress import reporting

if TYPE_CHECKING:
    from unprior.studies.finished import FinishedStudy

_RUN, _SEVERAL = Path("unprior-run"), Path("unprior-study")


@examples(
    "unprior study all --run unprior-run --prepare", "unprior study rq1 rq2 --run run-a --run run-b --out compared"
)
def study(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help="Studies, rq1 … rq5, or all; `list` shows them.", show_default=False),
    ],
    run: Annotated[
        list[Path] | None,
        flag(
            "Input",
            "Folder of a run, made by `unprior run`; given several times, models stand side by side.",
            "--run",
            show_default=str(_RUN),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        flag("Output", f"Folder for the results; by default `study` in the run, or {_SEVERAL} for several runs."),
    ] = None,
    prepare: Annotated[
        bool,
        flag("Preparing", "First ask the model what the studies lack: orders, forms, views, methods.", "--prepare"),
    ] = False,
    epsilon_cs: Annotated[
        float | None, flag("Method", "The primary limit of commonsense loss; by default that of the run.")
    ] = None,
    wide_epsilon_cs: Annotated[
        float | None, flag("Method", "The second, wider limit; by default 0.10, or twice the first.")
    ] = None,
    uncertainty: Annotated[
        bool | None, option("uncertainty", "Study the uncertainty-aware version; by default that of the run.")
    ] = None,
    revis_data: Annotated[
        Path | None, flag("Preparing", "What REVIS learns from, to prepare with another model.")
    ] = None,
    batch_size: Annotated[
        int | None, flag("Preparing", "Questions in one pass while preparing; by default as in the run.", min=1)
    ] = None,
    trust_remote_code: Annotated[bool, option("trust_remote_code")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the experiments of the paper for scored models: tables, figures, sentences, LaTeX, one page.

    Every study needs the scores of a run; some need more, which --prepare computes. What is lacking is named, and the
    other studies go on. Several runs are compared: a block of rows for each model, tests adjusted over all of them.
    """
    from unprior.report.study_page import PAGE
    from unprior.runs.study import study as compute

    folders = run or [_RUN]
    if names == ["list"]:
        _print_list(folders, as_json)
        return
    folder = out or (folders[0] / "study" if len(folders) == 1 else _SEVERAL)
    with reporting() as report:
        results = compute(
            names, folders, out=folder, prepare=prepare, epsilon_cs=epsilon_cs, wide_epsilon_cs=wide_epsilon_cs,
            uncertainty=uncertainty, revis_data=revis_data, batch_size=batch_size, trust_remote_code=trust_remote_code,
            few_threads=True, report=report,
        )  # fmt: skip
    if as_json:
        print_json([_record(folder, each) for each in results.finished])
    else:
        _print_results(results.finished)
        output.print(f"Results: {folder / PAGE}", soft_wrap=True)
    if all(each.result is None for each in results.finished):
        raise typer.Exit(1)


def _print_list(folders: Sequence[Path], as_json: bool) -> None:
    from unprior.studies.inputs import NEEDS, StudyInputs
    from unprior.studies.registry import STUDIES
    from unprior.tables.terminal import plain_table

    # Without a run there is still a list to show, unless somebody asked for one that is not there.
    absent = folders == [_RUN] and not (_RUN / "scores.parquet").exists()
    runs = [] if absent else [StudyInputs.from_run(folder) for folder in folders]
    rows = [each.record(runs) for each in STUDIES.values()]
    if as_json:
        print_json(rows)
        return
    columns = ("", "Study", "Title", "Needs", *(["Ready"] if runs else []))
    table = plain_table("Studies", columns, unbroken=columns[:2])
    seen = ""
    for row in rows:
        question = "" if row["question"] == seen else row["question"].upper()
        seen = row["question"]
        ready = ["yes" if row["ready"] else "–"] if runs else []
        table.add_row(question, row["name"], row["title"], ", ".join(row["needs"]), *ready)
    output.print(table)
    output.print("; ".join(f"{name}: {need.about}" for name, need in NEEDS.items()), soft_wrap=False)


def _print_results(finished: Sequence[FinishedStudy]) -> None:
    from rich.padding import Padding

    from unprior.report.section import sentences_by_model

    for each in finished:
        result = each.result
        if result is not None:
            print_tables(result.table, *result.further_tables)
            told = {model: " ".join(sentences) for model, sentences in sentences_by_model(result).items()}
            paragraphs = [f"{model}: {words}" if model else words for model, words in told.items()]
            output.print(Padding("\n".join(paragraphs), (0, 0, 1, 0)))
        if each.lacks:
            kind = "left out" if result is None else "not complete"
            errors.print(f"{kind}: {each.lacks}", style="yellow", soft_wrap=True)
            errors.print()


def _record(folder: Path, finished: FinishedStudy) -> dict[str, Any]:
    if finished.result is None:
        return {"name": finished.study.name, "lacks": finished.lacks}
    record: dict[str, Any] = json.loads((folder / f"{finished.study.name}.json").read_text(encoding="utf-8"))
    return record
