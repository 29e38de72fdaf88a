"""The command that moves a calibrator with its card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unprior.cli.console import AsJson, flag, output, print_json
from unprior.cli.lazy import examples


@examples(
    "unprior publish run --out my-calibrator/",
    "unprior publish run --repo me/spc-qwen3-vl-8b --private",
)
def publish(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="Folder of `unprior run`, whose test rows stand on the card; or a calibrator."
        ),
    ],
    out: Annotated[Path | None, flag("Output", "Folder for calibrator.json and README.md.")] = None,
    repo: Annotated[str | None, flag("Output", "Repository of the Hugging Face hub, owner/name.")] = None,
    revision: Annotated[str | None, flag("Output", "With --repo: the branch to write to.")] = None,
    private: Annotated[bool, flag("Output", "With --repo: make a new repository private.", "--private")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a calibrator with its card: what it was fitted on, what it repaired and harmed, what it promises."""
    from unprior.runs.publish import publish_calibrator

    places = publish_calibrator(source, out, repo, revision=revision, private=private)
    if as_json:
        print_json({"written": places})
        return
    for place in places:
        output.print(f"Calibrator and card → {place}", soft_wrap=True)
