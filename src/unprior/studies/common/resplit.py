"""The splits of a benchmark, drawn from the rows of a score table: the same rule and seed draw the same pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.splits import DEV, TEST, hold_out
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable

_COLUMNS = ("pair_id", "side", "task", "category", "subcategory", "split")


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to fit on and rows to judge on."""

    development: ScoreTable
    test: ScoreTable

    @property
    def development_pairs(self) -> int:
        """How many pairs there are to fit on."""
        return len(self.development.codes("pair_id")[1])

    def decisions(self, epsilon: float, *, uncertainty: bool) -> Decisions:
        """SPC fitted on the development rows alone, applied to the test rows."""
        calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon, uncertainty=uncertainty)
        return calibrator.fit(self.development, split=None).predict(self.test)


def outline(table: ScoreTable) -> Benchmark:
    """What splits are made of: the pairs of a table with their subcategories and splits, without images and words.

    A score table does not know which pairs share an image, so that here every pair is a unit of its own.

    >>> from unprior import synthesize
    >>> outline(synthesize(seed=0)).counts()
    {'examples': 1200, 'images': 600, 'pairs': 300, 'dev': 70, 'test': 230}
    """
    examples = [
        Example(
            example_id=str(row), image=Path(f"{pair}/{side}"), question="", task=task, labels=(), pair_id=pair,
            side=side, category=category, subcategory=subcategory, split=split,
        )
        for row, (pair, side, task, category, subcategory, split) in enumerate(
            zip(*(table.column(name) for name in _COLUMNS), strict=True)
        )
    ]  # fmt: skip
    names = dict.fromkeys(str(name) for name in table.column("benchmark") if name is not None)
    return Benchmark(", ".join(names) or "scores", examples)


def outline_by_subcategory(table: ScoreTable) -> Benchmark:
    """The outline of a table whose every row names a subcategory, for splits that draw from each of them."""
    names = table.column("subcategory")
    unnamed = sum(name is None for name in names)
    if unnamed:
        raise UnpriorError(
            f"development pairs are drawn from every subcategory, but {unnamed} of {len(names)} rows name none; fill "
            f"in the column 'subcategory' of the score table"
        )
    return outline(table)


def fold(table: ScoreTable, split: Benchmark) -> Fold:
    """The rows of a table as a split of its outline has them.

    >>> from unprior import synthesize
    >>> from unprior.benchmarks.splits import split_by_seed
    >>> table = synthesize(seed=0)
    >>> fold(table, split_by_seed(outline(table), seed=1)).development_pairs
    70
    """
    parts = np.array([example.split or "" for example in split])
    return Fold(table.take(parts == DEV), table.take(parts == TEST))


def held_out_folds(table: ScoreTable, by: str) -> Iterator[tuple[str, Fold]]:
    """For every category (or subcategory) with test rows, in their order: develop without it, test on it alone."""
    named = zip(table.column(by), table.column("split"), strict=True)
    names = dict.fromkeys(name for name, split in named if split == TEST and name is not None)
    if len(names) < 2:
        raise UnpriorError(
            f"the test rows name {len(names)} of at least two {by} values that could be held out; fill in the column "
            f"{by!r} of the score table"
        )
    benchmark = outline(table)
    for name in names:
        yield name, fold(table, hold_out(benchmark, **{by: name}))
