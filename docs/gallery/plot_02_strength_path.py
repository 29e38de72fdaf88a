"""
The strength of the correction, and its stable range
====================================================

The correction subtracts λ times the prior from the scores with the image. λ is the *strength*. As λ grows, another
answer may take the lead. The *stable range* is the range of strengths for which the proposed answer stays first. The
wider it is around the chosen λ, the less the answer depends on the exact value.
"""

# %%
# One example from a synthetic table: the model's own answer is wrong, and the correction repairs it.
import matplotlib.pyplot as plt
import numpy as np

import unprior
from unprior.plots.style import LIGHT

table = unprior.synthesize(seed=0)
calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
test = table.where(split="test", task="mc", side="cf")
decisions = calibrator.predict(test)
repaired = np.flatnonzero(decisions.revised & (decisions.final == test.answer))
late = repaired[decisions.range_low[repaired] > 0.3]  # a small λ is not enough
row = int(late[np.argmin(decisions.range_high[late])])
decision = decisions[row]
print(decision.explain())

# %%
# The corrected score of every candidate is a straight line in λ. The top line is the answer. Scores are
# log-probabilities in nats, units of the natural logarithm.
cells = slice(test.offsets[row], test.offsets[row + 1])
image, prior = test.image_scores[cells], test.prior_scores[cells]
image, prior = image - image.mean(), prior - prior.mean()
strengths = np.linspace(0, 1.5, 200)
corrected = image[:, None] - strengths * prior[:, None]

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    end = min(decision.range_high, 1.5)
    axes.axvspan(decision.range_low, end, color=LIGHT.repaired, alpha=0.14, linewidth=0)
    looks = {
        decision.original: (LIGHT.harmed, "--", "\n(original, wrong)"),
        decision.final: (LIGHT.repaired, "-", "\n(proposal, right)"),
    }
    others = iter([(LIGHT.cf, ":", ""), (LIGHT.control, "-.", "")])
    for name, line in zip(decision.candidates, corrected, strict=True):
        colour, dashes, told = looks.get(name) or next(others)
        axes.plot(strengths, line, color=colour, linestyle=dashes, linewidth=2)
        axes.text(1.52, line[-1], f"{name}{told}", color=colour, va="center")
    axes.axvline(decision.strength, color=LIGHT.ink, linewidth=1)
    chosen = f"chosen λ = {decision.strength:.2f}"
    axes.text(decision.strength + 0.02, corrected.max(), chosen, va="top")
    axes.set(xlim=(0, 1.5), xlabel="strength λ", ylabel="corrected score (nats)")
    axes.set_title("Shaded: the stable range of the proposal")

# %%
# ``stable_ranges`` computes the range for arrays of scores; every decision carries its own, with the distance of λ
# from its nearer end (the *radius*).
proposal = np.array([decision.candidates.index(decision.final)])
low, high = unprior.stable_ranges(image[:, None], prior[:, None], proposal)
print(f"stable from λ = {low[0]:.2f} to {high[0]:.2f}; radius {decision.radius:.2f}")

# %%
# Over all repaired examples:
radii = [decisions[place].radius for place in repaired.tolist()]
median, smallest = np.median(radii), min(radii)
print(f"{len(radii)} repairs; median radius {median:.2f}, smallest {smallest:.3f}")
