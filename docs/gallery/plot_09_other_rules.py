"""
Other rules on the same scores
==============================

Is a learned strength with a gate worth the trouble? Ten simpler rules work on the same scores. Each is chosen on the
same development pairs, by the same objective, and then answers the same test questions. None of them asks the model
again, so this takes seconds.
"""

# %%
# Scores of the small model that comes with the package. They are stored in the folder when they were computed once.
import os
from pathlib import Path

import matplotlib.pyplot as plt

import unprior
from unprior.baselines.controls import run_controls
from unprior.plots.style import LIGHT
from unprior.studies.common.trade_off import trade_off_panels, trade_offs

folder = Path(os.getenv("UNPRIOR_GALLERY", "~/.cache/unprior/gallery")).expanduser()
world = unprior.load_benchmark("microworld", folder, seed=12)
table = unprior.score(unprior.load_engine("embedded"), world, folder)
development, test = table.where(split="dev"), table.where(split="test")

# %%
# λ is the strength: how much of the prior, the model's preference without the image, is subtracted. The *gate* of SPC
# keeps the original answer unless conditions hold. Rules without a gate always take the corrected answer.
#
# - *No subtraction*: the candidate with the highest score with the image.
# - *Fixed λ = 0.8*: 0.8 of the prior is subtracted, for every example.
# - *Fixed λ = 0.8, gated*: the same, with the gate.
# - *Selected λ*: one λ for every example, the best of eight on the development pairs.
# - *Selected λ, gated*: one λ for every example, fitted on the development pairs, with the gate.
# - *Direct (PMI, λ = 1)*: the whole prior is subtracted; this is the pointwise mutual information.
# - *CFG on scores*: classifier-free guidance, γ × image − (γ − 1) × prior, among candidates that the image makes
#   plausible.
# - *Learned rule, fixed λ*: a logistic regression says how likely the corrected answer is a repair; it is taken from a
#   threshold on.
# - *Learned rule, guided*: the same, with the answers of classifier-free guidance.
# - *Adaptive λ, no gate*: the strength that SPC learns for each example, without the gate.
calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
controls = run_controls(development, test, calibrator=calibrator)
results = [(control.label, trade_offs(test, control.answers)) for control in controls]
results.append(("SPC", trade_offs(test, calibrator.predict(test))))

# %%
# Blue dots to the right are repairs on counterfactual images, yellow squares to the left losses on commonsense
# images.
with LIGHT.applied():
    figure, axes = plt.subplots(1, 2, sharex=True, layout="constrained")
    figure.set_size_inches(9.6, 4.4)
    trade_off_panels(results, bold=["SPC"]).plot(axes)
    axes[1].tick_params(labelleft=False)
    title = "What each rule repairs and loses on the test pairs"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")

# %%
# U weighs both: ΔCF + ½ ΔCS, the mean over both tasks.
utility = {label: 50 * sum(each.utility for each in tasks) for label, tasks in results}
for label in sorted(utility, key=utility.get, reverse=True):
    print(f"{label:<24} U = {utility[label]:+5.1f} points")

# %%
# SPC need not be first here. This model's errors nearly all follow its prior, so that rules without a gate gain much;
# look at what they lose on commonsense images.
#
# Decoders that ask the model again, such as VCD, PAI or NoLan, are compared by ``unprior baseline``;
# :doc:`/explanation/baselines` has their equations and results.
