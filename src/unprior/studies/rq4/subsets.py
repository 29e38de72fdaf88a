"""The parts in which a benchmark is reported: sides of its pairs, or its tasks; and its categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unprior.evaluation.comparison import group_rows
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray

SIDES = {"hallusionbench": {"cf": "Hard", "cs": "Easy"}, "popev2": {"cf": "Absent", "cs": "Present"}}
"""Benchmarks that have words of their own for the two sides of a pair."""
_FEWEST, _MOST = 2, 6


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """Some rows of a benchmark."""

    name: str
    """Such as ``MC CF``, ``Hard`` or ``color CS``."""
    task: str
    side: str | None
    """None where images are not paired."""
    category: str | None
    """None in a subset of all categories."""
    rows: IntArray


def subsets(benchmark: str, table: ScoreTable) -> tuple[Subset, ...]:
    """Sides of every paired task, other tasks as a whole; then the same by category where there are two to six.

    >>> from unprior import synthesize
    >>> [subset.name for subset in subsets("popev2", synthesize(seed=0).where(task="qa"))][:3]
    ['Absent', 'Present', 'Attribute Anomalies Absent']
    """
    every = np.ones(len(table), dtype=np.bool_)
    return tuple(
        subset
        for category, rows in ((None, every), *_categories(table))
        for subset in _by_task(benchmark, table, category, rows)
    )


def _by_task(benchmark: str, table: ScoreTable, category: str | None, within: BoolArray) -> Iterator[Subset]:
    tasks = group_rows(table, "task")
    for (task,), of_task in tasks.items():
        paired = bool(table.is_paired[of_task].all())
        chosen = of_task[within[of_task]]
        for side in ("cf", "cs") if paired else (None,):
            rows = chosen if side is None else chosen[table.is_cf[chosen] == (side == "cf")]
            if len(rows):
                word = None if side is None else SIDES.get(benchmark, {}).get(side, side.upper())
                words = [str(task).upper() if len(tasks) > 1 else None, category, word]
                yield Subset(" ".join(filter(None, words)) or "All", str(task), side, category, rows)


def _categories(table: ScoreTable) -> list[tuple[str, BoolArray]]:
    """Categories, or the subcategories of a single one, if they are neither too few nor too many."""
    for column in ("category", "subcategory"):
        values = np.array([str(value or "") for value in table.column(column)])
        names = sorted(set(values.tolist()) - {""})
        if len(names) > 1:
            return [(name, values == name) for name in names] if _FEWEST <= len(names) <= _MOST else []
    return []
