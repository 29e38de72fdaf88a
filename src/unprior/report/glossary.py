"""The words and symbols of the pages, each in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Term(NamedTuple):
    """One entry of the glossary."""

    anchor: str
    """Its place on the page."""
    name: str
    meaning: str
    pattern: str
    """How it is recognised in a text."""


GLOSSARY = (
    Term("cf", "CF", "Counterfactual image: it shows something that contradicts common knowledge.", r"CF\b|ΔCF"),
    Term("cs", "CS", "Commonsense image: the ordinary partner of a counterfactual image in a pair.", r"CS\b|ΔCS"),
    Term(
        "delta", "ΔCF, ΔCS",
        "Change of accuracy on CF or CS images against the model's original answers, in percentage points.", r"Δ",
    ),
    Term("cfad", "CFAD", "Accuracy on CS images minus accuracy on CF images; lower is better.", r"CFAD\b"),
    Term("rpd", "RPD", "CFAD relative to the accuracy on CS images; lower is better.", r"RPD\b"),
    Term(
        "ccr", "CCR",
        "Share of the wrong answers to CF images that are the answer of the pair's CS image; lower is better.",
        r"CCR\b",
    ),
    Term(
        "repairs", "Repairs and harms (R/H)",
        "Repairs are wrong answers that became right, harms are right answers that became wrong.",
        r"[Rr]epair(?:s|ed)\b|\b[Hh]arm(?:s|ed)?\b|R/H",
    ),
    Term("utility", "U", "ΔCF + 0.5 ΔCS: repair counts fully, retention by half.", r"(?<!\w)U\b"),
    Term(
        "epsilon", "ε",
        "Largest loss of CS accuracy that is accepted on the development pairs when the settings are chosen, while "
        "test pairs may lose more; under a promise, the largest rate of harm on new pairs.",
        r"ε",
    ),
    Term(
        "promise", "Promise, certificate",
        "A certificate promises that new pairs are harmed at a rate of at most ε: certified with confidence 1 − δ, "
        "expected on average over many calibrations.",
        r"\b[Pp]romise[sd]?\b|\b[Cc]ertifi(?:ed|cates?)\b",
    ),
    Term("chance", "δ", "How often a certified promise may break, over draws of the development pairs.", r"δ"),
    Term(
        "canonical", "Canonical prior",
        "The prior between two claims in one question form and both claim orders, subtracted only where a choice "
        "between the claims agrees with it.",
        r"\b[Cc]anonical\b",
    ),
    Term(
        "lambda", "λ",
        "Correction strength: how much of the prior scores is subtracted from the image scores of an example.", r"λ",
    ),
    Term(
        "open", "Open question",
        "A question without options: the model proposes the candidates itself, and written forms of one answer count "
        "as one.", r"\b[Oo]pen (?:questions?|answers?)\b|\bOPEN\b",
    ),
    Term(
        "clip", "τ, T",
        "Scale of open answers: the prior is cut off τ nats below its top, then both scores are divided by T.",
        r"τ|\bT\b",
    ),
    Term(
        "margin", "Margin",
        "How far the proposed answer leads the second-best candidate after the correction, in probability.",
        r"\b[Mm]argins?\b",
    ),
    Term(
        "stable-range", "Stable range",
        "The values of λ for which the proposed answer stays the same; its radius is the distance to the nearer end.",
        r"[Ss]table ranges?|\bradius\b",
    ),
    Term(
        "gate", "Gate",
        "The rule that adopts a proposed answer only where the scores support a revision.", r"\b[Gg]ate\b",
    ),
    Term(
        "prior-attraction", "Prior attraction",
        "Share of the wrong answers to CF images that the model also prefers without any image.", r"[Aa]ttract",
    ),
    Term(
        "holm", "Holm",
        "Adjustment of p values for the number of tests that are made together.", r"\bHolm\b",
    ),
    Term(
        "mcnemar", "McNemar",
        "Exact test of whether repairs and harms differ by more than chance.", r"\bMcNemar\b",
    ),
)  # fmt: skip
"""In the order of the page."""


def terms_in(texts: Iterable[str]) -> tuple[Term, ...]:
    """The entries that some texts use.

    >>> [term.name for term in terms_in(["The gate needs a margin.", "CFAD"])]
    ['CFAD', 'Margin', 'Gate']
    """
    text = "\n".join(texts)
    return tuple(term for term in GLOSSARY if re.search(term.pattern, text))
