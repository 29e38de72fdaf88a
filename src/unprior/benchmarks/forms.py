"""The paper's four ways to ask for one of two claims, each in both claim orders."""

from __future__ import annotations

FORMS: dict[str, str] = {
    "contrastive": 'For the visual question "{question}," is the correct answer "{first}" rather than "{second}"?',
    "instead": (
        'Looking only at the image, should the question "{question}" be answered "{first}" instead of "{second}"?'
    ),
    "choice": 'Between "{first}" and "{second}," does the image support "{first}" as the answer to "{question}"?',
    "reject-second": (
        'For the image-based question "{question}," would choosing "{second}" be incorrect because "{first}" is the '
        "right answer?"
    ),
}
"""Templates by name; “yes” means that the first claim is right, in every form."""

FITTED_FORM = "contrastive"
"""The form of the development questions that SPC is fitted on; the others are tested only."""
CLAIM_ORDERS = ("ordinary-first", "atypical-first")


def ask_claim(form: str, question: str, ordinary: str, atypical: str, order: str) -> str:
    """The yes/no question of a form, with the ordinary or the atypical answer as its first claim.

    >>> ask_claim("choice", "What color is it?", "yellow", "blue", "atypical-first")
    'Between "blue" and "yellow," does the image support "blue" as the answer to "What color is it?"?'
    """
    first, second = (ordinary, atypical) if order == "ordinary-first" else (atypical, ordinary)
    return ask_first(form, question, first, second)


def ask_first(form: str, question: str, first: str, second: str) -> str:
    """The yes/no question of a form whether the first claim is right.

    >>> ask_first("contrastive", "What color is it?", "blue", "yellow")
    'For the visual question "What color is it?," is the correct answer "blue" rather than "yellow"?'
    """
    return FORMS[form].format(question=question, first=first, second=second)
