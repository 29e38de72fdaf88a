"""The probes: each examines one thing, in a way that other faults do not disturb."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from unprior.engines.doctor.against import image_resizing, same_prompts, same_scores
from unprior.engines.doctor.finding import Probe, Verdict
from unprior.engines.doctor.images import image_dropped, image_order, image_swapped
from unprior.engines.doctor.prompts import chat_template, thinking
from unprior.engines.doctor.scores import exact_scores, mass_on_candidates, rounding, tokens_of_candidates
from unprior.engines.doctor.surroundings import self_test, versions
from unprior.engines.doctor.trial import LETTERS, Trial, difference
from unprior.engines.precision import HALF, SINGLE
from unprior.engines.protocol import Query
from unprior.errors import format_option
from unprior.prompts import YES_NO, is_cut_off, parse_answer


def scoring(trial: Trial) -> Verdict:
    """Whether a question about an image can be scored at all."""
    start = time.perf_counter()
    trial.scores(trial.choice(trial.image))
    return Verdict("ok", f"one question about an image in {time.perf_counter() - start:.2g} s")


def original_answer(trial: Trial) -> Verdict:
    """Whether both ways to an original answer write the same, and whether it names a candidate."""
    unread = []
    for query, labels in ((trial.choice(trial.image), LETTERS), (trial.yes_no(trial.image), YES_NO)):
        written, alone = trial.answers(query)[0].text, trial.engine.original_answer(query.image, query.text)
        if written != alone:
            return Verdict(
                "failed" if trial.is_exact else "warning",
                f"one question wrote {alone!r}, with its scores {written!r}",
                "Answers must be greedy: temperature 0, no penalties, the same prompt in both calls.",
            )
        if is_cut_off(written):
            remedy = "Such answers count as wrong: let the model write more, or switch its thinking off."
            return Verdict("warning", f"cut off while thinking: {_shortened(written)!r}", remedy)
        if parse_answer(written, labels) is None:
            unread.append(repr(_shortened(written)))
    if unread:
        remedy = "Such answers count as wrong: change the instruction in the prompt layout, or check the chat template."
        return Verdict("warning", f"names no candidate: {', '.join(unread)}", remedy)
    return Verdict("ok", "greedy answers name a candidate")


def prefix_reuse(trial: Trial) -> Verdict:
    """The same scores from a fresh prompt, from a known one, beside an answer, and (where offered) without a cache."""
    query = trial.long(trial.unseen(trial.image), LETTERS)
    fresh, known, beside = trial.scores(query)[0], trial.scores(query)[0], trial.answers(query)[0].scored
    ways, compared = [known, beside], "fresh, known, beside an answer"
    if trial.in_full is not None:
        ways.append(trial.in_full(query))
        compared += ", in full"
    remedy = trial.advice(
        "Do not use these scores; report the model.",
        openai="Switch prefix caching off (vllm serve --no-enable-prefix-caching) and report the model.",
        vllm="Use VllmEngine(options={'enable_prefix_caching': False}) and report the model.",
    )
    return _equal(trial, compared, (difference(fresh, way) for way in ways), remedy)


def text_only_after_image(trial: Trial) -> Verdict:
    """Scores without an image, with images of two shapes in between; they must not notice."""
    plain = trial.choice(None)
    first = trial.scores(plain)[0]
    others = [] if trial.in_full is None else [trial.in_full(plain)]
    for image in (trial.image, trial.narrow):
        trial.answers(trial.choice(image))
        others.append(trial.scores(plain)[0])
    return _equal(
        trial,
        "before and after two images",
        (difference(first, other) for other in others),
        "The model remembers its last image, so priors would be wrong: update transformers or the server, "
        "or score priors in a run of their own.",
    )


def batch_invariance(trial: Trial) -> Verdict:
    """One image, four texts of different length: alone, together, and in the opposite order."""
    queries = _of_four_lengths(trial)
    scored = [trial.scores(query)[0] for query in queries]
    answered = [trial.answers(query)[0] for query in queries]
    together = trial.answers(*queries)
    differences = [
        *map(difference, scored, trial.scores(*queries)),
        *map(difference, scored, reversed(trial.scores(*reversed(queries)))),
        *map(difference, [each.scored for each in answered], [each.scored for each in together]),
    ]
    exact = format_option("dtype", "float32")
    precision = trial.advice(
        f"with {exact}; check the padding side",
        openai="serve it in float32 (vllm serve --dtype float32); on newer GPUs VLLM_BATCH_INVARIANT=1 may do",
        vllm=f"with {exact}; on newer GPUs VLLM_BATCH_INVARIANT=1 may do",
    )
    remedy = f"Score with {trial.one_at_a_time}, or {precision}."
    verdict = _equal(trial, "alone, four at once, opposite order", differences, remedy)
    if verdict.status == "ok" and [each.text for each in answered] != [each.text for each in together]:
        return Verdict("failed" if trial.is_exact else "warning", "answers change with their batch", remedy)
    return verdict


def concurrency(trial: Trial) -> Verdict | None:
    """Four texts about three images and none: one question in flight, and as many as the engine sends at once."""
    at_once = getattr(trial.engine, "concurrency", None)
    if at_once is None:
        return None
    images = (trial.image, trial.other, trial.narrow, None)
    queries = [replace(query, image=image) for image in images for query in _of_four_lengths(trial)]
    alone = [trial.scores(query)[0] for query in queries]
    remedy = (
        "Score with --concurrency 1 and no other clients, or serve the model in float32 (vllm serve --dtype float32)."
    )
    compared = f"one question in flight, and {min(at_once, len(queries))}"
    return _equal(trial, compared, map(difference, alone, trial.scores(*queries)), remedy)


def _shortened(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _of_four_lengths(trial: Trial) -> list[Query]:
    mixed = ("A", "yes", "seventeen zebras") if trial.engine.capabilities.exact_scores else LETTERS
    return [
        trial.choice(trial.image),
        trial.yes_no(trial.image),
        trial.query(trial.image, "Answer with a single letter.", LETTERS),
        trial.long(trial.image, mixed),
    ]


def _equal(trial: Trial, compared: str, differences: Iterable[float], remedy: str) -> Verdict:
    """Judge the largest difference by the engine's precision, if it is known."""
    largest = max(differences)
    detail = f"{compared}: " + (f"at most {largest:.1e} apart" if largest else "equal")
    if largest <= (SINGLE if trial.tolerance is None else trial.tolerance):
        return Verdict("ok", detail)
    if trial.tolerance is None and largest <= HALF:
        return Verdict("warning", detail, f"Half precision explains this, single precision would not. {remedy}")
    return Verdict("failed", detail, remedy)


PROBES = (
    Probe("scoring", scoring),
    Probe("exact scores", exact_scores),
    Probe("rounding", rounding),
    Probe("candidate mass", mass_on_candidates),
    Probe("tokenisation", tokens_of_candidates),
    Probe("chat template", chat_template),
    Probe("thinking", thinking),
    Probe("original answer", original_answer),
    Probe("image dropped", image_dropped),
    Probe("image swapped", image_swapped),
    Probe("image order", image_order),
    Probe("text-only after image", text_only_after_image),
    Probe("prefix reuse", prefix_reuse),
    Probe("batch invariance", batch_invariance),
    Probe("concurrency", concurrency),
    Probe("self-test", self_test),
    Probe("same prompts", same_prompts),
    Probe("same scores", same_scores),
    Probe("image resizing", image_resizing),
    Probe("versions", versions),
)
WITHOUT_SCORES = frozenset({"self-test", "versions"})
"""Probes that make sense even when nothing can be scored."""
CONSEQUENCES = frozenset({"same scores", "image resizing"})
"""Probes that other faults disturb."""
