"""What every study returns: a table for people, flat records for programs, sentences, and perhaps a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from unprior.evaluation import Change

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle

EQUAL = 1e-12
"""Values that differ by less are the same; sums of shares are not exact."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One line of a table."""

    cells: tuple[str, ...]
    strong: bool = False
    """The row to look at, such as SPC's own."""
    strong_cells: tuple[int, ...] = ()
    """Places of single cells to look at, such as the best of a column."""


@dataclass(frozen=True, slots=True)
class ResultSection:
    """Rows under a common heading."""

    heading: str | None
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table as it stands in a paper; the same for terminal, page and LaTeX.

    >>> table = ResultTable.plain("Changes", ("Task", "ΔCF"), [("MC", "+7.8"), ("QA", "+22.2")], "In points.")
    >>> [row.cells for row in table.rows]
    [('MC', '+7.8'), ('QA', '+22.2')]
    """

    title: str
    columns: tuple[str, ...]
    """Headers."""
    sections: tuple[ResultSection, ...]
    caption: str
    text_columns: int = 1
    """Columns from the left that hold words; the others hold numbers."""

    @classmethod
    def plain(
        cls,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        caption: str,
        *,
        strong: Sequence[int] = (),
        text_columns: int = 1,
    ) -> ResultTable:
        """A table without headings between its rows; ``strong`` are the places of rows to look at."""
        lines = tuple(ResultRow(tuple(row), index in strong) for index, row in enumerate(rows))
        return cls(title, tuple(columns), (ResultSection(None, lines),), caption, text_columns)

    def __post_init__(self) -> None:
        """Every row has a cell for every column."""
        for row in self.rows:
            assert len(row.cells) == len(self.columns), f"{self.title}: {row.cells} for columns {self.columns}"

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """All rows without their headings."""
        return tuple(row for section in self.sections for row in section.rows)


class StudyResult(Protocol):
    """A frozen result that speaks for itself."""

    @property
    def table(self) -> ResultTable:
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


def points(delta: float | None, digits: int = 1) -> str:
    """A change of accuracy in points, with its sign; a dash where there is none.

    >>> points(0.0783), points(-0.004), points(None)
    ('+7.8', '-0.4', '–')
    """
    return "–" if delta is None or math.isnan(delta) else f"{100 * delta + 0.0:+.{digits}f}"


def both(cf: float | None, cs: float | None, digits: int = 1) -> str:
    """ΔCF/ΔCS in points.

    >>> both(0.0783, -0.004)
    '+7.8/-0.4'
    """
    return f"{points(cf, digits)}/{points(cs, digits)}"


def repairs(change: Change) -> str:
    """Repairs and harms.

    >>> repairs(Change(repairs=21, harms=3, changed=30, total=230))
    '21/3'
    """
    return f"{change.repairs}/{change.harms}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; a dash where there is none.

    >>> percent(0.8514), percent(float("nan"))
    ('85.1', '–')
    """
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f}"


def interval(low: float, high: float, digits: int = 1) -> str:
    """An interval of a change in points.

    >>> interval(0.039, 0.122)
    '[+3.9, +12.2]'
    """
    return f"[{points(low, digits)}, {points(high, digits)}]" if not math.isnan(low) else "–"


def limit(epsilon: float) -> str:
    """A limit of commonsense loss, with as many digits as it has but at least two.

    >>> limit(0.1), limit(0.025)
    ('0.10', '0.025')
    """
    return max(f"{epsilon:.2f}", f"{epsilon:g}", key=len)


def quoted(label: str) -> str:
    """A row's name in a sentence; those of SPC are names already.

    >>> quoted("SPC"), quoted("Fixed strength")
    ('SPC', '“Fixed strength”')
    """
    return label if label.startswith("SPC") else f"“{label}”"


def listed(parts: Sequence[str]) -> str:
    """Words in a row as a sentence has them.

    >>> listed(["MC"]), listed(["MC", "QA"]), listed(["a", "b", "c"])
    ('MC', 'MC and QA', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "pair"), counted(14, "development pair"), counted(0, "pair")
    ('1 pair', '14 development pairs', '0 pairs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def highest(values: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the highest value; several when they differ by no more than rounding.

    >>> highest({"a": 0.1 + 0.2, "b": 0.3, "c": 0.2})
    ('a', 'b')
    """
    most = max(values.values())
    return tuple(name for name, value in values.items() if value >= most - EQUAL)


def extremes(shares: Mapping[str, float]) -> str:
    """Where shares are highest and lowest, in words that are right for ties.

    >>> extremes({"a": 0.5, "b": 1.0, "c": 1.0})
    'is highest for b and c (100.0 %) and lowest for a (50.0 %)'
    >>> extremes({"a": 0.5, "b": 0.5})
    'is 50.0 % for a and b'
    """
    top, bottom = highest(shares), highest({name: -share for name, share in shares.items()})
    high, low = (f"{percent(shares[names[0]])} %" for names in (top, bottom))
    if len(top) == len(shares):
        return f"is {high} for {listed(top)}"
    return f"is highest for {listed(top)} ({high}) and lowest for {listed(bottom)} ({low})"
