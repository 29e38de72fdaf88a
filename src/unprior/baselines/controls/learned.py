"""A learned revision rule: how likely is it that a proposal repairs the answer?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit, log_expit

from unprior.baselines.controls.control import ControlResult, Data
from unprior.calibration.choice import choose
from unprior.calibration.features import FEATURE_NAMES, observe
from unprior.calibration.strength import Standardisation
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray

PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""The paper's ℓ2 penalties."""
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


def learned_rule(propose: Propose, scales: Sequence[float]) -> Callable[[Data], ControlResult]:
    """Revise where proposal and original differ and the estimated chance of a repair reaches a threshold.

    Scale of the proposal, penalty, and threshold (one of the development probabilities) are chosen together, in this
    loop order.
    """

    def run(data: Data) -> ControlResult:
        raw = _features(data.development)
        standardisation = Standardisation.of(raw)
        inputs = standardisation.apply(raw)
        nets, changes, settings, rules = [], [], [], []
        for scale in scales:
            proposals = propose(data.development, scale)
            gains, differs = data.gains(proposals), proposals != data.development.original
            for penalty in PENALTIES:
                weights = fit_logistic(inputs, gains > 0, penalty)
                thresholds, net, changed = _sweep(_chance(inputs, weights), gains, differs, data)
                nets.append(net)
                changes.append(changed)
                settings += [(scale, penalty, threshold) for threshold in thresholds.tolist()]
                rules += [weights] * len(thresholds)
        net = np.concatenate(nets)
        choice = choose(net, np.concatenate(changes), data.groups.totals, data.epsilon_cs)
        original = data.test.original
        if choice.feasible == 0:
            return ControlResult(original.copy(), {}, feasible=False, changes=(), abstains=True)
        scale, penalty, threshold = settings[choice.index]
        proposals = propose(data.test, scale)
        chance = _chance(standardisation.apply(_features(data.test)), rules[choice.index])
        answers = np.where((proposals != original) & (chance >= threshold), proposals, original)
        chosen = {"scale": scale, "penalty": penalty, "threshold": threshold}
        return ControlResult(answers, chosen, feasible=True, changes=data.groups.changes(net[choice.index]))

    return run


def _chance(inputs: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(expit(inputs @ weights))


def _sweep(
    chance: FloatArray, gains: IntArray, differs: BoolArray, data: Data
) -> tuple[FloatArray, IntArray, IntArray]:
    """All thresholds in rising order, with the net counts by group and the changed answers of each.

    Rows that reach a threshold are a tail of the sorted rows, so one running sum from the end counts for all. Only rows
    that could be revised give thresholds: one below all of them would let anything pass.
    """
    size = len(data.groups.totals)
    if not differs.any():
        return np.ones(1), np.zeros((1, size), dtype=np.int64), np.zeros(1, dtype=np.int64)
    chance, gains, group = chance[differs], gains[differs], data.groups.group[differs]
    order = np.argsort(chance, kind="stable")
    revised = np.zeros((len(chance), size), dtype=np.int64)
    revised[np.arange(len(chance)), group] = gains
    tails = np.cumsum(revised[order][::-1], axis=0)[::-1]
    thresholds, first = np.unique(chance[order], return_index=True)
    return thresholds, tails[first], len(chance) - first


def _features(table: ScoreTable) -> FloatArray:
    features = np.empty((len(table), len(FEATURE_NAMES)))
    for block in table.blocks():
        features[block.rows] = observe(block).features
    return features
