"""Selective Prior Calibration (SPC), written the straightforward way: one row at a time.

An oracle for tests and the baseline of the speed benchmark; rows are assumed to be valid.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped, unused-ignore]
from scipy.special import expit, ndtr  # type: ignore[import-untyped, unused-ignore]

Vector = NDArray[np.float64]
Scores = Sequence[float] | Vector
Row = Mapping[str, Any]
Settings = dict[str, float]
Prepared = Sequence[tuple["Example", int]]  # (example, answer position)
SelectionValue = tuple[Fraction, Fraction, Fraction, int, int]

RHOS = (0.01, 0.1, 1.0, 10.0)
MAX_STRENGTHS = (0.8, 1.0, 1.2, 1.5)
MIN_MARGINS = (0.0, 0.05, 0.1, 0.2, 0.3)
SUPPORTS = (0.5, 0.65, 0.8, 0.9, 0.95, 1.01)
DISTANCE_QUANTILES = (0.90, 0.95, 0.99)
NODES, WEIGHTS = np.polynomial.hermite.hermgauss(64)
WEIGHTS = WEIGHTS / math.sqrt(math.pi)


@dataclass
class Example:
    """What SPC may observe of one row, with candidates as positions and features standardised."""

    image: Vector
    prior: Vector
    image_top: int
    prior_top: int
    original: int | None
    features: Vector
    distance: float


@dataclass
class Proposal:
    """The corrected answer of one example at one (rho, maximum strength)."""

    index: int
    strength: float
    margin: float
    support: float
    condition: str | None


@dataclass
class Model:
    """A fitted calibrator; `settings` is None when no setting was feasible and it abstains."""

    uncertainty: bool
    feature_mean: Vector
    feature_scale: Vector
    distance_precision: Vector
    distances: list[float]
    candidate_counts: set[int]
    theta_by_rho: dict[float, Vector] = field(default_factory=dict)
    loss_by_rho: dict[float, float] = field(default_factory=dict)
    covariance_by_rho: dict[float, Vector] = field(default_factory=dict)
    settings: Settings | None = None
    covariance: Vector | None = None
    selection_value: SelectionValue | None = None


def centred(scores: Sequence[float]) -> Vector:
    """Scores minus their mean over the candidates."""
    return np.array(scores, dtype=np.float64) - float(np.mean(scores))


def softmax(scores: Vector) -> Vector:
    """Softmax over the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def entropy(probabilities: Vector) -> float:
    """Entropy in nats, probabilities floored at 1e-12 inside the logarithm."""
    return float(-(probabilities @ np.log(np.maximum(probabilities, 1e-12))))


def jensen_shannon(first: Vector, second: Vector) -> float:
    """Jensen-Shannon divergence in nats: entropy of the mixture minus the mean entropy."""
    return entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2


def top_two_gap(values: Vector) -> float:
    """The largest value minus the second largest."""
    return float(np.diff(np.sort(values))[-1])


def observe(row: Row) -> tuple[Vector, Vector, int, int, int | None]:
    """Centred scores, and the positions i_I, i_P and i_b (None when nothing could be parsed)."""
    image, prior = centred(row["image_scores"]), centred(row["prior_scores"])
    original = row["original"]
    position = None if original is None else list(row["candidates"]).index(original)
    return image, prior, int(np.argmax(image)), int(np.argmax(prior)), position


def features(row: Row) -> list[float]:
    """The 13 raw features of one row, in the order of the paper's appendix."""
    image, prior, image_top, prior_top, original = observe(row)
    original = image_top if original is None else original
    q_image, q_prior = softmax(image), softmax(prior)
    image_margin, prior_margin = top_two_gap(image), top_two_gap(prior)
    log_count = math.log(len(image))
    return [
        1.0,
        log_count / math.log(4),
        entropy(q_image) / log_count,
        entropy(q_prior) / log_count,
        float(q_image.max()),
        float(q_prior.max()),
        math.tanh(image_margin / 4),
        math.tanh(prior_margin / 4),
        jensen_shannon(q_image, q_prior),
        float(image_top == prior_top),
        float(original == image_top),
        float(original == prior_top),
        math.tanh((prior_margin - image_margin) / 4),
    ]


def prepare(row: Row, standardised: Vector, precision: Vector) -> Example:
    """Collect what the correction and the gate look at, with the distance from the dev rows."""
    distance = math.sqrt(float(standardised[1:] @ precision @ standardised[1:]))
    return Example(*observe(row), standardised, distance)


def objective(theta: Vector, rho: float, prepared: Prepared) -> tuple[float, Vector]:
    """Regularised cross-entropy with the uncapped strength, and its gradient."""
    loss = rho / 2 * float(theta @ theta)
    gradient: Vector = rho * theta
    for example, answer in prepared:
        linear = float(example.features @ theta)
        scores = example.image - np.logaddexp(0.0, linear) * example.prior
        scores = scores - scores.max()
        exponentials = np.exp(scores)
        total = exponentials.sum()
        loss += float(np.log(total) - scores[answer])
        strength_slope = example.prior[answer] - exponentials @ example.prior / total
        gradient = gradient + strength_slope * expit(linear) * example.features
    return loss, gradient


def hessian(theta: Vector, rho: float, prepared: Prepared) -> Vector:
    """Hessian of the objective by central differences of its gradient."""
    matrix = np.zeros((13, 13))
    for column, step in enumerate(1e-5 * np.eye(13)):
        _, ahead = objective(theta + step, rho, prepared)
        _, behind = objective(theta - step, rho, prepared)
        matrix[column] = (ahead - behind) / 2e-5
    return (matrix + matrix.T) / 2


def loss_alone(theta: Vector, rho: float, prepared: Prepared) -> float:
    """Regularised cross-entropy for an optimiser that differentiates numerically."""
    loss = rho / 2 * float(theta @ theta)
    for example, answer in prepared:
        scores = example.image - np.logaddexp(0.0, float(example.features @ theta)) * example.prior
        scores = scores - scores.max()
        loss += float(np.log(np.exp(scores).sum()) - scores[answer])
    return loss


def fit_theta(rho: float, prepared: Prepared, numeric_gradient: bool) -> tuple[Vector, float]:
    """Minimise the objective from theta = 0: L-BFGS-B, then Newton steps."""
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    arguments: dict[str, Any] = {"args": (rho, prepared), "method": "L-BFGS-B", "options": options}
    if numeric_gradient:
        theta: Vector = minimize(loss_alone, np.zeros(13), **arguments).x
    else:
        theta = minimize(objective, np.zeros(13), jac=True, **arguments).x
    loss, gradient = objective(theta, rho, prepared)
    while np.linalg.norm(gradient) > 1e-10:
        trial = theta - np.linalg.solve(hessian(theta, rho, prepared), gradient)
        trial_loss, trial_gradient = objective(trial, rho, prepared)
        halved = np.linalg.norm(trial_gradient) <= np.linalg.norm(gradient) / 2
        if not halved or trial_loss > loss + 1e-9 * (1 + loss):
            break
        theta, loss, gradient = trial, trial_loss, trial_gradient
    if np.linalg.norm(gradient) > 1e-6:
        raise RuntimeError(f"rho={rho}: gradient norm {np.linalg.norm(gradient)} after the fit")
    return theta, loss


def laplace_covariance(theta: Vector, rho: float, prepared: Prepared) -> Vector:
    """Covariance of the Laplace approximation, eigenvalues clipped to [1e-8, 4]."""
    inverse = np.linalg.pinv(hessian(theta, rho, prepared) + 1e-8 * np.eye(len(theta)))
    values, vectors = np.linalg.eigh((inverse + inverse.T) / 2)
    return np.asarray((vectors * np.clip(values, 1e-8, 4.0)) @ vectors.T, dtype=np.float64)


def stable_range(image_scores: Scores, prior_scores: Scores, index: int) -> tuple[float, float]:
    """The strengths in [0, inf) at which candidate `index` stays first; (nan, nan) when none."""
    low, high = 0.0, math.inf
    for other in range(len(image_scores)):
        image_gap = float(image_scores[index] - image_scores[other])
        prior_gap = float(prior_scores[index] - prior_scores[other])
        if abs(prior_gap) < 1e-12:
            high = high if image_gap >= 0 else -math.inf
        elif prior_gap > 0:
            high = min(high, image_gap / prior_gap)
        else:
            low = max(low, image_gap / prior_gap)
    return (low, high) if low <= high else (math.nan, math.nan)


def inverse_softplus(strength: float) -> float:
    """The linear predictor whose softplus is `strength`."""
    return math.log(math.expm1(strength)) if strength > 0 else -math.inf


def posterior_support(example: Example, index: int, mean: float, deviation: float, max_strength: float) -> float:
    """Probability r_U that the capped strength falls in the stable range of candidate `index`."""
    low, high = stable_range(example.image, example.prior, index)
    if math.isnan(low) or low > max_strength:
        return 0.0
    eta_low = inverse_softplus(low)
    eta_high = math.inf if high >= max_strength else inverse_softplus(high)
    return float(ndtr((eta_high - mean) / deviation) - ndtr((eta_low - mean) / deviation))


def support_condition(example: Example, proposal: int) -> str | None:
    """Condition d ('conflict'), condition a ('absorption'), or neither."""
    if example.image_top != example.prior_top and proposal == example.image_top:
        return "conflict"
    agreed = example.original == example.image_top == example.prior_top
    return "absorption" if agreed and proposal != example.original else None


def propose(example: Example, theta: Vector, covariance: Vector | None, max_strength: float) -> Proposal:
    """The corrected answer: at the point estimate, or averaged over the posterior strength."""
    mean = float(example.features @ theta)
    if covariance is None:
        strength, support = min(float(np.logaddexp(0.0, mean)), max_strength), math.nan
        probabilities = softmax(example.image - strength * example.prior)
        index = int(np.argmax(probabilities))
    else:
        variance = float(example.features @ covariance @ example.features)
        deviation = math.sqrt(max(variance, 1e-12))
        linear = mean + math.sqrt(2) * deviation * NODES
        strengths = np.minimum(np.logaddexp(0.0, linear), max_strength)
        strength = float(WEIGHTS @ strengths)
        probabilities = WEIGHTS @ softmax(example.image - np.outer(strengths, example.prior))
        index = int(np.argmax(probabilities))
        support = posterior_support(example, index, mean, deviation, max_strength)
    margin, condition = top_two_gap(probabilities), support_condition(example, index)
    return Proposal(index, strength, margin, support, condition)


def gate(example: Example, proposal: Proposal, settings: Settings, counts: set[int]) -> bool:
    """Whether the proposal replaces the original answer (g_M, or g_U with supports in settings)."""
    if proposal.index == example.original or proposal.condition is None:
        return False
    if proposal.margin < settings["min_margin"] or len(example.image) not in counts:
        return False
    if "max_distance" not in settings:
        return True
    needed_support = settings[f"{proposal.condition}_support"]
    return example.distance <= settings["max_distance"] and proposal.support >= needed_support


def gate_grid(distances: Sequence[float], uncertainty: bool) -> list[Settings]:
    """The gate part of the grid, in loop order."""
    if not uncertainty:
        return [{"min_margin": min_margin} for min_margin in MIN_MARGINS]
    max_distances = [float(np.quantile(distances, level)) for level in DISTANCE_QUANTILES]
    names = ("conflict_support", "absorption_support", "min_margin", "max_distance")
    grid = product(SUPPORTS, SUPPORTS, MIN_MARGINS, max_distances)
    return [dict(zip(names, values, strict=True)) for values in grid]


def evaluate(
    rows: Sequence[Row], prepared: Prepared, finals: Sequence[int | None], epsilon_cs: float
) -> SelectionValue | None:
    """The exact selection tuple of one setting, or None when it is infeasible."""
    tasks = sorted({row["task"] for row in rows})
    sizes = {(task, side): 0 for task in tasks for side in ("cf", "cs")}
    gains, changed = dict(sizes), 0
    for row, (example, answer), final in zip(rows, prepared, finals, strict=True):
        group = (row["task"], row["side"])
        sizes[group] += 1
        gains[group] += int(final == answer) - int(example.original == answer)
        changed += int(final != example.original)
    delta = {group: Fraction(gains[group], max(sizes[group], 1)) for group in sizes}
    slack = Fraction(1, 10**12)
    for task in tasks:
        if delta[task, "cf"] < -slack or delta[task, "cs"] < -Fraction(epsilon_cs) - slack:
            return None
    mean_cf = sum((delta[task, "cf"] for task in tasks), Fraction(0)) / len(tasks)
    mean_cs = sum((delta[task, "cs"] for task in tasks), Fraction(0)) / len(tasks)
    repaired_tasks = sum(delta[task, "cf"] > 0 for task in tasks)
    return mean_cf + mean_cs / 2, mean_cf, mean_cs, repaired_tasks, -changed


def fit(
    rows: Sequence[Row], epsilon_cs: float = 0.04, uncertainty: bool = False, numeric_gradient: bool = False
) -> Model:
    """Fit theta for every rho, then search the grid of settings on the same dev rows."""
    raw = [features(row) for row in rows]
    mean, scale = np.mean(raw, axis=0), np.std(raw, axis=0)
    scale[scale < 1e-6] = 1.0
    mean[0], scale[0] = 0.0, 1.0  # the bias stays untouched
    standardised = [(np.array(vector) - mean) / scale for vector in raw]
    spread = np.cov([vector[1:] for vector in standardised], rowvar=False, ddof=1)
    precision: Vector = np.linalg.pinv(spread + 0.1 * np.eye(12)).astype(np.float64)
    examples = [prepare(row, v, precision) for row, v in zip(rows, standardised, strict=True)]
    answers = [list(row["candidates"]).index(row["answer"]) for row in rows]
    prepared = list(zip(examples, answers, strict=True))
    distances = [example.distance for example in examples]
    candidate_counts = {len(row["candidates"]) for row in rows}
    model = Model(uncertainty, mean, scale, precision, distances, candidate_counts)
    for rho in RHOS:
        theta, model.loss_by_rho[rho] = fit_theta(rho, prepared, numeric_gradient)
        model.theta_by_rho[rho] = theta
        if uncertainty:
            model.covariance_by_rho[rho] = laplace_covariance(theta, rho, prepared)
        covariance = model.covariance_by_rho.get(rho)
        for max_strength in MAX_STRENGTHS:
            proposals = [propose(e, theta, covariance, max_strength) for e in examples]
            for settings in gate_grid(distances, uncertainty):
                finals = []
                for example, proposal in zip(examples, proposals, strict=True):
                    revised = gate(example, proposal, settings, candidate_counts)
                    finals.append(proposal.index if revised else example.original)
                value = evaluate(rows, prepared, finals, epsilon_cs)
                best = model.selection_value
                if value is not None and (best is None or value > best):
                    model.selection_value = value
                    model.settings = {"rho": rho, "max_strength": max_strength, **settings}
                    model.covariance = covariance
    return model


def decide(model: Model, row: Row) -> dict[str, Any]:
    """Apply a fitted model to one row; an abstaining model has no proposal."""
    standardised = (np.array(features(row)) - model.feature_mean) / model.feature_scale
    example = prepare(row, standardised, model.distance_precision)
    proposal, proposed, revised = Proposal(-1, math.nan, math.nan, math.nan, None), None, False
    if model.settings is not None:
        theta = model.theta_by_rho[model.settings["rho"]]
        proposal = propose(example, theta, model.covariance, model.settings["max_strength"])
        proposed = row["candidates"][proposal.index]
        revised = gate(example, proposal, model.settings, model.candidate_counts)
    decision = {"final": proposed if revised else row["original"], "proposal": proposed}
    decision |= {"strength": proposal.strength, "margin": proposal.margin}
    decision |= {"revised": revised, "condition": proposal.condition}
    if model.uncertainty:
        decision |= {"support": proposal.support, "distance": example.distance}
    return decision
