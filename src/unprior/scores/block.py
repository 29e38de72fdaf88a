"""Parts of a score table as the method computes on them: rows with equally many candidates, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unprior.scores.schema import IntArray

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.object_]
"""Candidates by their text, one per row; None for no answer."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with the same number of candidates K, candidates along the first axis.

    Reductions over candidates then run over long contiguous rows, which NumPy does an order of
    magnitude faster than over a short last axis.
    """

    rows: IntArray
    """Positions of the rows in the table."""
    image: FloatArray
    """Image scores, shape (K, rows)."""
    prior: FloatArray
    """Prior scores, shape (K, rows)."""
    original: IntArray
    """Candidate position of the original answer, -1 for null."""
    answer: IntArray
    """Candidate position of a correct answer, -1 for unknown, -2 for one that is not among the candidates."""

    @property
    def candidate_count(self) -> int:
        """K, the number of candidates of every row of the block."""
        return int(self.image.shape[0])


def as_labels(values: Sequence[str | None]) -> LabelArray:
    """Labels as an array, so that two of them compare row by row."""
    labels = np.empty(len(values), dtype=np.object_)
    labels[:] = values
    return labels
