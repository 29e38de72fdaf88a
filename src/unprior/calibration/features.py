"""What the method observes of an example: centred scores, their winners, and the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unprior.calibration.stable import StableRows
from unprior.scores import Block
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray

FEATURE_NAMES = (
    "bias",
    "candidate_count",
    "image_entropy",
    "prior_entropy",
    "image_peak",
    "prior_peak",
    "image_margin",
    "prior_margin",
    "divergence",
    "image_agrees_with_prior",
    "original_agrees_with_image",
    "original_agrees_with_prior",
    "margin_gap",
)
"""The paper's feature vector u, in the order of its appendix."""
ALL_FEATURES = FEATURE_NAMES[1:]
"""The features without the bias: what the strength may depend on."""
PRIOR_FEATURES = tuple(name for name in FEATURE_NAMES if "prior" in name or name in ("divergence", "margin_gap"))
"""Features that depend on the prior scores."""
IMAGE_FEATURES = tuple(name for name in ALL_FEATURES if name not in PRIOR_FEATURES)
"""Features that depend on the image scores and the original answer only."""

_LOG_FLOOR = np.log(1e-12)


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything the method may look at, for rows of equal K (candidates along the first axis)."""

    image: FloatArray
    """Centred image scores, shape (K, rows)."""
    prior: FloatArray
    """Centred prior scores, shape (K, rows)."""
    original: IntArray
    """Position of the original answer i_b, -1 when nothing could be parsed."""
    image_winner: IntArray
    """i_I, the candidate that the image scores put first."""
    prior_winner: IntArray
    """i_P, the candidate that the prior scores put first."""
    features: FloatArray
    """Raw features, shape (rows, 13)."""
    most_strength: FloatArray | None = None
    """Cap of the strength of every row, where rows have one of their own."""
    trusted: BoolArray | None = None
    """Whether the prior of each row may be subtracted; None if all may be."""

    @property
    def candidate_count(self) -> int:
        """K of every row."""
        return int(self.image.shape[0])


def top_two(scores: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Position of the largest entry of every column (ties: the first), its value, and the runner-up's.

    >>> winner, first, second = top_two(np.array([[1.0, 3.0], [4.0, 3.0], [2.0, 0.0]]))
    >>> winner.tolist(), (first - second).tolist()
    ([1, 0], [2.0, 0.0])
    """
    first = scores[0].copy()
    second = np.full_like(first, -np.inf)
    winner = np.zeros(first.shape, dtype=np.int64)
    for position in range(1, len(scores)):
        challenger = scores[position]
        winner[challenger > first] = position
        np.maximum(second, np.minimum(first, challenger), out=second)
        np.maximum(first, challenger, out=first)
    return winner, first, second


def log_softmax(scores: FloatArray) -> FloatArray:
    """Logarithm of the softmax over the first axis.

    >>> np.exp(log_softmax(np.array([[0.0], [0.0]]))).ravel().tolist()
    [0.5, 0.5]
    """
    shifted = scores - scores.max(axis=0)
    normalised: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=0))
    return normalised


def observe(block: Block, stable: StableRows | None = None) -> Observation:
    """Centre the scores of a block and compute the feature vectors; ``stable`` are the rows that it is a block of.

    >>> block = Block(np.array([0]), np.array([[-0.2], [-1.7]]), np.array([[-0.1], [-2.4]]),
    ...               np.array([0]), np.array([1]))
    >>> dict(zip(FEATURE_NAMES, observe(block).features[0].round(3).tolist()))["prior_peak"]
    0.909
    """
    image = block.image - block.image.mean(axis=0)
    prior = block.prior - block.prior.mean(axis=0)
    image_winner, image_first, image_second = top_two(image)
    prior_winner, prior_first, prior_second = top_two(prior)
    image_margin, prior_margin = image_first - image_second, prior_first - prior_second
    if block.candidate_count == 1:  # an open question with one answer, which has no rival
        image_margin, prior_margin = np.zeros_like(image_first), np.zeros_like(prior_first)
    # Without an original answer the features take the image winner in its place.
    original = np.where(block.original < 0, image_winner, block.original)

    image_log, prior_log = log_softmax(image), log_softmax(prior)
    image_probability, prior_probability = np.exp(image_log), np.exp(prior_log)
    np.maximum(image_log, _LOG_FLOOR, out=image_log)
    np.maximum(prior_log, _LOG_FLOOR, out=prior_log)
    mixture_log = np.log(np.maximum(0.5 * (image_probability + prior_probability), 1e-12))
    image_entropy = -(image_probability * image_log).sum(axis=0)
    prior_entropy = -(prior_probability * prior_log).sum(axis=0)
    cross = (image_probability + prior_probability) * mixture_log
    divergence = -0.5 * (image_entropy + prior_entropy + cross.sum(axis=0))

    count = max(block.candidate_count, 2)  # one candidate has no entropy to divide
    features = np.empty((len(block.rows), len(FEATURE_NAMES)))
    features[:, 0] = 1.0
    features[:, 1] = np.log(block.candidate_count) / np.log(4.0)
    features[:, 2] = image_entropy / np.log(count)
    features[:, 3] = prior_entropy / np.log(count)
    features[:, 4] = image_probability.max(axis=0)
    features[:, 5] = prior_probability.max(axis=0)
    features[:, 6] = np.tanh(image_margin / 4.0)
    features[:, 7] = np.tanh(prior_margin / 4.0)
    features[:, 8] = divergence
    features[:, 9] = image_winner == prior_winner
    features[:, 10] = original == image_winner
    features[:, 11] = original == prior_winner
    features[:, 12] = np.tanh((prior_margin - image_margin) / 4.0)
    own = (None, None) if stable is None else (stable.limits(block.rows), stable.may_revise(block.rows))
    return Observation(image, prior, block.original, image_winner, prior_winner, features, *own)
