"""Options for scoring on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

_PANEL = "Cluster"
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Score on a Ray cluster: host:port, local for a new one on this machine; without an address the cluster "
        "that this machine belongs to, or else a new one here.",
        rich_help_panel=_PANEL,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Processes that hold the engine; by default one per GPU or server.", min=1, rich_help_panel=_PANEL
    ),
]
GpusPerWorker = Annotated[
    float | None,
    typer.Option(
        help="GPUs of each; by default --tensor-parallel, or 1, if there are any.", min=0, rich_help_panel=_PANEL
    ),
]
ShardsFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder for their results that all machines reach; by default OUT/shards.", rich_help_panel=_PANEL
    ),
]


class RayCommand(TyperCommand):
    """A command whose ``--ray`` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a lone ``--ray`` an empty address."""
        given: list[str] = []
        for index, argument in enumerate(args):
            given.append(argument)
            following = args[index + 1] if index + 1 < len(args) else "-"
            if argument == "--ray" and following.startswith("-"):
                given.append("")
        return super().parse_args(ctx, given)
