"""REVIS in numbers: directions from hidden states, risk, choice of the layer and its threshold.

Principal components are taken without centring: the first right singular vector. The shift that all rows share is what
is wanted, and centring would throw it away. Its sign makes the mean row project positively.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

LOWEST_LAYER = 10
SHALLOW = 20
QUANTILE = 85.0


@dataclass(frozen=True, slots=True, eq=False)
class CaptionStates:
    """Hidden states at the last token of captions after one layer, one row per example."""

    seen: Array
    """Image and its caption."""
    seen_hallucinated: Array
    """Image and a hallucinated caption."""
    blind: Array
    """The caption without the image."""
    blind_hallucinated: Array
    """The hallucinated caption without the image."""
    blind_unknown: Array
    """A sentence that no image is given, without an image."""


def principal_component(rows: Array) -> Array:
    """First principal component without centring, of length 1; zeros when there is nothing in the rows.

    >>> principal_component(np.array([[-3.0, 0.0], [-1.0, 0.1]])).round(2).tolist()
    [-1.0, 0.01]
    """
    if not np.any(rows):
        return np.zeros(rows.shape[1], dtype=rows.dtype)
    component: Array = np.linalg.svd(rows, full_matrices=False)[2][0]
    return -component if rows.mean(axis=0) @ component < 0 else component


def directions(states: CaptionStates) -> tuple[Array, Array]:
    """Visual direction, scaled by the mean length of what the image adds beside the prior, and prior direction.

    >>> seen, zero, guessed = np.array([[5.0, 3.0], [7.0, 1.0]]), np.zeros((2, 2)), np.array([[4.0, 0.0], [4.0, 0.0]])
    >>> visual, prior = directions(CaptionStates(seen, zero, zero, guessed, zero))
    >>> visual.round(3).tolist(), prior.round(3).tolist()
    ([0.0, 2.0], [1.0, 0.0])
    """
    prior = principal_component(states.blind_hallucinated - states.blind_unknown)
    added = states.seen - states.blind
    left = added - np.outer(added @ prior, prior)
    scale = np.linalg.norm(left, axis=1).mean()
    return scale * principal_component(left), prior


def cosine(states: Array, direction: Array) -> Array:
    """Cosines between rows and a direction; 0 where either has no length.

    >>> cosine(np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 1.0])).round(3).tolist()
    [0.707, 0.0]
    """
    lengths = np.linalg.norm(states, axis=-1) * np.linalg.norm(direction)
    cosines: Array = states @ direction / np.where(lengths > 0, lengths, 1)
    return cosines


def risk(states: Array, visual: Array) -> Array:
    """How far hidden states point away from the visual direction, from −1 to 1."""
    return -cosine(states, visual)


def separation(states: CaptionStates, visual: Array) -> float:
    """Share of images whose own caption lies nearer to the visual direction than the hallucinated one."""
    return float(np.mean(cosine(states.seen, visual) > cosine(states.seen_hallucinated, visual)))


def lowest_layer(depth: int) -> int:
    """Where the search ends: layer 10, or a third of the depth of a decoder with at most 20 layers.

    >>> lowest_layer(64), lowest_layer(20), lowest_layer(4), lowest_layer(2)
    (10, 6, 1, 1)
    """
    return LOWEST_LAYER if depth > SHALLOW else max(1, depth // 3)


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """Which layer is steered, or why none is."""

    layer: int | None
    """Decoder layer, counted from 0; None when REVIS stays inactive."""
    threshold: float | None
    """States with more risk are steered: the 85th percentile of the risk of factual answers."""
    reason: str
    """Why this layer, or none."""
    false_positive_risk: tuple[float, ...]
    """Mean risk of false positives by layer; empty without any."""
    factual_risk: tuple[float, ...]
    """Mean risk of factual answers by layer; empty without any."""


def choose_layer(false_positives: Array, factual: Array) -> LayerChoice:
    """The last layer where false positives are riskier than factual answers on average.

    Parameters
    ----------
    false_positives, factual
        Risks, shape (layers, answers): “yes” where nothing is, and right answers.

    >>> choice = choose_layer(np.array([[0.0], [0.3], [0.1]]), np.array([[0.1, 0.1], [0.1, 0.2], [0.2, 0.4]]))
    >>> choice.layer, round(choice.threshold, 3)
    (1, 0.185)
    """
    wrong, right = _means(false_positives), _means(factual)
    for name, risks in (("false positive", wrong), ("factual answer", right)):
        if not risks:
            return LayerChoice(None, None, f"no {name} among the presence questions", wrong, right)
    last = len(factual) - 1
    lowest = lowest_layer(len(factual))
    for layer in range(last, lowest - 1, -1):
        if wrong[layer] > right[layer]:
            why = (
                f"from the last layer down, the first where false positives are riskier ({wrong[layer]:.4f}) than "
                f"factual answers ({right[layer]:.4f})"
            )
            return LayerChoice(layer, float(np.percentile(factual[layer], QUANTILE)), why, wrong, right)
    why = f"in no layer from {last} down to {lowest} are false positives riskier than factual answers"
    return LayerChoice(None, None, why, wrong, right)


def _means(risks: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in risks.mean(axis=1)) if risks.shape[1] else ()
