"""How long work tells where it stands: one callback, whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unprior.errors import wrong_type


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


def check_report(report: object) -> None:
    """Refuse what cannot be told about progress, before any work.

    >>> check_report(5)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: report: give a function that takes a Progress, not 5
    """
    if not callable(report):
        raise wrong_type("report", report, "a function that takes a Progress")


def silent(_: Progress) -> None:
    """Tell nobody."""
