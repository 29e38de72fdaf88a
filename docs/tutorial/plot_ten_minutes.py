"""
Ten minutes with the embedded model
===================================

You will meet a model that sees a hand with six fingers and says five, find out why, correct it, measure what the
correction repairs and what it breaks, and put a limit on the damage. You need no GPU, no download and no knowledge of
the paper. Everything runs on the small vision-language model that comes with the package.
"""

# %%
# A model, and images to try it on
# --------------------------------
#
# A *vision-language model* answers questions about images. The embedded one is tiny and was trained to rely on what
# it expects; that makes it good to learn on and useless for anything else.
#
# The *microworld* is a benchmark of drawn images. They come in pairs: one image shows a thing as everyone expects it
# (**commonsense**, CS), the other contradicts that (**counterfactual**, CF). The same questions are asked about both.
#
# Everything is kept in one folder of yours: images, and later the scores. If you run this again, stored scores are
# used.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import unprior
from unprior.plots.style import LIGHT

folder = Path(os.getenv("UNPRIOR_GALLERY", "~/.cache/unprior/gallery")).expanduser()
engine = unprior.load_engine("embedded")
world = unprior.load_benchmark("microworld", folder, seed=12)
print(world.counts())

# %%
# A wrong answer
# --------------
#
# Among the test images of this world there is a hand with six fingers. Ask about it. (Other seeds draw other worlds.
# This one was chosen because its six-fingered hand can be repaired. Not all can; they are counted below.)
hand = next(
    example
    for example in world
    if example.question == "How many fingers are on the hand?"
    and example.split == "test"
    and example.text(example.answer).endswith("6 fingers")
)
answer = unprior.ask(engine, hand.image, hand.question, options=hand.texts)

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(2.6, 2.9), layout="constrained")
    axes.imshow(Image.open(hand.image))
    axes.set_axis_off()
    axes.set_title(f"The model says:\n{hand.text(answer.final)}")

# %%
# Why it is wrong: scores with and without the image
# --------------------------------------------------
#
# A **score** is the log-probability that the model gives to a whole answer. Every candidate answer has two: one with
# the image, and one for the same question without any image. The scores without the image are the model's **prior**:
# what it expects before it looks.
print(f"{'':<16} {'with the image':>14} {'without it':>12}")
for each in answer.candidates:
    print(f"{each!s:<16} {each.image_score:14.2f} {each.prior_score:12.2f}")

# %%
# As probabilities among the four options it is easier to see. The prior strongly prefers five fingers. The image
# raises six, but not far enough. Such an error is **directed**: the wrong answer is the one that the prior wants.
scores = np.array([[each.image_score, each.prior_score] for each in answer.candidates])
shares = np.exp(scores) / np.exp(scores).sum(axis=0)

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
    places = np.arange(len(shares))
    hatched = {"color": LIGHT.cs, "hatch": "///", "edgecolor": LIGHT.paper}
    axes.barh(places - 0.19, shares[:, 0], 0.36, color=LIGHT.cf, label="with the image")
    axes.barh(places + 0.19, shares[:, 1], 0.36, label="without it", **hatched)
    axes.set_yticks(places, [str(each) for each in answer.candidates])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 1), xlabel="probability among the options")
    axes.set_title(f"{hand.question} Right: {hand.text(hand.answer)}")
    axes.legend()

# %%
# The idea: subtract the prior, but not everywhere
# ------------------------------------------------
#
# Subtract a part λ of the prior from the scores with the image, and six fingers may win. λ is the **strength** of the
# correction. Subtracting it from every answer would repair many counterfactual answers, and break commonsense ones,
# where the prior is right. *Selective Prior Calibration* (SPC) learns two things from examples: how strong the
# correction should be for each example, and a **gate** that decides whether the corrected answer may replace the
# original one.
#
# To learn from examples they must be scored. This asks the model all 1,200 questions about 300 pairs. The first time,
# it is the longest step of this tutorial.
table = unprior.score(engine, world, folder)
print(table)

# %%
# K is the number of candidate answers of a question: four options, or yes and no.

# %%
# Learn on development pairs
# --------------------------
#
# 70 of the 300 pairs are **development pairs**: their answers are known to the calibrator. The other 230 are **test
# pairs** and stay unseen until the end. ``epsilon_cs`` is **ε**, the limit: among the settings that lose at most 4
# points of commonsense accuracy on the development pairs, the one with the best balance of repair and loss is chosen.
calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04)
calibrator.fit(table)  # uses the development pairs only
settings = calibrator.settings_
print(f"λ at most {settings.max_strength:g}")
print(f"a change needs a lead of {settings.min_margin:g} in probability")

# %%
# These are two of the settings: the largest strength, and the gate's first condition. After subtraction, the new
# answer must lead the next one by so much.

# %%
# Decide
# ------
#
# Now the calibrator decides about every test question: keep the answer, or replace it.
test = table.where(split="test")
decisions = calibrator.predict(test)

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
    decisions.plot(ax=axes)
    axes.set_title("Why answers were changed (blue) or kept (grey)")

# %%
# There are two reasons to change an answer. *Conflict*: the image and the prior favour different answers, and the
# proposal is the image's. *Absorption*: the model's answer, the image and the prior all agree, and only subtraction
# shows that the image supports something else more than expected.
#
# Most answers are kept because the corrected scores favour the *same answer*. A *small margin* is a lead that is too
# small; with *no condition* neither of the two reasons to change holds.

# %%
# An explanation
# --------------
#
# Ask about the hand again, this time with the calibrator. Every decision comes with a sentence that says why.
answer = unprior.ask(
    engine,
    hand.image,
    hand.question,
    options=hand.texts,
    calibrator=calibrator,
)
print(f"{hand.text(answer.original)} → {hand.text(answer.final)}")
print(answer.explanation)

# %%
# What does it buy, and what does it cost?
# ----------------------------------------
#
# A **repair** is an answer that was wrong and is right now; a **harm** was right and is wrong now. **ΔCF** is the
# change of accuracy on counterfactual images in points: what the correction buys. **ΔCS** is the change on
# commonsense images: what it costs. Both are measured on the test pairs, for multiple-choice questions (MC) and
# yes/no questions (QA). (*Standard* is the version of SPC; another one takes the uncertainty of λ into account.)
evaluation = unprior.evaluate(test, decisions)
print(evaluation)

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    evaluation.plot(ax=axes)
    axes.set_title("Changes on the test pairs, with 95 % intervals")

# %%
# The lines are 95 % intervals: other test pairs of the same kind would give other values. Where a line does not touch
# zero, the change is unlikely to be chance.

# %%
# A limit that is promised
# ------------------------
#
# ε was kept on the development pairs, and here on the test pairs, too: both costs above are within 4 points, one of
# them barely. With other development pairs it is not always. Settings are chosen because they look good on the
# development pairs, so new pairs tend to do worse. :doc:`/executed/gallery/plot_04_certified_limit` shows on synthetic
# scores on which share of the draws ε is exceeded; :doc:`/explanation/guarantee` has the shares for this model.
#
# If you want to put a calibrator to use, ask for a **certificate**: a statement about new pairs that holds with 90 %
# confidence. The limit is the same, ε = 0.04.
certified = unprior.SelectivePriorCalibrator(retention="certified", epsilon_cs=0.04)
certified.fit(table)
print(certified.certificate_.sentence)
for task in certified.certificate_.tasks:
    print(f"{task.task.upper()}: {task.harms} of {task.pairs} development pairs harmed")

# %%
# No harm among so few pairs is what it takes to promise 4 of 100 in both tasks. (The other development pairs were
# used to learn the strength.) So the certified calibrator changes an answer only where the new one leads by much. It
# should harm less than it promises, and it gives up part of the repair. Was the promise kept on the test pairs?
promised = unprior.evaluate(test, certified.predict(test))
for task in promised.tasks:
    repairs = task.cf.change.repairs
    harms, total = task.cs.change.harms, task.cs.change.total
    print(f"{task.task.upper()}: {repairs} counterfactual answers repaired;", end=" ")
    print(f"{harms} of {total} commonsense answers harmed ({harms / total:.1%})")

with LIGHT.applied():
    figure, both = plt.subplots(2, 1, sharex=True, layout="constrained")
    figure.set_size_inches(6.4, 5.2)
    evaluation.plot(ax=both[0])
    promised.plot(ax=both[1])
    both[0].set(title="Paper's rule, ε = 0.04", xlabel="")
    both[1].set_title("Certified, ε = 0.04")
    figure.get_layout_engine().set(hspace=0.08)

# %%
# More repair for a less strict promise: try ``epsilon_cs=0.06``. More development pairs help, too.

# %%
# Keep it, and go on
# ------------------
#
# ``save_pretrained`` writes the calibrator with a card that says what it is for.
certified.save_pretrained(folder / "my-calibrator", promised)
print(*sorted(path.name for path in (folder / "my-calibrator").iterdir()), sep="\n")

# %%
# That was the whole way: scores with and without the image, a strength, a gate, a limit. It is the same with a model
# of yours: replace ``"embedded"`` by its name or folder, and the microworld by your questions.
#
# - :doc:`/how-to/your-model` and :doc:`/how-to/your-data` say how.
# - :doc:`/how-to/certify` is about limits that are promised.
# - :doc:`/explanation/directed-errors` and the pages after it explain the method.
