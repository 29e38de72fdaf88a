"""What the commands say when scores were made otherwise than those a calibrator was fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unprior.scores.provenance import Differences

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Go on although the scores were made otherwise than the calibrator's.",
        rich_help_panel="Input",
    ),
]


def tell_differences(what: str, differences: Differences, *, force: bool) -> None:
    """Say in one line what differs; what makes scores incomparable is refused unless it is forced."""
    differences.warn_or_refuse(what, force=force)
