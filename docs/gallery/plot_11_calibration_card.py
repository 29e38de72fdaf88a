"""
A calibrator to pass on
=======================

A calibrator belongs to one model that is asked in one way. ``save_pretrained`` writes it into a folder with a card
that says what it was fitted on, what it did on other data, what it promises and what it is not for. The commands
``unprior apply``, ``ask`` and ``serve`` refuse it for another model. In Python, ``differences`` tells.
"""

# %%
# Scores of the small model that comes with the package. They are stored in the folder when they were computed once.
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import unprior
from unprior.plots.style import LIGHT

folder = Path(os.getenv("UNPRIOR_GALLERY", "~/.cache/unprior/gallery")).expanduser()
world = unprior.load_benchmark("microworld", folder, seed=12)
table = unprior.score(unprior.load_engine("embedded"), world, folder)

# %%
# Fit a calibrator that promises something about new pairs, evaluate it on rows that had no part in fitting, and save
# both. ε = 0.06: at most 6 of 100 answers about commonsense images, which show what everyone expects, turn from right
# to wrong.
test = table.where(split="test")
calibrator = unprior.SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06)
calibrator.fit(table)
evaluation = unprior.evaluate(test, calibrator.predict(test))
place = Path(tempfile.mkdtemp()) / "my-calibrator"
calibrator.save_pretrained(place, evaluation)
print(*sorted(path.name for path in place.iterdir()), sep="\n")

# %%
# The card is Markdown; these are two of its sections.
card = (place / "README.md").read_text(encoding="utf-8")
sections = {part.split("\n", 1)[0]: part for part in card.split("\n## ")}
print("##", sections["What it promises"])
print("##", sections["Out-of-scope uses"])

# %%
# ``from_pretrained`` reads a folder, or a repository of the Hugging Face hub (``push_to_hub`` writes there). The
# loaded calibrator decides the same. The *gate* is what keeps or changes an answer; the figure counts its reasons.
loaded = unprior.SelectivePriorCalibrator.from_pretrained(place)
decisions = loaded.predict(test)
assert (decisions.final == calibrator.predict(test).final).all()

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    decisions.plot(ax=axes)
    axes.set_title("Why answers of the test pairs were changed (blue) or kept")

# %%
# ``predict`` decides about any scores. Ask ``differences`` first whether they were made like those of the fit. What
# it calls *refused* makes scores incomparable, and the commands stop there:
stranger = table.with_columns(model="another-model")
stranger = stranger.with_provenance(weights="other weights")
print(*loaded.differences(stranger.provenance).refused, sep="\n")
