"""Probes of images: whether they reach the model, and whether each stays with its question."""

from __future__ import annotations

from unprior.engines.doctor.finding import Verdict
from unprior.engines.doctor.trial import Trial, difference
from unprior.engines.precision import SINGLE


def image_dropped(trial: Trial) -> Verdict:
    """Scores with an image are not those without one."""
    if _is_dropped(trial):
        remedy = "The image does not reach the model: check the chat template, the server's image limit and its log."
        return Verdict("failed", "a question has the same scores with an image as without one", remedy)
    return Verdict("ok", "scores change when the image is left out")


def image_swapped(trial: Trial) -> Verdict:
    """The same question about another image moves the scores, and an image keeps its own, whatever was asked before."""
    images = (trial.unseen(trial.image), trial.unseen(trial.other))
    first, second, again, last = (trial.scores(trial.choice(images[place]))[0] for place in (0, 1, 1, 0))
    remedy = trial.advice(
        "Do not use these scores; report the model.",
        openai="A question was answered about an earlier image: switch off what keeps answers or images (proxies; vllm "
        "serve --no-enable-prefix-caching --mm-processor-cache-gb 0) and report it.",
        vllm="Use VllmEngine(options={'enable_prefix_caching': False, 'mm_processor_cache_gb': 0}) and report it.",
    )
    apart, moved = difference(first, second), max(difference(first, last), difference(second, again))
    # Nearer to the other image than to itself, rather than unequal: small differences are other probes' matter.
    if moved > SINGLE and moved >= min(apart, difference(last, again)):
        return Verdict("failed", "an image has other scores when the question before was about another one", remedy)
    if apart <= SINGLE and _is_dropped(trial):
        return Verdict("skipped", "the image is dropped")
    if apart <= SINGLE:
        cold = None if trial.in_full is None else [trial.in_full(trial.choice(image)) for image in images]
        where = ", but not past its cache" if cold and difference(*cold) > SINGLE else ""
        return Verdict("failed", f"the same question about another image has the same scores{where}", remedy)
    return Verdict("ok", f"another image moves the scores (by {apart:.2g}), and each keeps its own")


def image_order(trial: Trial) -> Verdict:
    """In a batch each row is like its image alone."""
    images = (trial.image, trial.other)
    alone = [trial.scores(trial.choice(image))[0] for image in images]
    if difference(*alone) <= SINGLE:
        return Verdict("skipped", "two images have the same scores")
    for order in ((0, 1), (1, 0)):
        rows = trial.scores(*(trial.choice(images[place]) for place in order))
        for place, row in zip(order, rows, strict=True):
            if difference(row, alone[place]) >= difference(row, alone[1 - place]):
                remedy = f"Score with {trial.one_at_a_time}; report the model or server: its batches mix up images."
                return Verdict("failed", "in a batch a question gets the scores of another image", remedy)
    return Verdict("ok", "in a batch, images stay with their questions")


def _is_dropped(trial: Trial) -> bool:
    shown, hidden = (trial.scores(trial.choice(image))[0] for image in (trial.image, None))
    return difference(shown, hidden) <= SINGLE
