"""What every study returns: a table for people, flat records for programs, sentences, and perhaps a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from unprior.evaluation import Change
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle


class StudyResult(Protocol):
    """A frozen result that speaks for itself."""

    @property
    def table(self) -> Table:
        """The table of the paper."""
        ...

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say, computed from them."""
        ...

    def records(self) -> list[dict[str, Any]]:
        """Flat dictionaries of plain values, ready for JSON and CSV; what is undefined is None."""
        ...

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """The figure of the paper where it has one, else None; in the light style unless another is given."""
        ...


def format_repairs(change: Change) -> str:
    """Repairs and harms.

    >>> format_repairs(Change(repairs=21, harms=3, changed=30, total=230))
    '21/3'
    """
    return f"{change.repairs}/{change.harms}"
