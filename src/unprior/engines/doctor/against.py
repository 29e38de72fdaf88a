"""Probes that compare an engine with the transformers engine on the same model."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from PIL import Image

from unprior.engines.doctor.finding import Verdict
from unprior.engines.doctor.trial import Trial, largest_difference
from unprior.engines.precision import HALF
from unprior.engines.protocol import CandidateScores, Query

if TYPE_CHECKING:
    from unprior.engines.transformers.engine import TransformersEngine

_LONG = ("seventeen zebras", "seventeen", "sevenfold", "A")
_QUESTION = "Which picture?"
_MAX_SHOWN = 40


def same_prompts(trial: Trial) -> Verdict | None:
    """The model reads the same prompts, with and without an image."""
    folder = trial.against
    if folder is None:
        return None
    remedy = "Serve the model with its own chat template, and see that the folder is the model that is served."
    known = folder.identity.get("prompt"), trial.engine.identity.get("prompt")
    if all(known) and known[0] != known[1]:
        return Verdict("failed", "without an image, prompts have other tokens than those of the folder", remedy)
    theirs, ours = _image_prompts(trial, folder)
    if theirs is None:
        seen = "equal without an image; with one the engine does not show it" if all(known) else "cannot be seen"
        return Verdict("skipped", seen)
    if theirs == ours:
        return Verdict("ok", "the same as the folder's, with and without an image")
    place = folder.encoder.placeholder_text
    if place is not None and theirs.replace(place, "") == ours.replace(place, ""):
        return Verdict(
            "failed",
            f"an image of {'×'.join(map(str, trial.image.size))} pixels has {theirs.count(place)} tokens, from the "
            f"folder {ours.count(place)}",
            "The engine shows the model another size of the image: check its settings of the image processor "
            "(vllm serve --mm-processor-kwargs), and what stands before it.",
        )
    start = next((i for i, (one, two) in enumerate(zip(theirs, ours, strict=False)) if one != two), 0)
    shown = [text[start : start + _MAX_SHOWN] for text in (theirs, ours)]
    return Verdict("failed", f"with an image the prompt has {shown[0]!r} where the folder's has {shown[1]!r}", remedy)


def same_scores(trial: Trial) -> Verdict | None:
    """Scores without an image, and of images of one colour, which no resizing changes."""
    folder = trial.against
    if folder is None:
        return None
    hidden, plain = _apart(trial, folder, [None]), _apart(trial, folder, _one_colour(trial))
    detail = f"apart from the folder by {hidden:.2g} without an image, {plain:.2g} with one of one colour"
    if max(hidden, plain) <= folder.tolerance:
        return Verdict("ok", detail)
    if hidden <= folder.tolerance:
        return Verdict(
            "failed",
            detail,
            "Weights and prompts agree, so the engine reads the tokens of an image otherwise, for instance each only "
            "after those before it where the model looks both ways (Gemma 3 in vLLM on CPUs). Use --engine "
            "transformers for this model, and report it.",
        )
    if hidden <= HALF:
        precision = folder.identity.get("dtype", "").removeprefix("torch.")
        return Verdict(
            "failed",
            detail,
            f"Another precision would explain it: the folder runs in {precision}; let the engine do so, too (vllm "
            f"serve --dtype {precision}).",
        )
    return Verdict("failed", detail, "See that the folder is the model that is served: name, revision, quantisation.")


def image_resizing(trial: Trial) -> Verdict | None:
    """Scores of images of two shapes, which most models see in another size; noise shows it more than a drawing."""
    folder = trial.against
    if folder is None:
        return None
    tolerance = folder.tolerance
    images = (trial.image, trial.narrow)
    sizes = " and ".join("×".join(map(str, image.size)) for image in images)
    drawn, noisy = _apart(trial, folder, images), _apart(trial, folder, [_noise(image.size) for image in images])
    apart = max(drawn, noisy)
    detail = f"apart from the folder by {drawn:.2g}, with noise by {noisy:.2g} (images of {sizes} pixels)"
    if apart <= tolerance:
        return Verdict("ok", detail)
    if max(_apart(trial, folder, [None]), _apart(trial, folder, _one_colour(trial))) > tolerance:
        return Verdict("skipped", f"{detail}; but scores differ without resizing, too")
    backend = folder.identity.get("image_backend")
    here = f" (here: {backend})" if backend else ""
    return Verdict(
        "failed",
        detail,
        f"Images of one colour agree, so the two resize otherwise{here}. Let both use Pillow (vllm serve "
        "--mm-processor-kwargs '{\"use_fast\": false}') or both torchvision, see that nothing in between makes images "
        "smaller, or bring them to the model's size first (--resize).",
    )


def _questions(trial: Trial, image: Image.Image | None) -> Iterator[Query]:
    yield trial.choice(image)
    yield trial.yes_no(image)
    yield trial.query(image, "What do you see?", _LONG)


def _apart(trial: Trial, folder: TransformersEngine, images: Sequence[Image.Image | None]) -> float:
    """The largest difference from the folder's scores."""
    reference = Trial.from_engine(folder, trial.image, trial.question)
    queries = [query for image in images for query in _questions(trial, image)]
    # One by one: what a batch changes is another probe's matter.
    return max(_beyond_bounds(trial.scores(query)[0], reference.scores(query)[0]) for query in queries)


def _beyond_bounds(scored: CandidateScores, exact: CandidateScores) -> float:
    """The largest difference; a bound is wrong only where it is below the score."""
    if scored.token_counts != exact.token_counts and scored.censored is None:
        return float("inf")
    hidden = scored.censored or (False,) * len(scored.scores)
    rows = zip(scored.scores, exact.scores, hidden, strict=True)
    return largest_difference((max(one, two) if bound else one, two) for one, two, bound in rows)


def _one_colour(trial: Trial) -> list[Image.Image]:
    """Images of two shapes that are the same in every size."""
    colours = ((200, 40, 30), (20, 120, 220))
    return [
        Image.new("RGB", image.size, colour) for image, colour in zip((trial.image, trial.narrow), colours, strict=True)
    ]


def _noise(size: tuple[int, int]) -> Image.Image:
    return Image.frombytes("RGB", size, random.Random(0).randbytes(3 * size[0] * size[1]))


def _image_prompts(trial: Trial, folder: TransformersEngine) -> tuple[str | None, str]:
    """The prompt with an image as the engine's model reads it, and as the folder's does."""
    ours = folder.encoder
    text = ours.render(True, _QUESTION)
    if (encoder := getattr(trial.engine, "encoder", None)) is not None:
        return encoder.render(True, _QUESTION), text
    read = getattr(trial.engine, "prompt_as_read", None)
    seen = None if read is None else read(trial.image, _QUESTION)
    return seen, ours.tokenizer.decode(ours.inputs([text], [trial.image])["input_ids"][0])
