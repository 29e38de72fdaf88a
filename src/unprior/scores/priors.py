"""Other ways to estimate the prior: single views of a missing image, and the paper's combinations of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unprior.errors import UnpriorError, did_you_mean
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray, ScoreTable

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


def with_prior(table: ScoreTable, name: str) -> ScoreTable:
    """A table whose prior scores are those of another view, or of a combination of views.

    >>> rows = [{"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes",
    ...          "image_scores": [-0.3, -1.4], "prior_scores": [-0.1, -2.4], "answer": "no",
    ...          "views": {"white": [-0.5, -0.9]}}]
    >>> with_prior(ScoreTable.from_rows(rows), "white").column("prior_scores")
    [[-0.5, -0.9]]
    """
    if name == "text":
        return table
    if name not in (*VIEWS, *COMBINATIONS):
        known = (*VIEWS, *COMBINATIONS)
        raise UnpriorError(f"unknown prior {name!r}{did_you_mean(name, known)}; choose one of {', '.join(known)}")
    wanted = (name,) if name in VIEWS else VIEWS[:3] if name == "median3" else VIEWS
    stored = [dict(entry or ()) for entry in table.column("views")]
    prior = table.prior_scores.copy()
    for block in table.blocks():
        views = {"text": block.prior}
        for view in wanted:
            if view != "text":
                views[view] = _view(stored, view, block.rows)
        cells = table.offsets[block.rows] + np.arange(block.candidate_count)[:, None]
        prior[cells] = views[name] if name in VIEWS else combine_priors(name, views)
    return table.with_prior_scores(prior).with_provenance(prior=name)


def _view(stored: list[dict[str, list[float]]], view: str, rows: IntArray) -> FloatArray:
    absent = [row for row in rows.tolist() if view not in stored[row]]
    if absent:
        raise UnpriorError(
            f"{len(absent)} rows have no view {view!r} (first: row {absent[0] + 1}); "
            f"`unprior score --views {view}` computes it"
        )
    return np.array([stored[row][view] for row in rows.tolist()]).T
