"""What every study returns: a table for people, flat records for programs, sentences, and perhaps a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from unprior.errors import UnpriorError
from unprior.evaluation import TaskResult, holm
from unprior.evaluation.show import format_repairs
from unprior.plots.panels import Panels
from unprior.plots.style import LIGHT, FigureStyle
from unprior.tables.html import as_html
from unprior.tables.model import Table
from unprior.tables.records import to_pandas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["StudyResult", "Test", "format_repairs", "grouped"]
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Test:
    """One significance test of a study, as it enters a Holm family over several models."""

    __test__ = False  # no test of pytest's

    family: str
    """Tests of one family are adjusted together, such as those of one version of SPC."""
    name: str
    """What is tested, such as ``MC CF``."""
    p: float
    holm_p: float
    """Adjusted over the family of this model alone."""

    @classmethod
    def from_tasks(cls, family: str, results: Sequence[TaskResult]) -> tuple[Test, ...]:
        """The tests of both sides of every task as one family."""
        names = [f"{result.task.upper()} {side}" for result in results for side in ("CF", "CS")]
        raw = [side.test.p_value for result in results for side in (result.cf, result.cs)]
        return tuple(cls(family, *each) for each in zip(names, raw, holm(raw).adjusted, strict=True))


class StudyResult(ABC):
    """A frozen result that speaks for itself: subclasses give the parts, this class shows them."""

    __slots__ = ()

    @property
    @abstractmethod
    def table(self) -> Table:
        """The table of the paper."""

    @property
    @abstractmethod
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say, computed from them."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Flat dictionaries of plain values, ready for JSON and CSV; what is undefined is None."""

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """Tables below the first one; most studies have none."""
        return ()

    def panels(self) -> Panels | None:
        """The panels of the figure; None for a study without one."""
        return None

    def tests(self) -> tuple[Test, ...]:
        """Significance tests, for Holm families over several models."""
        return ()

    def figure(self, style: FigureStyle = LIGHT, *, narrow: bool = False) -> Figure | None:
        """The figure of the paper where it has one, else None; ``narrow`` for the screen of a telephone."""
        panels = self.panels()
        return None if panels is None else panels.figure(style, narrow=narrow)

    def plot(self, ax: Axes | Sequence[Axes] | None = None, style: FigureStyle = LIGHT) -> list[Axes]:
        """Draw the figure on given axes, one for each panel, or on new ones; returns the axes."""
        panels = self.panels()
        if panels is None:
            raise UnpriorError(f"{self._named} has no figure; its table and records are all there is")
        return list(panels.figure(style).axes) if ax is None else panels.plot(ax, style)

    @property
    def _named(self) -> str:
        """What messages call it."""
        return f"“{self.table.title}”"

    def to_pandas(self) -> pd.DataFrame:
        """The records as a data frame."""
        return to_pandas(self.records())

    def _repr_html_(self) -> str:
        """Tables and sentences, for notebooks."""
        words = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return "".join(as_html(table) for table in (self.table, *self.further_tables)) + words


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by a key of theirs, both in the order in which they come.

    >>> grouped(["mc", "qa", "mt"], key=lambda name: name[0])
    {'m': ['mc', 'mt'], 'q': ['qa']}
    """
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
