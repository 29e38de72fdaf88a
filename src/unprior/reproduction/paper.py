"""The numbers that the paper prints, cell by cell, under the LaTeX names of its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

MODELS = ("Qwen3-VL-32B", "LLaVA-1.6-34B", "Qwen3-VL-30B-A3B")
"""The paper's models; the third is evaluated on multiple choice only."""

SCORES_DATASET = "cks19999/CDH-Bench"
"""The hub data set that the paper's per-example score files are published as."""


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One printed number, and what it was computed from."""

    table: str
    """LaTeX label (``tab:main``), or ``text:`` and a name of ours for numbers in running text."""
    model: str
    """One of the paper's models, or ``both`` for sums over the two main ones."""
    row: str
    column: str
    value: float
    """In the paper's unit, as printed."""
    digits: int
    """Decimal places printed; one unit of the last place is 10^-digits."""
    epsilon: float | None
    """Permitted loss of commonsense accuracy; None where nothing was selected."""
    version: str | None
    """``standard`` or ``uncertainty-aware``; None where SPC has no part in it."""
    needs: tuple[str, ...]
    """What it takes beyond per-example scores, such as ``baselines``."""
    seeded: bool
    """It depends on random draws whose seeds the paper does not give."""
    slip: str | None
    """Why the printed value cannot be right, where we know."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, row and column."""
        return self.model, self.row, self.column


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of the paper, or some numbers of its text."""

    label: str
    title: str
    unit: str
    """In words, since many tables mix units."""
    epsilon: float | None
    """The caption's ε; None where rows have their own."""
    version: str | None
    """The caption's version of SPC; None where rows have their own."""
    note: str | None
    """What a reader must know to compare."""
    cells: tuple[PublishedCell, ...]


@cache
def published_tables() -> dict[str, PublishedTable]:
    """All tables by label, in the order of the paper.

    >>> cell = next(cell for cell in published_tables()["tab:main"].cells if cell.column == "ΔCF")
    >>> cell.model, cell.row, cell.value, cell.digits
    ('Qwen3-VL-32B', 'SPC', 7.8, 1)
    """
    stored = json.loads(files("unprior.reproduction").joinpath("paper.json").read_text(encoding="utf-8"))
    return {label: _table(label, entry) for label, entry in stored.items()}


def _table(label: str, entry: dict[str, Any]) -> PublishedTable:
    common = {name: value for name, value in entry.items() if name not in ("title", "unit", "note", "rows")}
    # A row may say for itself what the table says for all.
    cells = [cell for row in entry["rows"] for cell in _cells(label, common | row)]
    about: dict[str, Any] = {name: entry.get(name) for name in ("title", "unit", "epsilon", "version", "note")}
    return PublishedTable(label=label, cells=tuple(cells), **about)


def _cells(label: str, row: dict[str, Any]) -> list[PublishedCell]:
    # Numbers are stored as printed, because "0.300" says more than 0.3.
    return [
        PublishedCell(
            table=label,
            model=row["model"],
            row=row["row"],
            column=column,
            value=float(printed),
            digits=-int(Decimal(printed).as_tuple().exponent),
            epsilon=row.get("epsilon"),
            version=row.get("version"),
            needs=tuple(row.get("needs", ())),
            seeded=row.get("seeded", False),
            slip=row.get("slips", {}).get(column),
        )
        for column, printed in row["cells"].items()
    ]
