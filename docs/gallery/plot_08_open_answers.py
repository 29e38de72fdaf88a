"""
Questions without options
=========================

Most questions come without a list of answers. Then the model itself proposes the candidates: the answers it finds
most probable with the image, and the one it finds most probable without it. The rest is the same: score them with and
without the image, subtract part of the *prior* (the scores without the image), and let a *gate* decide whether the
answer changes.
"""

# %%
# The small model that comes with the package, and the calibrator that comes with it. The calibrator was fitted on
# another set of drawn images than the one that is used here.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import unprior
from unprior.embedded import CALIBRATOR
from unprior.plots.style import LIGHT

folder = Path(os.getenv("UNPRIOR_GALLERY", "~/.cache/unprior/gallery")).expanduser()
engine = unprior.load_engine("embedded")
questions = unprior.load_benchmark("microworld", folder, seed=12, variant="open")
calibrator = unprior.SelectivePriorCalibrator.from_pretrained(CALIBRATOR)

# %%
# Ask about *counterfactual* images, which contradict expectation, until three answers have been changed; one for each
# kind of question.
found: dict[str, tuple] = {}
asked = 0
how = {"open_ended": True, "calibrator": calibrator}
unusual = [each for each in questions if each.side == "cf" and each.split == "test"]
for example in unusual:
    if example.question not in found:
        answer = unprior.ask(engine, example.image, example.question, **how)
        asked += 1
        if answer.final != answer.original:
            found[example.question] = (example, answer)
    if len(found) == 3:
        break
print(f"{asked} questions asked")

# %%
# The bars are corrected scores and scores with the image, relative to the mean of the candidates.
with LIGHT.applied():
    figure, grid = plt.subplots(3, 2, width_ratios=(1, 2.1), layout="constrained")
    figure.set_size_inches(7.2, 7.4)
    for (left, right), (example, answer) in zip(grid, found.values(), strict=True):
        left.imshow(Image.open(example.image))
        left.set_axis_off()
        places = np.arange(len(answer.candidates))
        image = np.array([each.image_score for each in answer.candidates])
        corrected = np.array([each.corrected_score for each in answer.candidates])
        grey = {"color": LIGHT.quiet, "label": "with the image"}
        blue = {"color": LIGHT.method, "label": "corrected"}
        right.barh(places - 0.19, image - image.mean(), 0.36, **grey)
        right.barh(places + 0.19, corrected - corrected.mean(), 0.36, **blue)
        marks = {answer.original: " (answered)", answer.final: " (corrected)"}
        labels = [each.label for each in answer.candidates]
        right.set_yticks(places, [label + marks.get(label, "") for label in labels])
        right.axvline(0, color=LIGHT.quiet, linewidth=0.8)
        right.invert_yaxis()
        right.grid(visible=False, axis="y")
        right.tick_params(axis="y", length=0)
        right.set_title(f"{example.question}\nRight: {example.answer}")
    grid[-1][1].set_xlabel("score (nats, relative to the mean)")
    grid[0][1].legend(loc="lower right")

# %%
# The first two changes are repairs. The third goes from one wrong answer to another: the foot has three toes. Beam
# search, which finds the candidates, also proposes nonsense, such as “zero stems” or “B” as a number of noses. Here it
# does not matter, because nonsense scores low with the image.
#
# Every change has a sentence:
for _, answer in found.values():
    print(answer.decision.explain(promise=False), end="\n\n")

# %%
# :doc:`/explanation/open-answers` says how candidates are found, merged and scaled.
