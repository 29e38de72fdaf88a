"""What is asked beside a yes/no question about two claims, for a prior that is stable across forms and claim orders.

The prior of a question depends on its wording and on which claim comes first. ``symmetric`` also asks without the image
with the claims exchanged. ``canonical`` asks about the same claims in the form that SPC is fitted on, in both orders,
with the image and without it, and lets the model choose between the two claims without the image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from unprior.benchmarks.forms import FITTED_FORM, FORMS, ask_first
from unprior.benchmarks.schema import LETTERS, Example
from unprior.calibration.stable import check_prior
from unprior.prompts import YES_NO, PromptLayout

_TWO_LETTERS = LETTERS[:2]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """Something else that is asked about the claims of an example."""

    name: str
    """What its scores are called among the views of a row."""
    text: str
    """The whole user turn."""
    labels: tuple[str, ...] = YES_NO
    """The candidates."""
    with_image: bool = False


def claim_views(example: Example, prior: str, layout: PromptLayout) -> tuple[ClaimView, ...]:
    """What a prior asks beside the question of an example; nothing where no claims are known.

    >>> fingers = Example("1", Path("hand.png"), "Has it 5 fingers and not 6 fingers?", "qa", YES_NO,
    ...                   claims=("5 fingers", "6 fingers"), open_question="How many fingers are there?")
    >>> [(view.name, view.text.splitlines()[0]) for view in claim_views(fingers, "symmetric", PromptLayout())]
    [('swapped', 'Has it 6 fingers and not 5 fingers?')]
    >>> [view.name for view in claim_views(fingers, "canonical", PromptLayout())][:3]
    ['canonical-image-first', 'canonical-image-second', 'canonical-text-first']
    """
    if prior == "plain" or example.claims is None:
        return ()
    if prior == "symmetric":
        exchanged = exchange_claims(example)
        if exchanged is None:
            return ()
        return (ClaimView("swapped", layout.user_text(exchanged, YES_NO, None, example.instruction)),)
    question = example.open_question or example.question
    orders = {"first": example.claims, "second": example.claims[::-1]}
    fitted = {
        place: layout.user_text(ask_first(FITTED_FORM, question, *claims), YES_NO, None)
        for place, claims in orders.items()
    }
    return (
        *(ClaimView(f"canonical-image-{place}", text, with_image=True) for place, text in fitted.items()),
        *(ClaimView(f"canonical-text-{place}", text) for place, text in fitted.items()),
        *(
            ClaimView(f"options-text-{place}", layout.user_text(question, _TWO_LETTERS, claims), _TWO_LETTERS)
            for place, claims in orders.items()
        ),
    )


def exchange_claims(example: Example) -> str | None:
    """The question with its two claims in each other's place; None if it does not name both.

    A question in a known form is asked in this form with the other claim first. In other wordings, what the question
    itself says changes places; upper and lower case are the same there.

    >>> def asked(question, *claims):
    ...     return exchange_claims(Example("1", Path("a.png"), question, "qa", YES_NO, claims=claims))
    >>> asked("Is the banana yellow and not blue?", "Yellow", "Blue")
    'Is the banana blue and not yellow?'
    >>> asked("Is the banana yellow?", "Yellow", "Blue")
    """
    if example.claims is None:
        return None
    first, second = example.claims
    question = example.open_question or example.question
    if example.form in FORMS and example.question == ask_first(example.form, question, first, second):
        return ask_first(example.form, question, second, first)
    # The longer one is looked for first: it may contain the other.
    either = "|".join(f"({_alone(claim)})" for claim in sorted(example.claims, key=len, reverse=True))
    found = list(re.finditer(either, example.question, re.IGNORECASE))
    written = {each.lastindex: each[0] for each in reversed(found)}
    if len(written) < 2:
        return None
    return re.sub(either, lambda each: written[3 - (each.lastindex or 0)], example.question, flags=re.IGNORECASE)


def _alone(claim: str) -> str:
    """Finds a claim that is not part of a word or number: “5 legs” is not in “15 legs”."""
    return rf"(?<!\w){re.escape(claim)}(?!\w)"


def asked_in_fitted_form(examples: Iterable[Example], prior: str, layout: PromptLayout) -> frozenset[tuple[Path, str]]:
    """Images and texts of examples whose own question is one of the canonical ones.

    They are asked anyway, with an answer, so their scores serve all examples that need the same ones.
    """
    if prior != "canonical":
        return frozenset()
    own = ((example, example.user_text(layout)) for example in examples if example.claims is not None)
    return frozenset(
        (example.image, text)
        for example, text in own
        if any(view.with_image and view.text == text for view in claim_views(example, prior, layout))
    )


def passes_per_question(
    examples: Iterable[Example], prior: str = "plain", layout: PromptLayout | None = None
) -> tuple[float, float]:
    """Mean number of different passes of a question with its image and without, before any are shared with others.

    Those of the question itself are among them; blank images are not.

    >>> fingers = Example("1", Path("hand.png"), "Has it 5 fingers and not 6 fingers?", "qa", YES_NO,
    ...                   claims=("5 fingers", "6 fingers"), open_question="How many fingers are there?")
    >>> passes_per_question([fingers]), passes_per_question([fingers], "symmetric")
    ((1.0, 1.0), (1.0, 2.0))
    >>> passes_per_question([fingers], "canonical")
    (3.0, 5.0)
    """
    check_prior(prior)
    if prior == "plain":
        return 1.0, 1.0
    layout, counts = layout or PromptLayout(), {True: 0, False: 0}
    total = 0
    for example in examples:
        views, own = claim_views(example, prior, layout), example.user_text(layout)
        for with_image in counts:
            counts[with_image] += len({own, *(view.text for view in views if view.with_image == with_image)})
        total += 1
    return counts[True] / max(total, 1), counts[False] / max(total, 1)
