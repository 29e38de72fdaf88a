"""The command that turns a server's log into labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unprior.cli.console import AsJson, flag, output, print_json, print_tables
from unprior.cli.lazy import examples
from unprior.errors import UnpriorError


@examples(
    "unprior label decisions.jsonl --page --images photos --sample 300",
    "unprior label decisions.jsonl --take decisions.labels.csv --out labelled.jsonl",
)
def label(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Decisions logged by `unprior serve --log`.")],
    page: Annotated[bool, flag("Output", "Write a page to label on, instead of a table (CSV).", "--page")] = False,
    images: Annotated[
        Path | None, flag("Input", "Folder with images; those that were asked about are found by their pixels.")
    ] = None,
    sample: Annotated[
        int | None, flag("Input", "So many images, drawn by chance, with all questions about them.", min=1)
    ] = None,
    show_answers: Annotated[
        bool,
        flag("Output", "Table: last columns with what was answered, which sways whoever labels.", "--show-answers"),
    ] = False,
    take: Annotated[Path | None, flag("Input", "Take the labels of this file into the log.", "--take")] = None,
    test_share: Annotated[
        float, flag("Input", "With --take: share of the images that is kept for evaluation.", min=0, max=1)
    ] = 0.5,
    out: Annotated[
        Path | None, flag("Output", "File to write; by default beside the log. It must not be there yet.", "--out")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Label the decisions of a server: write a file to fill in, and take the answers back.

    `unprior fit` and `unprior evaluate` read the labelled log.
    """
    from unprior.serving.label import take_labels, write_label_file

    if take is not None:
        if page or show_answers or images is not None or sample is not None:
            raise UnpriorError(
                "--take reads labels; --page, --images, --sample and --show-answers are for the file to fill in"
            )
        taken = take_labels(log, take, out, test_share=test_share)
        if as_json:
            print_json(taken.record())
            return
        print_tables(taken.table)
        output.print(f"{taken.labelled:,} of {taken.examples:,} examples are labelled → {taken.out}", soft_wrap=True)
        return
    written = write_label_file(log, out, page=page, images=images, sample=sample, show_answers=show_answers)
    if as_json:
        record = {"examples": written.examples, "images": written.images, "images_found": written.shown}
        print_json({"out": str(written.out), "saved": written.saved} | record)
        return
    saves = f"The page saves {written.saved} to the downloads of the browser.\n" if page else ""
    output.print(
        f"{written.examples:,} questions about {written.images:,} images → {written.out}\n{saves}"
        f"Then: unprior label {log} --take {written.saved}",
        soft_wrap=True,
    )
