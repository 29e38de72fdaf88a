"""A learned revision rule: how likely is it that a proposal repairs the answer?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit, log_expit

from unprior.baselines.controls.control import ControlContext, ControlResult
from unprior.calibration.choice import choose
from unprior.calibration.features import FEATURE_NAMES, observe
from unprior.calibration.strength import Standardisation
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray

PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""The paper's ℓ2 penalties."""
NEVER = 1.01
"""A threshold that no probability reaches."""
GRADIENT_TOLERANCE = 1e-9
_MAX_ITERATIONS = 100

Propose = Callable[[ScoreTable, float], IntArray]


def fit_logistic(inputs: FloatArray, target: BoolArray, penalty: float) -> FloatArray:
    """Weights w that minimise the summed log-loss plus (ℓ2/2)‖w‖², bias included, by Newton's method.

    >>> weights = fit_logistic(np.array([[1.0], [1.0], [1.0]]), np.array([True, True, False]), penalty=1e-9)
    >>> expit(weights).round(6).tolist()
    [0.666667]
    """
    weights = np.zeros(inputs.shape[1])
    sign = np.where(target, 1.0, -1.0)

    def loss(candidate: FloatArray) -> float:
        return float(0.5 * penalty * candidate @ candidate - log_expit(sign * (inputs @ candidate)).sum())

    for _ in range(_MAX_ITERATIONS):
        probability = expit(inputs @ weights)
        gradient = inputs.T @ (probability - target) + penalty * weights
        if np.linalg.norm(gradient) <= GRADIENT_TOLERANCE:
            break
        curvature = probability * (1.0 - probability)
        hessian = (inputs.T * curvature) @ inputs + penalty * np.eye(len(weights))
        step, here, length = np.linalg.solve(hessian, gradient), loss(weights), 1.0
        # Convex, so that halving ends; near the minimum rounding hides the decrease.
        while length > 1e-6 and loss(weights - length * step) > here + 1e-12 * (1.0 + abs(here)):
            length *= 0.5
        weights = weights - length * step
    return weights


def learned_rule(propose: Propose, scales: Sequence[float]) -> Callable[[ControlContext], ControlResult]:
    """Revise where proposal and original differ and the estimated chance of a repair reaches a threshold.

    Scale of the proposal, penalty, and threshold are chosen together, in this loop order. Thresholds are 0, 1.01, every
    development probability, and what lies halfway between two neighbours among these. Of thresholds with the same
    development answers the middle one is taken. The last of them revises nothing, so that one is always feasible.
    """

    def run(context: ControlContext) -> ControlResult:
        raw = _features(context.development)
        standardisation = Standardisation.from_features(raw)
        inputs = standardisation.apply(raw)
        nets, changes, settings, rules = [], [], [], []
        for scale in scales:
            proposals = propose(context.development, scale)
            gains, differs = context.gains(proposals), proposals != context.development.original_positions
            for penalty in PENALTIES:
                weights = fit_logistic(inputs, gains > 0, penalty)
                thresholds, net, changed = _sweep(_chance(inputs, weights), gains, differs, context)
                nets.append(net)
                changes.append(changed)
                settings += [(scale, penalty, threshold) for threshold in thresholds.tolist()]
                rules += [weights] * len(thresholds)
        net = np.concatenate(nets)
        choice = choose(net, np.concatenate(changes), context.groups.totals, context.epsilon_cs)
        original = context.test.original_positions
        scale, penalty, threshold = settings[choice.index]
        judged = propose(context.development, scale), propose(context.test, scale)
        proposals = judged[1]
        chance = _chance(standardisation.apply(_features(context.test)), rules[choice.index])
        answers = np.where((proposals != original) & (chance >= threshold), proposals, original)
        chosen = {"scale": scale, "penalty": penalty, "threshold": threshold}
        done = context.groups.changes(net[choice.index])
        return ControlResult(answers, chosen, feasible=True, changes=done, proposals=judged)

    return run


def _chance(inputs: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(expit(inputs @ weights))


def _sweep(
    chance: FloatArray, gains: IntArray, differs: BoolArray, context: ControlContext
) -> tuple[FloatArray, IntArray, IntArray]:
    """Thresholds in rising order, with the net counts by group and the changed answers of each.

    Rows that reach a threshold are a tail of the sorted rows, so one running sum from the end counts for all.
    """
    size = len(context.groups.totals)
    order = np.flatnonzero(differs)[np.argsort(chance[differs], kind="stable")]
    revised = np.zeros((len(order) + 1, size), dtype=np.int64)  # the last row: nothing is revised
    revised[np.arange(len(order)), context.groups.group[order]] = gains[order]
    tails = np.cumsum(revised[::-1], axis=0)[::-1]
    reached, first = np.unique(np.append(chance[order], NEVER), return_index=True)
    return _middle_thresholds(chance, reached), tails[first], len(order) - first


def _middle_thresholds(chance: FloatArray, reached: FloatArray) -> FloatArray:
    """For each of the probabilities of revisable rows, the threshold that separates it best from the one below.

    All thresholds between the two give the same development answers; the one nearest to the middle is taken.
    """
    values = np.unique(np.concatenate([chance, (0.0, NEVER)]))
    offered = np.unique(np.concatenate([values, (values[:-1] + values[1:]) / 2]))
    below = np.concatenate([[-1.0], reached[:-1]])  # so that 0 is among those for the first
    first, last = np.searchsorted(offered, below, side="right"), np.searchsorted(offered, reached)
    middle = (np.maximum(below, 0.0) + reached) / 2
    above = np.clip(np.searchsorted(offered, middle), first, last)
    under = np.clip(above - 1, first, last)
    nearest = np.where(middle - offered[under] <= offered[above] - middle, under, above)
    return np.asarray(offered[nearest])


def _features(table: ScoreTable) -> FloatArray:
    features = np.empty((len(table), len(FEATURE_NAMES)))
    for block in table.blocks():
        features[block.rows] = observe(block).features
    return features
