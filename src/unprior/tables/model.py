"""A table as it stands in a paper; the same for terminal, page, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    cells: tuple[str, ...]
    bold: bool = False
    """The row to look at, such as SPC's own."""
    bold_cells: tuple[int, ...] = ()
    """Places of single cells to look at, such as the best of a column."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under a common heading."""

    heading: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it stands in a paper; the same for terminal, page and LaTeX.

    >>> table = Table.plain("Changes", ("Task", "ΔCF"), [("MC", "+7.8"), ("QA", "+22.2")], "In points.")
    >>> [row.cells for row in table.rows]
    [('MC', '+7.8'), ('QA', '+22.2')]
    """

    title: str
    columns: tuple[str, ...]
    """Headers."""
    sections: tuple[Section, ...]
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
        bold: Sequence[int] = (),
        text_columns: int = 1,
    ) -> Table:
        """A table without headings between its rows; ``bold`` are the places of rows to look at."""
        lines = tuple(Row(tuple(row), index in bold) for index, row in enumerate(rows))
        return cls(title, tuple(columns), (Section(None, lines),), caption, text_columns)

    def __post_init__(self) -> None:
        """Every row has a cell for every column."""
        for row in self.rows:
            assert len(row.cells) == len(self.columns), f"{self.title}: {row.cells} for columns {self.columns}"

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows without their headings."""
        return tuple(row for section in self.sections for row in section.rows)
