"""The command that examines a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import AsJson, errors, output, print_json
from unprior.cli.model import (
    Attention,
    BaseUrls,
    Device,
    DeviceMap,
    DType,
    EngineName,
    ModelName,
    ModelOptions,
    Revision,
    TensorParallel,
    TrustRemoteCode,
)

if TYPE_CHECKING:
    from unprior.engines.doctor import Examination

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


def doctor(
    model: ModelName = "embedded",
    image: Annotated[Path | None, typer.Option(help="Picture to ask about; by default one is drawn.")] = None,
    question: Annotated[str | None, typer.Option(help="Yes/no question about it.")] = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    engine: EngineName = "transformers",
    base_url: BaseUrls = None,
    tensor_parallel: TensorParallel = 1,
    as_json: AsJson = False,
) -> None:
    """Probe whether a model's scores can be trusted, and say what to do where they cannot.

    Exit code 1 says that something failed; warnings do not count.
    """
    from unprior.engines.doctor import examine
    from unprior.images import open_image

    urls = tuple(base_url or ())
    options = ModelOptions(
        model,
        revision,
        dtype,
        device,
        device_map,
        attention,
        engine,
        urls,
        tensor_parallel=tensor_parallel,
        trust_remote_code=trust_remote_code,
    )
    options.check()
    picture = None if image is None else open_image(image)
    probed = options.load()
    with errors.status("Probing …") as status:
        examination = examine(
            probed, picture, question, report=lambda done, count: status.update(f"Probe {done + 1} of {count} …")
        )
    if as_json:
        print_json(examination.record())
    else:
        _print(examination)
    if examination.failed:
        raise typer.Exit(1)


def _print(examination: Examination) -> None:
    from rich.text import Text

    from unprior.tables.terminal import plain_table

    table = plain_table(f"Examination of {examination.model}")
    table.add_column("Probe", no_wrap=True)
    table.add_column("Result", no_wrap=True)
    table.add_column("Finding")
    for finding in examination.findings:
        style = _STYLES[finding.status]
        table.add_row(finding.name, Text(finding.status, style), Text(finding.detail))
        if finding.remedy is not None:
            table.add_row("", "", Text(f"→ {finding.remedy}", style))
    output.print(table)
    counts = [(word, sum(finding.status == word for finding in examination.findings)) for word in _STYLES]
    output.print(
        ", ".join(f"{count} {word}{'s' * (word == 'warning' and count > 1)}" for word, count in counts if count)
    )
