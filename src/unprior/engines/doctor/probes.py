"""The probes: each examines one thing, in a way that other faults do not disturb."""

from __future__ import annotations

import time
from collections.abc import Iterable

from unprior.engines.doctor.finding import Probe, Verdict
from unprior.engines.doctor.scores import exact_scores, mass_on_candidates, tokens_of_candidates
from unprior.engines.doctor.surroundings import versions
from unprior.engines.doctor.trial import LETTERS, Trial, difference
from unprior.engines.precision import HALF, SINGLE
from unprior.engines.protocol import Query
from unprior.engines.transformers.chat_template import beyond_the_image
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
    query = trial.long(trial.unseen, LETTERS)
    fresh, known, beside = trial.scores(query)[0], trial.scores(query)[0], trial.answers(query)[0].scored
    ways, compared = [known, beside], "fresh, known, beside an answer"
    full = getattr(trial.engine, "score_in_full", None)
    if full is not None:
        ways.append(full(query))
        compared += ", in full"
    remedy = trial.advice(
        "Do not use these scores; report the model.",
        openai="Switch prefix caching off (vllm serve --no-enable-prefix-caching) and report the model.",
        vllm="Use VllmEngine(options={'enable_prefix_caching': False}) and report the model.",
    )
    verdict = _equal(trial, compared, (difference(fresh, way) for way in ways), remedy)
    if verdict.status == "ok" and not getattr(trial.engine, "shares_prefix", True):
        remedy = "Nothing must be done; another version of transformers may bring the speed back."
        return Verdict("warning", "fails its self-test, so prompts are read whole: right but slower", remedy)
    return verdict


def text_only_after_image(trial: Trial) -> Verdict:
    """Scores without an image, with images of two shapes in between; they must not notice."""
    plain = trial.choice(None)
    first = trial.scores(plain)[0]
    full = getattr(trial.engine, "score_in_full", None)
    others = [] if full is None else [full(plain)]
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
    precision = trial.advice(
        "with --dtype float32; check the padding side",
        openai="serve it in float32 (vllm serve --dtype float32); on newer GPUs VLLM_BATCH_INVARIANT=1 may do",
        vllm="with --dtype float32; on newer GPUs VLLM_BATCH_INVARIANT=1 may do",
    )
    remedy = f"Score with {trial.one_at_a_time}, or {precision}."
    verdict = _equal(trial, "alone, four at once, opposite order", differences, remedy)
    if verdict.status == "ok" and [each.text for each in answered] != [each.text for each in together]:
        return Verdict("failed" if trial.is_exact else "warning", "answers change with their batch", remedy)
    return verdict


def image_order(trial: Trial) -> Verdict:
    """Images reach their own question: alone they differ, in a batch each row is like its image alone."""
    prompts = _prompts(trial, "Which picture?")
    misplaced = None if prompts is None else _template_fault(*prompts)
    if misplaced is not None:
        return misplaced
    images = (trial.image, trial.other)
    alone = [trial.scores(trial.choice(image))[0] for image in images]
    if difference(*alone) <= SINGLE:
        remedy = "The image does not reach the model: check the chat template, the server's image limit and its log."
        return Verdict("failed", "two different images have the same scores", remedy)
    for order in ((0, 1), (1, 0)):
        rows = trial.scores(*(trial.choice(images[place]) for place in order))
        # Nearer to its own image, rather than equal: small influences of the batch are another probe's matter.
        for place, row in zip(order, rows, strict=True):
            if difference(row, alone[place]) >= difference(row, alone[1 - place]):
                remedy = f"Score with {trial.one_at_a_time}; report the model or server: its batches mix up images."
                return Verdict("failed", "in a batch a question gets the scores of another image", remedy)
    return Verdict("ok", "images stay with their questions" + (", before the text" if prompts else ""))


def _prompts(trial: Trial, text: str) -> tuple[str, str, str] | None:
    """A text, and its prompts without and with an image as the model reads them, where they can be seen."""
    if (encoder := getattr(trial.engine, "encoder", None)) is not None:
        return text, encoder.render(False, text), encoder.render(True, text)
    read = getattr(trial.engine, "prompt_as_read", None)
    seen = [] if read is None else [read(image, text) for image in (None, trial.image)]
    return (text, *seen) if all(seen) and seen else None


def _template_fault(text: str, plain: str, with_image: str) -> Verdict | None:
    if plain == with_image:
        detail = "no place for the image"
    elif text not in with_image:
        detail = "no text"
    elif plain.rpartition(text)[2] != with_image.rpartition(text)[2]:  # something stands behind the text
        detail = "the text before the image"
    else:
        difference = beyond_the_image(plain, with_image)
        if difference is None:
            return None
        remedy = "Scores and priors would belong to different prompts: correct chat_template.jinja beside the model."
        return Verdict("failed", f"the chat template {difference}", remedy)
    remedy = "Give the model a chat template that renders the image, then the text (chat_template.jinja beside it)."
    return Verdict("failed", f"the chat template renders {detail}", remedy)


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
    Probe("candidate mass", mass_on_candidates),
    Probe("tokenisation", tokens_of_candidates),
    Probe("original answer", original_answer),
    Probe("prefix reuse", prefix_reuse),
    Probe("text-only after image", text_only_after_image),
    Probe("batch invariance", batch_invariance),
    Probe("image order", image_order),
    Probe("versions", versions),
)
WITHOUT_SCORES = frozenset({"versions"})
"""Probes that make sense even when nothing can be scored."""
