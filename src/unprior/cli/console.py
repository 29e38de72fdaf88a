"""Where output goes: results to standard output, words about them to standard error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unprior.errors import UnpriorError

# File names and model names may hold brackets, which must not be taken for markup.
output = Console(highlight=False, markup=False)
errors = Console(stderr=True, highlight=False, markup=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
SkipInvalid = Annotated[
    bool,
    typer.Option("--skip-invalid", help="Leave invalid rows out and list them, instead of refusing the file."),
]


def print_json(record: Any) -> None:
    """Print one JSON document to standard output, whatever the width of the terminal."""
    print(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False))


def warn(message: str) -> None:
    """Say something that a person should act on."""
    errors.print(f"warning: {message}", style="yellow", soft_wrap=True)


def refuse_overwriting(out: Path, *inputs: Path) -> None:
    """An output that would replace one of its inputs is a slip."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise UnpriorError(f"--out {out} would overwrite its own input; choose another name")
