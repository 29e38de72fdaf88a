"""How long work tells where it stands: one callback, whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a piece of work stands.

    >>> Progress("Scoring", done=3, total=10)
    Progress(doing='Scoring', done=3, total=10, failed=0, reused=0)
    """

    doing: str
    """What is going on, such as ``Scoring`` or ``Loading embedded``."""
    done: int = 0
    total: int = 0
    """0 where there is nothing to count."""
    failed: int = 0
    reused: int = 0
    """Of what is done, how much was stored before."""


Report = Callable[[Progress], None]
"""Is told about progress; it must return soon."""


def silent(_: Progress) -> None:
    """Tell nobody."""
