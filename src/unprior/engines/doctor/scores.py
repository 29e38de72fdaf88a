"""Probes of the scores: whether they are log-probabilities, of what, and how much they cover."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unprior.engines.doctor.finding import Verdict
from unprior.engines.doctor.trial import LETTERS, Trial
from unprior.engines.precision import HALF
from unprior.engines.protocol import MIN_MASS, CandidateScores, Query
from unprior.errors import format_option
from unprior.prompts import YES_NO

_ROUNDING = 1.01
_STARTS = ("A", "yes", "zebra")
_MANY = (*"ABCDEFGHIJKLMNOP", *"0123456789", "yes", "no")
_MIN_SEEN = 8
"""Fewer scores may lie on a grid by chance."""
_NEXT = ("A", "B", "yes", "no", "and", "is", "the", "zebra")


def exact_scores(trial: Trial) -> Verdict:
    """Scores of any candidate, and such as log-probabilities have."""
    remedy = "Scores must be sums of token log-probabilities: no logits, no means, no temperature, no renormalising."
    for query in (trial.choice(trial.image), trial.yes_no(trial.image)):
        fault = _fault(trial.scores(query)[0], len(query.candidates))
        if fault is not None:
            return Verdict("failed", fault, remedy)
    capabilities = trial.engine.capabilities
    if not capabilities.exact_scores:
        seen = "the most probable tokens" if capabilities.top_k is None else f"the top {capabilities.top_k} tokens"
        here = ", ".join(_censored(trial)) or "none"
        return Verdict(
            "warning",
            f"only {seen} are visible; other candidates are censored (here: {here})",
            "Serve the model with vLLM 0.26 or later, which scores any token. Otherwise examples with a censored "
            f"candidate are refused; {format_option('allow_censored', True)} takes upper bounds for their scores.",
        )
    fault = _fault_among_many(trial)
    return Verdict("ok", "log-probabilities of any candidate") if fault is None else Verdict("failed", fault, remedy)


def rounding(trial: Trial) -> Verdict:
    """Scores of many tokens in all their digits."""
    query = trial.choice(trial.image)
    scored = trial.scores(trial.query(query.image, query.text, _MANY))[0]
    hidden = scored.censored or (False,) * len(_MANY)
    rows = zip(scored.scores, scored.token_counts, hidden, strict=True)
    seen = [score for score, count, bound in rows if count == 1 and not bound and math.isfinite(score)]
    if len(seen) < _MIN_SEEN:
        return Verdict("skipped", f"only {len(seen)} scores of single tokens can be seen")
    grid = next((name for name, is_on in _GRIDS.items() if is_on(np.array(seen))), None)
    if grid is None:
        return Verdict("ok", f"{len(seen)} scores lie on no grid")
    return Verdict(
        "failed",
        f"all {len(seen)} scores are {grid}",
        "A rounded score is a range, and small differences are lost: have the server, or what stands before it, give "
        "log-probabilities in all digits of float32.",
    )


def mass_on_candidates(trial: Trial) -> Verdict:
    """How much probability the candidates hold with the image."""
    asked = {"choice": trial.choice(trial.image), "yes/no": trial.yes_no(trial.image)}
    scored = {name: trial.scores(query)[0] for name, query in asked.items()}
    if not all(each.mass <= _ROUNDING for each in scored.values()):
        return Verdict("skipped", "the scores are no log-probabilities")
    # Scores of censored candidates are upper bounds: with them it is the most that the candidates can hold.
    ranges = {name: (each.mass, min(1.0, sum(map(math.exp, each.scores)))) for name, each in scored.items()}
    detail = ", ".join(
        f"{name} {least:.1%}" + (f" to {most:.1%}" if any(scored[name].censored or ()) else "")
        for name, (least, most) in ranges.items()
    )
    if min(least for least, _ in ranges.values()) >= MIN_MASS:
        return Verdict("ok", detail)
    if min(most for _, most in ranges.values()) >= MIN_MASS:
        return Verdict("warning", detail, "The server hides some candidates, so it may be enough; vLLM would tell.")
    return Verdict(
        "warning",
        detail,
        "The model would rather say something else: check the chat template, or change instruction, scoring suffix or "
        "continuation in the prompt layout.",
    )


def tokens_of_candidates(trial: Trial) -> Verdict:
    """What the candidates become as tokens."""
    encoder = getattr(trial.engine, "encoder", None)
    shown, uneven = [], []
    for query, labels in ((trial.choice(trial.image), LETTERS), (trial.yes_no(trial.image), YES_NO)):
        tokens = _tokens(trial, query)
        if tokens is None and hasattr(trial.engine, "candidate_tokens"):
            return Verdict(
                "warning",
                "the server does not tell how it tokenises",
                "A candidate counts as visible only where one token has exactly its text; the others are censored. "
                "vLLM would tell.",
            )
        if tokens is None:
            counts = list(trial.scores(query)[0].token_counts)
            shown += [f"{label} {count}" for label, count in zip(labels, counts, strict=True)]
        else:
            counts = [len(each) for each in tokens]
            shown += ["|".join(_visible(text) for _, text in each) for each in tokens]
            numbers = [[number for number, _ in each] for each in tokens]
            fault = _confused(numbers, labels, getattr(getattr(encoder, "tokenizer", None), "unk_token_id", None))
            if fault is not None:
                return Verdict("failed", fault, "Choose another continuation in the prompt layout.")
        if len(set(counts)) > 1:
            uneven.append(" and ".join(map(str, sorted(set(counts)))))
    detail = ("tokens of each: " if tokens is None else "") + ", ".join(shown)
    if uneven:
        return Verdict(
            "warning",
            detail,
            f"Candidates of one question have {', '.join(uneven)} tokens, and longer ones score less: choose a "
            f"continuation in the prompt layout that makes them alike.",
        )
    return Verdict("ok", detail)


def _tokens(trial: Trial, query: Query) -> list[list[tuple[int, str]]] | None:
    """Number and text of every token of the candidates, where the engine tells them."""
    encoder = getattr(trial.engine, "encoder", None)
    if encoder is not None:
        encoded = encoder.encode(query).candidates
        return [[(token, encoder.tokenizer.decode([token])) for token in each] for each in encoded]
    told = getattr(trial.engine, "candidate_tokens", None)
    return None if told is None else told(query)


def _censored(trial: Trial) -> list[str]:
    """Labels whose scores are only bounds."""
    found = []
    for query, labels in ((trial.choice(trial.image), LETTERS), (trial.yes_no(trial.image), YES_NO)):
        hidden = trial.scores(query)[0].censored or (False,) * len(labels)
        found += [label for label, bound in zip(labels, hidden, strict=True) if bound]
    return found


def _fault(scored: CandidateScores, candidates: int) -> str | None:
    if not len(scored.scores) == len(scored.token_counts) == candidates:
        return f"{len(scored.scores)} scores for {candidates} candidates"
    if any(math.isnan(score) for score in scored.scores):
        return "a score is not a number"
    if max(scored.scores) > _ROUNDING - 1:
        return f"a score is {max(scored.scores):.3g}; the logarithm of a probability is at most 0"
    if scored.mass > _ROUNDING:
        return f"candidates that exclude each other have probability {scored.mass:.3g} together"
    return None


def _fault_among_many(trial: Trial) -> str | None:
    """Many candidates at once, some of them the beginning of others.

    Renormalised scores change with the company of a candidate. Continuations of a candidate share its probability,
    while means of token log-probabilities would exceed it.
    """
    labels = [*_STARTS, *(f"{start} {word}" for start in _STARTS for word in _NEXT)]
    query = trial.choice(trial.image)
    scored = trial.scores(trial.query(query.image, query.text, labels))[0]
    by_label = dict(zip(labels, zip(scored.scores, scored.token_counts, strict=True), strict=True))
    tolerance = HALF if trial.tolerance is None else trial.tolerance
    among_few = trial.scores(query)[0].scores[LETTERS.index("A")]
    if abs(by_label["A"][0] - among_few) > tolerance:
        return "the score of a candidate depends on the other candidates"
    for start in _STARTS:
        score, count = by_label[start]
        longer = [by_label[f"{start} {word}"] for word in _NEXT]
        # A tokenizer that joins the words would make the longer one no continuation in tokens.
        shares = sum(math.exp(more) for more, tokens in longer if tokens > count)
        if shares > math.exp(score + tolerance) * _ROUNDING:
            return f"continuations of {start!r} are more probable together than {start!r} itself"
    return None


def _confused(tokens: list[list[int]], labels: tuple[str, ...], unknown: int | None) -> str | None:
    for label, each in zip(labels, tokens, strict=True):
        if unknown is not None and unknown in each:
            return f"candidate {label!r} holds a token that the tokenizer does not know"
        if tokens.count(each) > 1:
            return f"candidate {label!r} has the same tokens as another"
    return None


def _visible(text: str) -> str:
    return text.replace(" ", "␣").replace("\n", "⏎")


def _rounded_probabilities(decimals: int) -> Callable[[np.ndarray], bool]:
    def is_on(scores: np.ndarray) -> bool:
        grid = np.round(np.exp(scores), decimals)
        # What was rounded to nothing has one value in place of a logarithm.
        nothing = scores[grid == 0]
        kept = scores[grid > 0]
        return len(set(nothing.tolist())) <= 1 and bool(np.all(np.abs(np.log(grid[grid > 0]) - kept) < 1e-6))

    return is_on


def _rounded_logarithms(decimals: int) -> Callable[[np.ndarray], bool]:
    return lambda scores: bool(np.all(np.abs(np.round(scores, decimals) - scores) < 10.0 ** -(decimals + 3)))


def _in_bfloat16(scores: np.ndarray) -> bool:
    single = scores.astype(np.float32)
    return bool(np.all(single == scores) and not np.any(single.view(np.uint32) & 0xFFFF))


_GRIDS: dict[str, Callable[[np.ndarray], bool]] = {
    **{f"probabilities of at most {count} decimals": _rounded_probabilities(count) for count in range(1, 6)},
    **{f"logarithms of at most {count} decimals": _rounded_logarithms(count) for count in range(1, 4)},
    "numbers of float16": lambda scores: bool(np.all(scores.astype(np.float16) == scores)),
    "numbers of bfloat16": _in_bfloat16,
}
"""Grids that exact scores lie on only by chance, and how to tell."""
