"""From decisions to replies: what goes out, with what probability, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np

from unprior.serving.decider import NOT_ANSWERED, NOT_ASKED, PRIOR_UNAVAILABLE, Outcome
from unprior.serving.questions import Asked, Value
from unprior.serving.schemas import (
    CandidateMass,
    CandidateRecord,
    ChoiceAnswer,
    DecisionName,
    Explained,
    PredicateAnswer,
    Probability,
    RefusalAnswer,
    Refused,
)

Item = TypeVar("Item")
_LIFT = 1.001
"""An answer that the model wrote although it scores another one higher is put above that one by so little."""


def reply_to(outcome: Outcome, *, enforce: bool, explain: bool) -> ChoiceAnswer | PredicateAnswer | RefusalAnswer:
    """The answer of one question. Unless decisions are enforced, the original one goes out."""
    asked = outcome.asked
    if outcome.failure is not None:
        told = outcome.failure if outcome.declined else NOT_ASKED
        return RefusalAnswer(name=asked.name, unprior=Refused(reason=NOT_ANSWERED, explanation=told))
    label, shares = _final(outcome, enforce=enforce)
    explained = _explained(outcome, enforce=enforce, explain=explain)
    values = [asked.value_of(place, each) for place, each in enumerate(outcome.labels)]
    if asked.kind == "predicate":
        return PredicateAnswer(name=asked.name, probability=shares[outcome.labels.index("yes")], unprior=explained)
    ranked = sorted(shares, reverse=True)
    return ChoiceAnswer(
        name=asked.name,
        choice=values[outcome.labels.index(label)],
        confidence=ranked[0] - (ranked[1] if len(ranked) > 1 else 0.0),
        probabilities=_in_order(
            asked, [Probability(value=value, probability=share) for value, share in zip(values, shares, strict=True)]
        ),
        unprior=explained,
    )


def _in_order(asked: Asked, each: list[Item]) -> list[Item]:
    """As the request has them."""
    return each[::-1] if asked.no_first else each


def is_revised(outcome: Outcome) -> bool:
    """Whether the calibrator replaces the original answer."""
    decision = None if outcome.answer is None else outcome.answer.decision
    return decision is not None and decision.revised


def decision_name(outcome: Outcome, *, enforce: bool) -> DecisionName | Literal["refused"]:
    """What was done with the original answer, in a word; ``refused`` where there is none."""
    return "refused" if outcome.failure is not None else _decision(outcome, enforce=enforce)


def _decision(outcome: Outcome, *, enforce: bool) -> DecisionName:
    return "kept" if not is_revised(outcome) else "revised" if enforce else "would_revise"


def reason_of(outcome: Outcome) -> str:
    """Why, in a word."""
    if outcome.failure is not None:
        return NOT_ANSWERED
    decision = None if outcome.answer is None else outcome.answer.decision
    return outcome.reason or (str(decision.reason) if decision is not None else "no_calibrator")


def _final(outcome: Outcome, *, enforce: bool) -> tuple[str, list[float]]:
    """The label that goes out and the probabilities, in which it comes first."""
    answer = outcome.answer
    if answer is None:  # nothing but the original answer is known
        assert outcome.original is not None
        return outcome.original, [float(label == outcome.original) for label in outcome.labels]
    if enforce and is_revised(outcome):
        assert answer.final is not None
        corrected = [each.corrected_score for each in answer.candidates]
        shares = _softmax([0.0 if score is None else score / outcome.temperature for score in corrected])
        return answer.final, _lifted(shares, outcome.labels.index(answer.final))
    shares = _softmax([each.image_score / outcome.temperature for each in answer.candidates])
    label = outcome.original or outcome.labels[int(np.argmax(shares))]
    return label, _lifted(shares, outcome.labels.index(label))


def _lifted(shares: list[float], place: int) -> list[float]:
    """Probabilities in which one candidate comes first.

    >>> _lifted([0.5, 0.5], 1)[1] > 0.5, _lifted([0.2, 0.8], 1)
    (True, [0.2, 0.8])
    """
    others = [share for other, share in enumerate(shares) if other != place]
    if not others or shares[place] > max(others):
        return shares
    lifted = [*shares]
    lifted[place] = _LIFT * max(others)
    total = sum(lifted)
    return [share / total for share in lifted]


def _softmax(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return [weight / sum(weights) for weight in weights]


def _explained(outcome: Outcome, *, enforce: bool, explain: bool) -> Explained:
    answer, asked = outcome.answer, outcome.asked

    def value(label: str | None) -> Value | None:
        return None if label is None else asked.value_of(outcome.labels.index(label), label)

    decision = None if answer is None else answer.decision
    name = _decision(outcome, enforce=enforce)
    told = Explained(decision=name, original=value(outcome.original), reason=reason_of(outcome))
    if decision is not None:
        told.strength = decision.strength
        told.margin = decision.margin
        if math.isfinite(decision.range_low):
            told.stable_range = (decision.range_low, _finite(decision.range_high))
        if decision.proposal is not None:
            told.proposal = asked.value_of(place := decision.candidates.index(decision.proposal), outcome.labels[place])
    if answer is None or not explain:
        return told
    without = outcome.reason == PRIOR_UNAVAILABLE
    records = [
        CandidateRecord(
            value=asked.value_of(place, each.label),
            with_image=each.image_score,
            without_image=None if without else each.prior_score,
            corrected=each.corrected_score,
        )
        for place, each in enumerate(answer.candidates)
    ]
    told.candidates = _in_order(asked, records)
    mass = None if without else sum(math.exp(each.prior_score) for each in answer.candidates)
    told.candidate_mass = CandidateMass(with_image=answer.mass, without_image=mass)
    told.explanation = None if decision is None else decision.explain(applied=enforce)
    told.clip = outcome.clip
    told.temperature = outcome.temperature
    return told


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
