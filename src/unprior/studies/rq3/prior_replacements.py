"""Prior scores that are not this question's: what the prior controls put in their place.

Every replacement looks at development rows and at the scores of the row itself, never at an answer. A row whose task
and number of candidates no other development question has gets a flat prior, which subtracts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray

Replacement = Callable[[ScoreTable, ScoreTable, np.random.Generator], ScoreTable]
"""From development rows, the rows to change and a random generator to the same rows with other prior scores."""


def image_as_prior(development: ScoreTable, table: ScoreTable, generator: np.random.Generator) -> ScoreTable:
    """The image scores themselves: nothing but the sharpness of the scores can change."""
    return table.with_prior_scores(table.image_scores.copy())


def mean_prior(development: ScoreTable, table: ScoreTable, generator: np.random.Generator) -> ScoreTable:
    """Mean of the centred prior scores, by candidate position, over development rows of equal task and K.

    >>> rows = [{"pair_id": pair, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes",
    ...          "image_scores": [0, -1], "prior_scores": prior, "answer": "no"}
    ...         for pair, prior in ((1, [-1.0, -3.0]), (2, [-4.0, 0.0]))]
    >>> table = ScoreTable.from_rows(rows)
    >>> mean_prior(table, table, np.random.default_rng()).column("prior_scores")
    [[-0.5, 0.5], [-0.5, 0.5]]
    """
    means = {key: _centred(development, rows).mean(axis=1) for key, rows in _alike(development)}
    prior = np.zeros(len(table.prior_scores))
    for key, rows in _alike(table):
        if key in means:
            prior[_cells(table, rows)] = means[key][:, None]
    return table.with_prior_scores(prior)


def prior_of_another_question(development: ScoreTable, table: ScoreTable, generator: np.random.Generator) -> ScoreTable:
    """Scores of another development question of equal task and K; all rows of a question get those of the same one."""
    donors: dict[Any, tuple[list[Any], FloatArray]] = {}
    names = development.column("pair_id")
    for key, rows in _alike(development):
        first = {names[row]: row for row in reversed(rows.tolist())}  # the first row of every question
        pairs = list(dict.fromkeys(names[row] for row in rows.tolist()))
        donors[key] = pairs, _centred(development, np.array([first[pair] for pair in pairs]))
    prior, stored = np.zeros(len(table.prior_scores)), table.column("pair_id")
    for key, rows in _alike(table):
        known, scores = donors.get(key, ([], np.empty((key[1], 0))))
        place = {pair: index for index, pair in enumerate(known)}
        pair_ids = [stored[row] for row in rows.tolist()]
        chosen: dict[Any, int | None] = {}
        for pair in dict.fromkeys(pair_ids):
            own = place.get(pair)
            others = len(known) - (own is not None)
            drawn = int(generator.integers(others)) if others else None
            chosen[pair] = drawn if drawn is None or own is None or drawn < own else drawn + 1
        for row, pair in zip(rows.tolist(), pair_ids, strict=True):
            donor = chosen[pair]
            if donor is not None:
                prior[table.offsets[row] : table.offsets[row + 1]] = scores[:, donor]
    return table.with_prior_scores(prior)


def shuffled_prior(development: ScoreTable, table: ScoreTable, generator: np.random.Generator) -> ScoreTable:
    """The row's own scores in another order, drawn for every row: no candidate keeps its score.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> shuffled = shuffled_prior(table, table, np.random.default_rng(0))
    >>> sorted(shuffled.column("prior_scores")[0]) == sorted(table.column("prior_scores")[0])
    True
    """
    prior = table.prior_scores.copy()
    for (_, count), rows in _alike(table):
        cells = _cells(table, rows)
        prior[cells] = np.take_along_axis(prior[cells], derangements(count, len(rows), generator), axis=0)
    return table.with_prior_scores(prior)


def derangements(count: int, number: int, generator: np.random.Generator) -> IntArray:
    """Random orders of ``count`` places in which none stays, all equally likely; shape (count, number).

    >>> derangements(2, 3, np.random.default_rng(0)).tolist()
    [[1, 1, 1], [0, 0, 0]]
    """
    places = np.arange(count)[:, None]
    orders = np.repeat(places, number, axis=1)
    while True:
        kept = np.flatnonzero((orders == places).any(axis=0))
        if kept.size == 0:
            return orders
        orders[:, kept] = generator.permuted(orders[:, kept], axis=0)  # about two thirds must be drawn once more


def _alike(table: ScoreTable) -> Iterator[tuple[tuple[str, int], IntArray]]:
    """Rows of equal task and number of candidates, in a fixed order."""
    tasks, counts = np.array(table.column("task")), table.candidate_counts
    for task, count in sorted({(str(task), int(count)) for task, count in zip(tasks, counts, strict=True)}):
        yield (task, count), np.flatnonzero((tasks == task) & (counts == count))


def _cells(table: ScoreTable, rows: IntArray) -> IntArray:
    """Places of the scores of rows with equal K, candidates along the first axis."""
    count = int(table.candidate_counts[rows[0]])
    return np.asarray(table.offsets[rows] + np.arange(count)[:, None])


def _centred(table: ScoreTable, rows: IntArray) -> FloatArray:
    scores = table.prior_scores[_cells(table, rows)]
    return np.asarray(scores - scores.mean(axis=0))
