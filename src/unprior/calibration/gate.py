"""Proposals and the gate that decides whether a proposal may replace the original answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from unprior.calibration.features import Observation, top_two
from unprior.calibration.posterior import (
    development_distance,
    posterior_predictive,
    posterior_support,
    strength_moments,
)
from unprior.calibration.strength import Standardisation, softplus
from unprior.scores.schema import BoolArray, CodeArray, IntArray
from unprior.scores.table import FloatArray

_SAME_DISTANCE = 1e-12


class Condition(StrEnum):
    """The score pattern that makes a revision believable.

    >>> [str(condition) for condition in Condition]
    ['conflict', 'absorption']
    """

    CONFLICT = "conflict"
    """Image and prior scores disagree and the proposal is the image's winner (the paper's d)."""
    ABSORPTION = "absorption"
    """Original, image and prior agree, and subtracting the prior promotes another candidate (a)."""


class Reason(StrEnum):
    """Why an answer was revised, or the first reason why it was not.

    >>> Reason.SMALL_MARGIN.meaning
    'kept: the proposal leads by too little'
    """

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Reason:
        """Give every reason a short meaning for people."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    CONFLICT = "conflict", "revised: image and prior disagree, the proposal is the image's winner"
    ABSORPTION = "absorption", "revised: original, image and prior agreed until the prior was subtracted"
    SAME_ANSWER = "same_answer", "kept: the proposal is the original answer"
    SMALL_MARGIN = "small_margin", "kept: the proposal leads by too little"
    UNSEEN_CANDIDATE_COUNT = (
        "unseen_candidate_count",
        "kept: no development question had this many candidates",
    )
    FAR_FROM_DEVELOPMENT = "far_from_development", "kept: the scores are unlike the development data"
    NO_CONDITION = "no_condition", "kept: neither support condition holds"
    LOW_SUPPORT = "low_support", "kept: the proposal is first for too few plausible strengths"
    ABSTAINS = "abstains", "kept: no setting was feasible on the development data"
    # Codes are places in this list, so newer reasons stand at its end.
    SMALL_LEAD = "small_lead", "kept: the proposal leads the original answer by too little for the certificate"
    UNSEEN_TASK = "unseen_task", "kept: the certificate does not cover this task"
    UNTRUSTED_PRIOR = "untrusted_prior", "kept: the prior does not follow the claims, or they were not asked about"
    CANONICAL = "canonical", "changed: the image supports the other claim in the canonical form, both orders"
    ONE_CANDIDATE = "one_candidate", "kept: the model proposed no other answer"
    OPEN_UNFITTED = "open_unfitted", "kept: an open question, and the calibrator was fitted on none"
    CLOSED_UNFITTED = (
        "closed_unfitted",
        "kept: a question with options, and the calibrator was fitted on open ones only",
    )


REASONS = tuple(Reason)
"""Codes of the reasons, as stored in columns."""
CONDITIONS = tuple(Condition)
"""Codes of the conditions; -1 means neither."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What selection chooses on the development data.

    >>> Settings(rho=0.01, max_strength=1.0, min_margin=0.3).conflict_support is None
    True
    """

    rho: float
    """Regularisation of the strength model."""
    max_strength: float
    """Cap λ_max of the strength."""
    min_margin: float
    """Smallest accepted lead m_min of a proposal, in probability."""
    conflict_support: float | None = None
    """τ_D: least posterior support under the conflict condition (uncertainty-aware only)."""
    absorption_support: float | None = None
    """τ_A: least posterior support under the absorption condition (uncertainty-aware only)."""
    max_distance: float | None = None
    """d_max: largest accepted distance from the development data (uncertainty-aware only)."""
    min_leads: tuple[tuple[str, float], ...] | None = None
    """By task, the log-odds against the original answer that a proposal must exceed (with a certificate only)."""


@dataclass(frozen=True)
class StrengthModel:
    """The fitted map from features to strength, with its uncertainty where that was asked for."""

    standardisation: Standardisation
    theta: FloatArray
    covariance: FloatArray | None = None
    """Σ of θ; None for the standard version."""
    precision: FloatArray | None = None
    """(C_D + 0.1·I)⁺, the metric of d_dev; None for the standard version."""

    def prepare(self, observation: Observation) -> PreparedObservation:
        """Do what does not depend on the cap, once for all caps."""
        inputs = self.standardisation.apply(observation.features)
        if self.covariance is None or self.precision is None:
            return PreparedObservation(observation, inputs @ self.theta, None, None)
        mean, deviation = strength_moments(inputs, self.theta, self.covariance)
        return PreparedObservation(observation, mean, deviation, development_distance(inputs, self.precision))


@dataclass(frozen=True)
class PreparedObservation:
    """An observation with its predicted η; ``propose`` makes proposals for a cap."""

    observation: Observation
    eta: FloatArray
    deviation: FloatArray | None
    distance: FloatArray | None

    @cached_property
    def uncapped(self) -> FloatArray:
        """Predicted strength before the cap."""
        return softplus(self.eta)

    def propose(
        self, max_strength: float, conditions: tuple[Condition, ...] | None = CONDITIONS, *, leads: bool = False
    ) -> Proposals:
        """Best corrected answers when the strength is capped, with the accepted condition that supports each.

        ``conditions`` are those that support a revision; None asks for none, and a proposal that meets none then
        counts as a conflict. ``leads`` also tells by how much proposals lead the original answers (standard version).
        """
        seen = self.observation
        support = lead = None
        cap = max_strength if seen.most_strength is None else np.minimum(max_strength, seen.most_strength)
        if self.deviation is None:
            strength = np.minimum(self.uncapped, cap)
            # The order of softmax values is the order of the scores; ties are decided on the scores.
            corrected = seen.image - strength * seen.prior
            candidate, first, second = top_two(corrected)
            total = np.exp(corrected - first).sum(axis=0)
            margin = -np.expm1(second - first) / total
            if leads:
                rivals = corrected[seen.original, np.arange(len(candidate))]
                lead = first - np.where(seen.original < 0, second, rivals)
        else:
            probabilities, strength = posterior_predictive(seen, self.eta, self.deviation, cap)
            candidate, first, second = top_two(probabilities)
            margin = first - second
            support = posterior_support(seen, candidate, self.eta, self.deviation, cap)
        agree = seen.image_winner == seen.prior_winner
        condition = np.full(len(candidate), -1, dtype=np.int8)
        condition[~agree & (candidate == seen.image_winner)] = CONDITIONS.index(Condition.CONFLICT)
        absorbed = agree & (seen.original == seen.image_winner) & (candidate != seen.original)
        condition[absorbed] = CONDITIONS.index(Condition.ABSORPTION)
        if conditions is None:
            # A condition must be named for the gate to open; conflict is the one without a meaning of its own here.
            condition[condition < 0] = CONDITIONS.index(Condition.CONFLICT)
        else:
            condition[~np.isin(condition, [CONDITIONS.index(each) for each in conditions])] = -1
        if seen.trusted is not None:
            condition[~seen.trusted] = -1
        if seen.candidate_count == 1:  # there is nothing to lead, and nothing to revise to
            condition[:], margin, lead = -1, np.ones_like(margin), None if lead is None else np.zeros_like(lead)
        differs = candidate != seen.original
        return Proposals(candidate, strength, margin, condition, differs, support, self.distance, lead, seen.trusted)


@dataclass(frozen=True, slots=True)
class Proposals:
    """Proposals for rows of equal K."""

    candidate: IntArray
    """Position of the proposed answer."""
    strength: FloatArray
    """Capped λ, or its posterior mean."""
    margin: FloatArray
    """Lead over the strongest rival, in probability."""
    condition: CodeArray
    """Code of the support condition that holds, -1 for none."""
    differs: BoolArray
    """Whether the proposal is not the original answer."""
    support: FloatArray | None
    """r_U, uncertainty-aware only."""
    distance: FloatArray | None
    """d_dev, uncertainty-aware only."""
    lead: FloatArray | None = None
    """Log-odds of the proposal against the original answer, or against the runner-up where there is none."""
    trusted: BoolArray | None = None
    """Whether the prior of each row may be subtracted; None if all may be."""


def within_distance(distance: FloatArray, limit: float) -> BoolArray:
    """d_dev ≤ d_max, with a slack of rounding size because d_max is itself one of the distances."""
    return distance <= limit * (1.0 + _SAME_DISTANCE)


def decide(
    proposals: Proposals,
    candidate_count: int,
    settings: Settings,
    known_counts: Iterable[int],
    needed_lead: FloatArray | None = None,
) -> CodeArray:
    """Reason code of every row: a condition when the gate opens, else the first check that failed.

    Checks run in the order of the paper's formulas. ``needed_lead`` is the threshold of every row's task, NaN where
    the certificate does not cover it.
    """
    conflict = proposals.condition == CONDITIONS.index(Condition.CONFLICT)
    small = (Reason.SMALL_MARGIN, proposals.margin < settings.min_margin)
    unseen = (Reason.UNSEEN_CANDIDATE_COUNT, np.full(len(small[1]), candidate_count not in set(known_counts)))
    checks = [(Reason.SAME_ANSWER, ~proposals.differs), small, unseen]
    if proposals.distance is not None and settings.max_distance is not None:
        far = (Reason.FAR_FROM_DEVELOPMENT, ~within_distance(proposals.distance, settings.max_distance))
        checks = [checks[0], unseen, small, far]
    if proposals.trusted is not None:
        checks.append((Reason.UNTRUSTED_PRIOR, ~proposals.trusted))
    checks.append((Reason.NO_CONDITION, proposals.condition < 0))
    if proposals.support is not None:
        needed = np.where(conflict, settings.conflict_support or 0.0, settings.absorption_support or 0.0)
        checks.append((Reason.LOW_SUPPORT, proposals.support < needed))
    if proposals.lead is not None and needed_lead is not None:
        checks.append((Reason.UNSEEN_TASK, np.isnan(needed_lead)))
        checks.append((Reason.SMALL_LEAD, ~(proposals.lead > needed_lead)))
    reason = np.where(conflict, REASONS.index(Reason.CONFLICT), REASONS.index(Reason.ABSORPTION)).astype(np.int8)
    for why, failed in reversed(checks):
        reason[failed] = REASONS.index(why)
    if candidate_count == 1:
        reason[:] = REASONS.index(Reason.ONE_CANDIDATE)
    return reason


def is_revision(reason: CodeArray) -> BoolArray:
    """Whether a reason code means that the answer was revised."""
    return np.asarray(np.isin(reason, [REASONS.index(Reason.CONFLICT), REASONS.index(Reason.ABSORPTION)]))
