"""The command that examines a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import AsJson, in_commands, output, print_json, print_tables
from unprior.cli.lazy import examples
from unprior.cli.options import takes_config
from unprior.cli.progress import reporting
from unprior.errors import UnpriorError
from unprior.progress import Progress
from unprior.runs.config import RunConfig

if TYPE_CHECKING:
    from unprior.engines.doctor import Examination

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


@examples(
    "unprior doctor --model my-model --engine openai --base-url http://localhost:8000 --against folder/my-model",
    "unprior doctor --prior --benchmark questions.jsonl",
)
@takes_config(
    "model", "engine", "prompt", "benchmark",
    leave_out=("concurrency", "batch_size", "max_new_tokens", "allow_censored", "variant", "resize"),
    texts={"benchmark": "With --prior: a benchmark of `unprior data list`, or a file or table of questions."},
)  # fmt: skip
def doctor(
    *,
    config: RunConfig,
    image: Annotated[Path | None, typer.Option(help="Image to ask about; by default one is drawn.")] = None,
    question: Annotated[str | None, typer.Option(help="Yes/no question about it.")] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Folder of the same model: its prompts and scores in --engine transformers must be the same.",
            metavar="DIR",
        ),
    ] = None,
    prior: Annotated[
        bool,
        typer.Option(
            "--prior", help="Instead: is the prior trustworthy for the questions of --benchmark? Asked without images."
        ),
    ] = False,
    questions: Annotated[int, typer.Option(help="Questions that --prior asks about at most.", min=1)] = 70,
    as_json: AsJson = False,
) -> None:
    """Probe whether a model's scores can be trusted, and say what to do where they cannot.

    Exit code 1 says that something failed; warnings do not count.
    """
    from unprior.engines.doctor import examine
    from unprior.engines.load import load_engine, with_internals
    from unprior.images import open_image

    config.check()
    if prior and (image or question or against):
        raise UnpriorError("--prior asks without images: leave out --image, --question and --against")
    if prior:
        _examine_prior(config, questions, as_json=as_json)
        return
    shown = None if image is None else open_image(image)
    with reporting() as report:
        engine = load_engine(**config.loading, few_threads=True, permissive=True, report=report)
        folder = None
        if against is not None:  # vLLM in this process leaves no room on an accelerator
            device = "cpu" if config.engine.name == "vllm" else None
            alike = ("layout", "template_args", "image_backend", "trust_remote_code")
            same = {name: config.loading[name] for name in alike}
            folder = with_internals(load_engine(against, device=device, **same, few_threads=True, report=report))
        examination = examine(
            engine,
            shown,
            question,
            against=folder,
            report=lambda done, count: report(Progress("Probing", done, count)),
        )
    if as_json:
        print_json(examination.record())
    else:
        _print(examination)
    if examination.failed:
        raise typer.Exit(1)


def _examine_prior(config: RunConfig, questions: int, *, as_json: bool) -> None:
    from unprior.runs.prior_trust import examine_prior

    with reporting() as report:
        trust = examine_prior(config, questions=questions, report=report)
    if as_json:
        print_json(trust.record())
        return
    print_tables(trust.table)
    for sentence in trust.words:
        output.print(in_commands(sentence))


def _print(examination: Examination) -> None:
    from rich.text import Text

    from unprior.tables.terminal import plain_table

    columns = ("Probe", "Result", "Finding")
    table = plain_table(f"Examination of {examination.model}", columns, unbroken=columns[:2])
    for finding in examination.findings:
        style = _STYLES[finding.status]
        table.add_row(finding.name, Text(finding.status, style), Text(finding.detail))
        if finding.remedy is not None:
            table.add_row("", "", Text(f"→ {in_commands(finding.remedy)}", style))
    output.print(table)
    counts = [(word, sum(finding.status == word for finding in examination.findings)) for word in _STYLES]
    words = [f"{count} {word}{'s' * (word == 'warning' and count > 1)}" for word, count in counts if count]
    output.print(", ".join(words))
