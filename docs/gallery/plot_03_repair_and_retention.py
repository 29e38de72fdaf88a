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
chosen = [calibrator.reselect(epsilon) for epsilon in limits]
gated = [unprior.evaluate(test, each.predict(test)) for each in chosen]

# %%
# For comparison: the same λ for every example, and the corrected answer always taken.
strengths = (0.25, 0.5, 0.75, 1.0)
answers = [fixed_strength_answers(test, strength) for strength in strengths]
ungated = [unprior.evaluate(test, each) for each in answers]


# %%
# Up is repair, left is loss. A point further up and further right is better.
def changes(results: list[unprior.Evaluation], task: str, change: str) -> list[float]:
    """ΔCS or ΔCF in points."""
    records = [record for each in results for record in each.records()]
    return [100 * record[change] for record in records if record["task"] == task]


ground = {"facecolor": LIGHT.paper, "edgecolor": "none", "alpha": 0.8, "pad": 1}
with LIGHT.applied():
    figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for axes, task in zip(both, ("mc", "qa"), strict=True):
        draw_zero(axes, LIGHT)
        for evaluations, letter, values, colour, look, label, aside, side in (
            (ungated, "λ", strengths, LIGHT.control, "s--", "no gate", (7, 4), "left"),
            (gated, "ε", limits, LIGHT.method, "o-", "SPC", (-7, -12), "right"),
        ):
            across = changes(evaluations, task, "delta_cs")
            up = changes(evaluations, task, "delta_cf")
            axes.plot(across, up, look, color=colour, markersize=6, label=label)
            # Several limits may lead to the same settings.
            places: dict[tuple[float, float], list[str]] = {}
            for x, y, value in zip(across, up, values, strict=True):
                places.setdefault((x, y), []).append(f"{value:g}")
            style = {"fontsize": 8.5, "color": colour, "ha": side, "bbox": ground}
            for place, together in places.items():
                text = f"{letter} {', '.join(together)}"
                axes.annotate(text, place, aside, textcoords="offset points", **style)
        axes.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)")
        axes.set_title(task_name(task))
        axes.margins(0.2, 0.1)
    both[0].legend(loc="lower left")
    title = "Repair against retention on the test pairs"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")

# %%
# One λ can do as well as SPC, or better, if you know which. It differs from model to model, and nobody knows it
# before; ε is what you are willing to lose.
#
# The limit is kept on the development pairs. On the test pairs the loss may be larger; see
# :doc:`plot_04_certified_limit` for a limit that is promised there.
