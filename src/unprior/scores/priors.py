"""Other ways to estimate the prior: single views of a missing image, and the paper's combinations of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unprior.errors import UnpriorError
from unprior.scores.table import FloatArray

VIEWS = ("text", "white", "black", "mean")
"""Estimates that an engine can score: no image, a white, a black, and the mean development image."""
COMBINATIONS = ("median", "median3", "adjusted", "weighted")
"""Normalised median of all views, of text/white/black, 25 % adjustment, disagreement-weighted adjustment."""

_ADJUSTMENT = 0.25
_DISAGREEMENT = 0.1


def combine_priors(name: str, views: Mapping[str, FloatArray]) -> FloatArray:
    """Combine prior scores of several views, each of shape (K, …), centred over the candidates.

    >>> flat = {view: np.array([[1.0], [-1.0]]) * scale for view, scale in zip(VIEWS, (1, 2, 3, 4))}
    >>> combine_priors("median", flat).ravel().tolist()
    [2.5, -2.5]
    """
    if name not in COMBINATIONS:
        raise UnpriorError(f"unknown combination {name!r}; choose one of {', '.join(COMBINATIONS)}")
    needed = VIEWS[:3] if name == "median3" else VIEWS
    absent = [view for view in needed if view not in views]
    if absent:
        raise UnpriorError(f"{name} needs the views {', '.join(needed)}; {', '.join(absent)} is not scored")
    centred = np.stack([views[view] - views[view].mean(axis=0) for view in needed])
    scale = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    normalised = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)
    middle = np.median(normalised, axis=0)
    median: FloatArray = middle * np.median(scale, axis=0)
    text: FloatArray = centred[0]
    if name in ("median", "median3"):
        return median
    if name == "adjusted":
        adjusted: FloatArray = text + _ADJUSTMENT * (median - text)
        return adjusted
    disagreement = np.median(np.abs(normalised - middle), axis=0)
    weight = _DISAGREEMENT / (_DISAGREEMENT + disagreement)
    weighted: FloatArray = text + _ADJUSTMENT * weight * (median - text)
    return np.asarray(weighted - weighted.mean(axis=0))
