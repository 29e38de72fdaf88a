"""The sentence that explains a decision to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unprior.calibration.gate import Condition, Reason

if TYPE_CHECKING:
    from unprior.calibration.decisions import Decision


_WITHOUT_SETTINGS = {
    Reason.ONE_CANDIDATE: "the model proposed no other answer",
    Reason.OPEN_UNFITTED: "this is an open question, and the calibrator was fitted on none",
    Reason.CLOSED_UNFITTED: "this question has options, and the calibrator was fitted on open questions only",
}


def explain(decision: Decision, *, promise: bool = True, applied: bool = True) -> str:
    """Say what was decided and why, and what was promised about such revisions.

    ``applied``: whether a revised answer takes the place of the original one, or is only observed.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> calibrator = SelectivePriorCalibrator().fit(synthesize(seed=0))
    >>> sentence = explain(calibrator.decide(["five", "six"], [-0.6, -0.9], [-0.02, -4.0], original="five"))
    >>> sentence.startswith("Changed “five” to “six”: the model prefers “five” even without the image")
    True
    """
    original = "no answer" if decision.original is None else f"“{decision.original}”"
    if decision.revised:
        promised = f" {decision.promise}" if promise and decision.promise is not None else ""
        changed = "Changed" if applied else "Would change"
        return f"{changed} {original} to “{decision.final}”: {_why_revised(decision)}.{promised}"
    return f"Kept {original}: {_why_kept(decision)}."


def _subtraction(decision: Decision) -> str:
    return f"after subtracting {decision.strength:.2f} of the preference the model has without the image"


def _lead(decision: Decision, margin: str | None = None) -> str:
    return f"“{decision.proposal}” leads by {margin or f'{decision.margin:.2f}'} in probability"


def _apart(value: float, limit: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to tell them apart, at least two.

    >>> _apart(0.0496, 0.05)
    ('0.0496', '0.0500')
    """
    digits = next((digits for digits in range(2, 9) if f"{value:.{digits}f}" != f"{limit:.{digits}f}"), 2)
    return f"{value:.{digits}f}", f"{limit:.{digits}f}"


def _why_revised(decision: Decision) -> str:
    if decision.reason is Reason.CANONICAL:
        return "asked in the canonical form and in both claim orders, the model sees the other claim in the image"
    if decision.reason is Reason.CONFLICT:
        start = f"with the image the model scores “{decision.final}” highest, without it “{decision.prior_favourite}”"
    else:
        start = f"the model prefers “{decision.original}” even without the image"
    told = f"{start}, and {_subtraction(decision)}, {_lead(decision)}"
    if decision.lead is None or decision.needed_lead is None:
        return told
    lead, needed = _apart(decision.lead, decision.needed_lead)
    return f"{told}; its log-odds against the original answer are {lead}, above the certificate's {needed}"


def _why_kept(decision: Decision) -> str:
    limits = decision.settings
    if decision.reason in _WITHOUT_SETTINGS:
        return _WITHOUT_SETTINGS[decision.reason]
    why = "this calibrator abstains, because no setting kept its promise on the development data"
    if limits is None:
        if decision.promise is not None:
            return f"this calibrator abstains. {decision.promise.removesuffix('.')}"
        return why
    match decision.reason:
        case Reason.SAME_ANSWER:
            why = f"it is also the best answer {_subtraction(decision)} ({_lead(decision)})"
        case Reason.SMALL_MARGIN:
            margin, required = _apart(decision.margin, limits.min_margin)
            why = (
                f"{_subtraction(decision)}, {_lead(decision, margin)}, less than the {required} that a change requires"
            )
        case Reason.SMALL_LEAD:
            lead, least = _apart(decision.lead or 0.0, decision.needed_lead or 0.0)
            why = (
                f"{_subtraction(decision)}, “{decision.proposal}” has log-odds of {lead} against it, and the "
                f"certificate asks for more than {least}"
            )
        case Reason.UNTRUSTED_PRIOR:
            why = (
                "the model's preference without the image does not follow the two claims, or they were not asked "
                "about, so it is not subtracted"
            )
        case Reason.UNSEEN_TASK:
            covered = " and ".join(task for task, _ in limits.min_leads or ())
            why = f"the certificate covers questions of the kind {covered} only"
        case Reason.UNSEEN_CANDIDATE_COUNT:
            kind = "open question" if decision.is_open else "question"
            why = f"the calibrator was fitted on no {kind} with {len(decision.candidates)} candidates"
        case Reason.FAR_FROM_DEVELOPMENT:
            distance, accepted = _apart(decision.distance or 0.0, limits.max_distance or 0.0)
            why = f"its scores are unlike the development data (distance {distance}, accepted up to {accepted})"
        case Reason.NO_CONDITION:
            why = (
                f"{_subtraction(decision)}, “{decision.proposal}” comes first, but the image scores alone do not "
                f"favour it against the prior, nor did original answer, image and prior agree on one answer before"
            )
        case Reason.LOW_SUPPORT:
            conflict = decision.condition is Condition.CONFLICT
            needed = limits.conflict_support if conflict else limits.absorption_support
            support, required = _apart(decision.support or 0.0, needed or 0.0)
            why = (
                f"“{decision.proposal}” stays first with probability {support} over plausible strengths, "
                f"less than the {required} that a change requires"
            )
    return why
