"""
What a directed error looks like
================================

A vision-language model that is asked about an unusual image often gives the usual answer. Its error is *directed*:
the wrong answer is the one that it would also give without the image. This example shows it for one pair of images,
with the small model that comes with the package. That model was trained to rely on such expectations.
"""

# %%
# The *microworld* is a set of drawn image pairs: an ordinary image (*commonsense*, CS) and one that contradicts
# expectation (*counterfactual*, CF). Scoring asks every question with the image and without it. What is scored is
# stored in the folder, so only the first example of this gallery that runs has to wait for it.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import unprior
from unprior.plots.style import LIGHT

folder = Path(os.getenv("UNPRIOR_GALLERY", "~/.cache/unprior/gallery")).expanduser()
world = unprior.load_benchmark("microworld", folder, seed=12)
table = unprior.score(unprior.load_engine("embedded"), world, folder)

# %%
# A hand with six fingers that the model gets wrong, and the ordinary hand of the same pair.
examples = {example.example_id: example for example in world}
rows = {name: row for row, name in enumerate(table.column("example_id"))}
wrong = next(
    example
    for name, example in examples.items()
    if example.question == "How many fingers are on the hand?"
    and example.side == "cf"
    and example.text(example.answer).endswith("6 fingers")
    and table.original[rows[name]] != example.answer
)
pair = [examples[f"{wrong.pair_id}-{side}-mc"] for side in ("cf", "cs")]


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Shares among the candidates; scores are log-probabilities of whole answers."""
    return np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()


# %%
# Without the image both hands are the same question, so the model has the same preference. That preference is its
# *prior*. On the ordinary hand it does no harm; on the other one it wins against the image.
with LIGHT.applied():
    figure, grid = plt.subplots(2, 2, width_ratios=(1, 2.1), layout="constrained")
    figure.set_size_inches(7.2, 4.8)
    for (left, right), example in zip(grid, pair, strict=True):
        row = rows[example.example_id]
        cells = slice(table.offsets[row], table.offsets[row + 1])
        with_image = probabilities(table.image_scores[cells])
        without = probabilities(table.prior_scores[cells])
        left.imshow(Image.open(example.image))
        left.set_axis_off()
        left.set_title("counterfactual" if example.side == "cf" else "commonsense")
        places = np.arange(len(example.texts))
        plain = {"color": LIGHT.cf, "label": "with the image"}
        hatched = {"color": LIGHT.cs, "label": "without it", "hatch": "///"}
        right.barh(places - 0.19, with_image, 0.36, **plain)
        right.barh(places + 0.19, without, 0.36, edgecolor=LIGHT.paper, **hatched)
        marks = {table.original[row]: " (answered)", example.answer: " (right)"}
        if table.original[row] == example.answer:
            marks = {example.answer: " (answered, right)"}
        labelled = zip(example.labels, example.texts, strict=True)
        names = [text + marks.get(label, "") for label, text in labelled]
        right.set_yticks(places, names)
        right.invert_yaxis()
        right.set_xlim(0, 1)
        right.grid(visible=False, axis="y")
        right.tick_params(axis="y", length=0)
    grid[0][1].legend(loc="lower right")
    grid[1][1].set_xlabel("probability among the options")
    figure.suptitle(wrong.question, x=0.02, ha="left", fontweight="bold")

# %%
# How many of the wrong answers are directed? *Attraction* is the share of wrong counterfactual answers that are the
# prior's favourite; among three wrong options chance would give a third.
choices = table.where(task="mc")
attraction = unprior.measure(choices, choices.original).attraction
counted = f"{attraction.count} of {attraction.total} wrong choices"
print(f"{counted} are the prior's favourite ({attraction.value:.0%})")

# %%
# :doc:`/explanation/directed-errors` says why it is so.
