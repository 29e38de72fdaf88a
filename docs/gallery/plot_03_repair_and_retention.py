"""
Repair against retention
========================

Subtracting the prior repairs answers about counterfactual images, which contradict expectation (ΔCF goes up). It also
breaks answers about commonsense images, where the prior is right (ΔCS goes down). ε limits that loss on the
development pairs: the larger ε, the more is corrected. This example shows what different limits buy, and what happens
without a gate.
"""

# %%
# Scores of the small model that comes with the package. They are stored in the folder when they were computed once.
import os
from pathlib import Path

import matplotlib.pyplot as plt

import unprior
from unprior.baselines.controls import fixed_strength_answers
from unprior.plots.display import draw_zero, task_name
from unprior.plots.style import LIGHT

folder = Path(os.getenv("UNPRIOR_GALLERY", "~/.cache/unprior/gallery")).expanduser()
world = unprior.load_benchmark("microworld", folder, seed=12)
table = unprior.score(unprior.load_engine("embedded"), world, folder)
test = table.where(split="test")

# %%
# SPC learns a strength λ for every example, and a *gate* decides whether the corrected answer replaces the original
# one. ``reselect`` chooses the gate's settings again under another limit; nothing is fitted anew.
calibrator = unprior.SelectivePriorCalibrator().fit(table)
limits = (0.0, 0.02, 0.04, 0.06, 0.10)
gated = [unprior.evaluate(test, calibrator.reselect(epsilon).predict(test)) for epsilon in limits]

# %%
# For comparison: the same λ for every example, and the corrected answer always taken.
strengths = (0.25, 0.5, 0.75, 1.0)
ungated = [unprior.evaluate(test, fixed_strength_answers(test, strength)) for strength in strengths]


# %%
# Up is repair, left is loss. A point further up and further right is better.
def changes(evaluations: list[unprior.Evaluation], task: str) -> tuple[list[float], list[float]]:
    """ΔCS and ΔCF in points."""
    found = [record for each in evaluations for record in each.records() if record["task"] == task]
    return [100 * record["delta_cs"] for record in found], [100 * record["delta_cf"] for record in found]


ground = {"facecolor": LIGHT.paper, "edgecolor": "none", "alpha": 0.8, "pad": 1}
with LIGHT.applied():
    figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for axes, task in zip(both, ("mc", "qa"), strict=True):
        draw_zero(axes, LIGHT)
        for evaluations, names, colour, look, label, aside in (
            (ungated, [f"λ {each:g}" for each in strengths], LIGHT.control, "s--", "one λ, no gate", (7, 4)),
            (gated, [f"ε {each:g}" for each in limits], LIGHT.method, "o-", "SPC", (-7, -12)),
        ):
            across, up = changes(evaluations, task)
            axes.plot(across, up, look, color=colour, markersize=6, label=label)
            places: dict[tuple[float, float], list[str]] = {}  # several limits may lead to the same settings
            for x, y, name in zip(across, up, names, strict=True):
                places.setdefault((x, y), []).append(name)
            for place, together in places.items():
                text = ", ".join([together[0], *(name.split()[1] for name in together[1:])])
                side = "left" if aside[0] > 0 else "right"
                axes.annotate(
                    text, place, aside, textcoords="offset points", fontsize=8.5, color=colour, ha=side, bbox=ground
                )
        axes.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)", title=task_name(task))
        axes.margins(0.2, 0.1)
    both[0].legend(loc="lower left")
    figure.suptitle("Repair against retention on the test pairs", x=0.01, ha="left", fontweight="bold")

# %%
# One λ can do as well as SPC, or better, if you know which. It differs from model to model, and nobody knows it
# before; ε is what you are willing to lose.
#
# The limit is kept on the development pairs. On the test pairs the loss may be larger; see
# :doc:`plot_04_certified_limit` for a limit that is promised there.
