"""The two ways of the controls to turn scores into a proposal."""

from __future__ import annotations

import numpy as np

from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray

STRENGTHS = (0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.2, 1.5)
"""The paper's grid of fixed strengths λ."""
FIXED_STRENGTH = 0.8
"""The one of them that the paper fixes beforehand."""
GUIDANCE_SCALES = (1.1, 1.5, 2.0)
"""The paper's grid of guidance scales γ."""
_PLAUSIBLE = np.log(0.1)


def fixed_strength_answers(table: ScoreTable, strength: float) -> IntArray:
    """Candidates that win s_I − λ·s_P with one λ for every row, always adopted; ties go to the first.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> len(fixed_strength_answers(table, 0.8)) == len(table)
    True
    """
    answers = np.empty(len(table), dtype=np.int64)
    for block in table.blocks():
        answers[block.rows] = (block.image - strength * block.prior).argmax(axis=0)
    return answers


def guided_answers(table: ScoreTable, scale: float) -> IntArray:
    """Candidates that win γ·s_I − (γ − 1)·s_P among those with s_I ≥ max s_I + ln 0.1; ties go to the first.

    >>> row = {"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes",
    ...        "answer": "no", "image_scores": [-0.6, -0.9], "prior_scores": [-0.1, -2.4]}
    >>> table = ScoreTable.from_rows([row, row | {"image_scores": [-0.1, -2.5]}])
    >>> guided_answers(table, 2.0).tolist()  # in the second row "no" is too unlikely to be considered
    [1, 0]
    """
    answers = np.empty(len(table), dtype=np.int64)
    for block in table.blocks():
        plausible = block.image >= block.image.max(axis=0) + _PLAUSIBLE
        guided = scale * block.image - (scale - 1.0) * block.prior
        answers[block.rows] = np.where(plausible, guided, -np.inf).argmax(axis=0)
    return answers
