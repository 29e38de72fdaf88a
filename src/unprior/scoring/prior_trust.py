"""Ask a model, without any image, whether its prior follows the claims of a benchmark's questions."""

from __future__ import annotations

from itertools import product

import numpy as np

from unprior.benchmarks.forms import FORMS, ask_first
from unprior.benchmarks.schema import LETTERS, Benchmark
from unprior.engines.protocol import Engine, Query, QueryFailure, require_engine
from unprior.errors import UnpriorError
from unprior.evaluation.prior_trust import PriorTrust, measure_trust
from unprior.progress import Progress, Report, silent
from unprior.prompts import YES_NO

QUESTIONS = 70
"""Pairs of claims that are asked about."""


def probe_prior(
    engine: Engine, benchmark: Benchmark, *, questions: int = QUESTIONS, batch_size: int = 16, report: Report = silent
) -> PriorTrust:
    """Ask about the claims of a benchmark in every form and both orders, and as options, without an image.

    Parameters
    ----------
    engine
        The model.
    benchmark
        Questions that know their two claims: the variant ``claim-order`` of a benchmark of pairs, yes/no questions of
        some benchmarks, or a user file with ``claims``.
    questions
        How many pairs of claims to ask about at most.
    batch_size, report
        Queries at once; is told how far it is.
    """
    require_engine(engine)
    asked: dict[tuple[str, frozenset[str]], tuple[str, str, float]] = {}
    for example in benchmark:
        if example.claims is not None:
            question = example.open_question or example.question
            ordinary = _first_is_ordinary(example.claim_order, example.side, example.answer)
            asked.setdefault((question, frozenset(example.claims)), (*example.claims, ordinary))
    if not asked:
        raise UnpriorError(
            f"benchmark {benchmark.name} has no question that names its two claims; give a benchmark of pairs, "
            f'or a file of questions with "claims": ["five fingers", "six fingers"]'
        )
    # Spread over the benchmark, whose neighbours are alike.
    step = max(1.0, len(asked) / questions)
    chosen = [list(asked.items())[int(place * step)] for place in range(min(questions, len(asked)))]
    layout = engine.layout
    queries = []
    for (question, _), (first, second, _) in chosen:
        for form, claims in product(FORMS, ((first, second), (second, first))):
            text = layout.user_text(ask_first(form, question, *claims), YES_NO, None)
            queries.append(Query(None, text, layout.continuations(YES_NO)))
        for claims in ((first, second), (second, first)):
            text = layout.user_text(question, LETTERS[:2], claims)
            queries.append(Query(None, text, layout.continuations(LETTERS[:2])))
    odds = []
    for start in range(0, len(queries), batch_size):
        report(Progress("Asking without images", start, len(queries)))
        for scored in engine.score_batch(queries[start : start + batch_size]):
            if isinstance(scored, QueryFailure):
                raise UnpriorError(f"{engine.name} could not be asked: {scored.reason}")
            odds.append(scored.scores[0] - scored.scores[1])
    table = np.array(odds).reshape(len(chosen), -1)
    forms = {form: (table[:, 2 * place], table[:, 2 * place + 1]) for place, form in enumerate(FORMS)}
    known = np.array([ordinary for *_, ordinary in (claims for _, claims in chosen)])
    return measure_trust(
        forms,
        options=(table[:, -2] - table[:, -1]) / 2,
        ordinary_first=known,
    )


def _first_is_ordinary(order: str | None, side: str | None, answer: str | None) -> float:
    """+1 if the first claim is the ordinary one, −1 if not, NaN if nothing tells."""
    if order is not None:
        return 1.0 if order == "ordinary-first" else -1.0
    if side is None or answer is None:
        return np.nan
    return 1.0 if (answer == "yes") == (side == "cs") else -1.0
