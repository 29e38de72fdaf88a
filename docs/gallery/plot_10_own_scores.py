"""
Scores of your own
==================

You do not need our engines. If you have the log-probabilities of candidate answers, with the image and without it,
you have all that the method needs. This example makes a score table from a pandas data frame and from a file of JSON
lines.

The scores are synthetic and stand for yours.
"""

# %%
# One row for each image and question. ``side`` says whether the image is ordinary (``cs``, commonsense) or
# contradicts expectation (``cf``, counterfactual); both images of a pair share ``pair_id``. ``original`` is what the
# model answered, ``answer`` what is right. Rows with split ``dev`` are learned from, rows with split ``test`` judge.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import unprior
from unprior.plots.style import LIGHT

frame = unprior.synthesize(seed=3).to_pandas()
asked = ["pair_id", "side", "task", "split", "candidates", "original", "answer"]
frame = frame[[*asked, "image_scores", "prior_scores"]]
frame = frame.assign(model="my-model", benchmark="my-images")
with pd.option_context("display.max_columns", None, "display.width", 110):
    print(frame[asked].head(4))
print(frame.loc[0, ["image_scores", "prior_scores"]])

# %%
# ``from_pandas`` checks every row. A mistake is refused with the row and the reason:
broken = frame.copy()
broken.at[5, "answer"] = "maybe"
try:
    unprior.ScoreTable.from_pandas(broken)
except unprior.InvalidScoresError as error:
    print(error)

# %%
# The whole frame is fine. Files work the same way: JSON lines, or Parquet.
table = unprior.ScoreTable.from_pandas(frame)
path = Path(tempfile.mkdtemp()) / "scores.jsonl"
table.write(path)
table = unprior.read_scores(path)
print(table, "from", path.name)

# %%
# From here on everything is as with scores of ours. ΔCF is the change of accuracy on counterfactual images (repair),
# ΔCS that on commonsense images (retention); MC are multiple-choice questions, QA yes/no questions.
calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
test = table.where(split="test")
evaluation = unprior.evaluate(test, calibrator.predict(test))

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    evaluation.plot(ax=axes)
    axes.set_title("What calibration changes, with 95 % intervals")

# %%
# And back to pandas, one row for each decision:
decisions = calibrator.predict(test).to_pandas(explanations=True)
print(decisions.loc[decisions["revised"], "explanation"].iloc[0])
