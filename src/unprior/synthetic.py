"""Synthetic score tables from the paper's decomposition s_I = v + α p + ε.

They exercise the whole method without a model. They say nothing about any real model.
"""

from __future__ import annotations

from itertools import product
from numbers import Integral
from typing import Any

import numpy as np

from unprior.benchmarks.forms import CLAIM_ORDERS, FORMS
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY, SUBCATEGORIES
from unprior.errors import UnpriorError, require_type
from unprior.scores import ScoreTable
from unprior.scores.schema import OPEN
from unprior.scores.table import FloatArray

_OPEN_SEED = 1  # open questions have draws of their own, so that the others stay as they are
_THINGS = ("fingers", "legs", "wheels", "petals", "horns", "wings", "eyes", "spots")
_COLOURS = ("red", "green", "blue", "yellow", "white", "black", "brown", "purple")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
_JUNK = ("unclear", "a photo", "none of them", "made of glass", "upside down", "in the sky")
_SPREAD = 2.0
"""How much wider the scores of whole answers spread than those of options."""


def synthesize(seed: int = 0, *, repeats: int = 1, open_questions: bool = False) -> ScoreTable:
    """Draw a synthetic score table with the structure of CDH-Bench.

    Every pair has an ordinary answer that the prior p favours. The commonsense image supports it with
    visual evidence v, the counterfactual image supports another candidate. The image score is
    v + α p + ε, where the prior's influence α differs from example to example: it grows with the
    sharpness of the prior and shrinks with the clarity of the image, so the scores reveal part of it.
    The original answer is the best image-scored candidate, read by a noisy decoder.

    Parameters
    ----------
    seed
        The same seed gives the same table.
    repeats
        Number of copies of the 300-pair structure (fresh draws), for tables of any size.
    open_questions
        Add an open question about both images of every pair. Its candidates are answers that a model would propose:
        they differ between images, some are written in two forms, some are junk that is nearly impossible without the
        image, and sometimes the right answer is not among them, or there is one candidate only. The other rows stay
        the same.

    >>> table = synthesize(seed=0)
    >>> len(table), len(table.where(split="dev")), len(table.where(split="test", task="mc", side="cf"))
    (1200, 280, 230)
    >>> len(synthesize(seed=0, open_questions=True).where(task="open"))
    600
    """
    require_type("seed", seed, Integral, "a whole number")
    if repeats < 1:
        raise UnpriorError(f"repeats is {repeats}, it must be at least 1")
    rng, open_rng = np.random.default_rng(seed), np.random.default_rng([_OPEN_SEED, int(seed)])
    rows: list[dict[str, Any]] = []
    pair_id = 0
    for category, subcategory, pairs in SUBCATEGORIES * repeats:
        for index in range(pairs):
            pair_id += 1
            common = {
                "model": "synthetic",
                "benchmark": "synthetic",
                "pair_id": pair_id,
                "category": category,
                "subcategory": subcategory,
                "split": "dev" if index < DEV_PAIRS_PER_SUBCATEGORY else "test",
            }
            rows += [common | example for example in _pair_examples(rng)]
            if open_questions:
                rows += [common | example for example in _open_examples(open_rng)]
    return ScoreTable.from_rows(rows)


def _open_examples(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Two examples of one pair: eight answers that are possible, of which the model proposes a few."""
    thing, count = str(rng.choice(_THINGS)), bool(rng.random() < 0.5)
    answers = [f"{number} {thing}" for number in _NUMBERS] if count else list(_COLOURS)
    ordinary = int(rng.integers(len(answers)))
    atypical = int((ordinary + rng.integers(1, len(answers))) % len(answers))
    sharpness = rng.gamma(3.0, 0.8)
    prior = rng.normal(0.0, 0.7, len(answers)) - 2.0
    prior[ordinary] += sharpness + 2.0
    examples: list[dict[str, Any]] = []
    for side, correct in (("cf", atypical), ("cs", ordinary)):
        clarity = rng.gamma(3.5, 0.75)
        visual = rng.normal(0.0, 0.7, len(answers)) - 1.5
        visual[correct] += clarity + 1.5
        influence = np.clip(0.8 + 0.15 * (sharpness - 2.4) - 0.15 * (clarity - 2.6) + rng.normal(0.0, 0.25), 0.0, 2.0)
        image = visual + influence * prior + rng.normal(0.0, 0.4, len(answers))
        original = int(np.argmax(image + rng.gumbel(0.0, 0.15, len(answers))))
        beams = np.argsort(-(image + rng.gumbel(0.0, 0.5, len(answers))))[:3]
        proposed = list(dict.fromkeys([original, int(np.argmax(prior)), *beams.tolist()]))
        texts = [answers[place] for place in proposed]
        scores = [_SPREAD * image[proposed], _SPREAD * prior[proposed]]
        if rng.random() < 0.6:  # what nobody would say without the image, or with it
            texts.append(str(rng.choice(_JUNK)))
            junk = scores[0].max() - rng.uniform(3.0, 9.0), scores[1].max() - rng.uniform(12.0, 30.0)
            scores = [np.append(each, score) for each, score in zip(scores, junk, strict=True)]
        if rng.random() < 0.01:  # the model proposes nothing else
            texts, scores = texts[:1], [each[:1] for each in scores]
        scores = [np.array(_log_probabilities(each)) for each in scores]
        if rng.random() < 0.3:  # one answer in two forms, whose probabilities add up
            place, share = int(rng.integers(len(texts))), rng.uniform(0.1, 0.9, 2)
            texts.append(_other_form(texts[place]))
            for index, each in enumerate(scores):
                scores[index] = np.append(each, each[place] + np.log(share[index]))
                scores[index][place] += np.log1p(-share[index])
        examples.append(
            {
                "side": side,
                "task": OPEN,
                "candidates": texts,
                "image_scores": scores[0].tolist(),
                "prior_scores": scores[1].tolist(),
                "original": None if rng.random() < 0.002 else texts[0],
                "answer": answers[correct],
                "aliases": [answers[correct].split()[0]] if count else None,
            }
        )
    return examples


def _other_form(text: str) -> str:
    """Another way to write an answer.

    >>> _other_form("six wings"), _other_form("red")
    ('6 wings', 'Red.')
    """
    first, _, rest = text.partition(" ")
    return f"{1 + _NUMBERS.index(first)} {rest}" if first in _NUMBERS else f"{text.capitalize()}."


def _pair_examples(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Four examples of one pair: two tasks, two sides; the prior is shared by both sides."""
    examples: list[dict[str, Any]] = []
    for task, candidates in (("mc", ["A", "B", "C", "D"]), ("qa", ["yes", "no"])):
        count = len(candidates)
        ordinary = int(rng.integers(count)) if task == "mc" else int(rng.random() > 0.95)
        atypical = int((ordinary + rng.integers(1, count)) % count)
        sharpness = rng.gamma(3.0, 0.8)
        prior = rng.normal(0.0, 0.7, count)
        prior[ordinary] += sharpness
        for side, correct in (("cf", atypical), ("cs", ordinary)):
            clarity = rng.gamma(3.5, 0.75)
            visual = rng.normal(0.0, 0.7, count)
            visual[correct] += clarity
            expected = 0.8 + 0.15 * (sharpness - 2.4) - 0.15 * (clarity - 2.6)
            influence = np.clip(expected + rng.normal(0.0, 0.25), 0.0, 2.0)
            image = visual + influence * prior + rng.normal(0.0, 0.4, count)
            decoded = int(np.argmax(image + rng.gumbel(0.0, 0.15, count)))
            examples.append(
                {
                    "side": side,
                    "task": task,
                    "candidates": candidates,
                    "image_scores": _log_probabilities(image),
                    "prior_scores": _log_probabilities(prior),
                    "original": None if rng.random() < 0.002 else candidates[decoded],
                    "answer": candidates[correct],
                }
            )
    return examples


def synthesize_claims(seed: int = 0, pairs: int = 60) -> ScoreTable:
    """Draw yes/no questions about two claims in all question forms and both claim orders, as the variant ``forms``.

    The prior favours the ordinary claim and, more in every further form, the word yes; so it stops following the claim
    order in some pairs. The first third of the pairs is for development.

    >>> table = synthesize_claims(seed=0)
    >>> len(table), len(table.where(split="dev")), table.column("example_id")[0]
    (960, 320, '1-cf-contrastive-ordinary-first')
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for pair in range(1, pairs + 1):
        sharpness, clarity = rng.gamma(3.0, 0.5), dict(zip(("cf", "cs"), rng.gamma(3.5, 0.5, 2), strict=True))
        for (bias, form), order in product(enumerate(FORMS), CLAIM_ORDERS):
            prior = sharpness * (1 if order == CLAIM_ORDERS[0] else -1) + 0.5 * bias + rng.normal(0.0, 0.3)
            for side in ("cf", "cs"):
                supported = (side == "cs") == (order == CLAIM_ORDERS[0])
                image = clarity[side] * (1 if supported else -1) + 0.8 * prior + rng.normal(0.0, 0.3)
                rows.append(
                    {
                        "model": "synthetic", "benchmark": "synthetic", "pair_id": pair, "side": side, "task": "qa",
                        "split": "dev" if pair <= pairs // 3 else "test", "candidates": ["yes", "no"],
                        "image_scores": _log_probabilities(np.array([image, 0.0])),
                        "prior_scores": _log_probabilities(np.array([prior, 0.0])),
                        "original": "yes" if image + rng.normal(0.0, 0.3) > 0 else "no",
                        "answer": "yes" if supported else "no", "example_id": f"{pair}-{side}-{form}-{order}",
                        "form": form, "claim_order": order,
                    }
                )  # fmt: skip
    return ScoreTable.from_rows(rows)


def _log_probabilities(scores: FloatArray) -> list[float]:
    """Scores as a model would report them: negative, summing below one in probability."""
    values: list[float] = (scores - np.log(np.exp(scores).sum()) - 0.05).tolist()
    return values
