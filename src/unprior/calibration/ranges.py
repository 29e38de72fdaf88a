"""For which strengths does a candidate stay first? And when does subtraction recover the visual answer?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unprior.errors import UnpriorError
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray

_FLAT_PRIOR = 1e-12


def stable_ranges(image: FloatArray, prior: FloatArray, candidate: IntArray) -> tuple[FloatArray, FloatArray]:
    """Strengths [lo, hi] ⊂ [0, ∞) for which ``candidate`` stays first, for every column.

    Each rival constrains λ to a half-line; the range is their intersection. ``hi`` may be infinite; an
    empty range is (nan, nan).

    >>> lo, hi = stable_ranges(np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]]), np.array([1]))
    >>> lo.tolist(), hi.tolist()
    ([0.5], [inf])
    """
    columns = np.arange(image.shape[1])
    lower, upper = np.zeros(len(columns)), np.full(len(columns), np.inf)
    own_image, own_prior = image[candidate, columns], prior[candidate, columns]
    for rival in range(len(image)):
        lead, price = own_image - image[rival], own_prior - prior[rival]
        flat = np.abs(price) < _FLAT_PRIOR
        bound = lead / np.where(flat, 1.0, price)
        np.minimum(upper, np.where(flat | (price < 0), np.inf, bound), out=upper)
        np.maximum(lower, np.where(flat | (price > 0), 0.0, bound), out=lower)
        upper[flat & (lead < 0)] = -np.inf
    empty = lower > upper
    return np.where(empty, np.nan, lower), np.where(empty, np.nan, upper)


@dataclass(frozen=True, slots=True)
class RecoveryBound:
    """The paper's sufficient condition for subtraction to recover the visually supported answer.

    With |λ − α| < ``radius`` the answer is the unique winner of the corrected scores. A radius of 0
    promises nothing; an infinite one holds for every λ.
    """

    visual_margin: float
    """Δ_v: how far visual evidence puts the answer ahead of its closest rival."""
    prior_spread: float
    """R_p: the largest prior difference between the answer and a rival."""
    residual_spread: float
    """R_e: the largest residual difference between the answer and a rival."""
    radius: float
    """(Δ_v − R_e) / R_p, never below 0."""

    def guarantees(self, strength: float, influence: float) -> bool:
        """Whether ``strength`` λ is close enough to the prior's ``influence`` α."""
        return abs(strength - influence) < self.radius


def recovery_bound(visual: ArrayLike, prior: ArrayLike, residual: ArrayLike, answer: int) -> RecoveryBound:
    """How far λ may miss α in s_I = v + α p + ε while the answer still comes out first.

    >>> bound = recovery_bound(visual=[2.0, 0.0], prior=[-1.0, 1.0], residual=[0.0, 0.4], answer=0)
    >>> round(bound.radius, 3), bound.guarantees(strength=0.5, influence=1.0)
    (0.8, True)
    """
    terms = [np.asarray(values, dtype=np.float64) for values in (visual, prior, residual)]
    count = len(terms[0])
    if any(values.shape != (count,) for values in terms) or count < 2:
        raise UnpriorError("visual, prior and residual must be lists of the same length, at least 2")
    if not all(np.isfinite(values).all() for values in terms):
        raise UnpriorError("visual, prior and residual must be finite numbers")
    if not 0 <= answer < count:
        raise UnpriorError(f"answer is {answer}, it must be a candidate position from 0 to {count - 1}")
    visual_gap, prior_gap, residual_gap = (values[answer] - np.delete(values, answer) for values in terms)
    margin = float(visual_gap.min())
    prior_spread, residual_spread = float(np.abs(prior_gap).max()), float(np.abs(residual_gap).max())
    if margin <= residual_spread:
        radius = 0.0
    else:
        radius = (margin - residual_spread) / prior_spread if prior_spread > 0 else float("inf")
    return RecoveryBound(margin, prior_spread, residual_spread, radius)
