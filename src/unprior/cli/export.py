"""The command that writes a run for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unprior.cli.console import AsJson, flag, output, print_json
from unprior.cli.lazy import examples
from unprior.cli.progress import reporting


@examples("unprior export run --to inspect", "unprior export run --to inspect --out logs/run.eval --split all")
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of `unprior run`, of one model or of several.")],
    to: Annotated[
        str, flag("Output", "The program: inspect, for logs that `inspect view` shows.", "--to", metavar="TARGET")
    ],
    out: Annotated[
        Path | None,
        flag("Output", "A file (.eval or .json), or a folder; by default inspect.eval in the folder of each model."),
    ] = None,
    split: Annotated[str, flag("Input", "Rows to export; 'all' for every row.")] = "test",
    images: Annotated[bool, flag("Output", "Put the images into the file.", "--images/--no-images")] = True,
    force: Annotated[bool, flag("Output", "Replace a file that is there already.", "--force")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a finished run for another program: questions, images, answers, scores and why each was changed or kept.

    Metrics are those of the run's own evaluation, of its test rows.
    """
    from unprior.runs.export import export_run

    with reporting() as report:
        written = export_run(
            run, to, out, split=None if split == "all" else split, images=images, force=force, report=report
        )
    if as_json:
        print_json({"written": [str(path) for path in written]})
        return
    for path in written:
        output.print(f"Log → {path}", soft_wrap=True)
    output.print(f"`inspect view --log-dir {written[0].parent}` shows it.", soft_wrap=True)
