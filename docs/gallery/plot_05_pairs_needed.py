"""
How many pairs does a promise need?
===================================

Before anybody labels an image, you can compute what a number of development pairs can promise. No model is needed.

A *pair* is one ordinary image (*commonsense*, CS) and one that contradicts expectation (*counterfactual*, CF). A
commonsense answer is *harmed* if it was right and the correction makes it wrong. A *certified* calibrator promises:
with confidence 1 − δ, at most a share ε of the commonsense answers to new pairs is harmed.
"""

# %%
# The smallest ε depends on the number of pairs and on how many harms you allow among them. A plan that allows more
# harms promises less, but repairs more.
import matplotlib.pyplot as plt

from unprior.calibration.ladder import pairs_needed, smallest_epsilon
from unprior.plots.style import LIGHT
from unprior.runs.promise import plan_promise

pairs = range(20, 301)

with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    colours = (LIGHT.cf, LIGHT.repaired, LIGHT.cs, LIGHT.control)
    looks = zip(colours, ("-", "--", "-.", ":"), strict=True)
    for harms, (colour, dashes) in enumerate(looks):
        values = [100 * smallest_epsilon(count, harms=harms) for count in pairs]
        name = {0: "no harm", 1: "1 harm"}.get(harms, f"{harms} harms") + " allowed"
        axes.plot(pairs, values, dashes, color=colour, linewidth=2, label=name)
        needed = pairs_needed(0.06, harms=harms)
        axes.plot(needed, 6, "o", color=colour, markersize=7, zorder=4)
        near = {"xytext": (5, 5), "textcoords": "offset points"}
        axes.annotate(f"{needed}", (needed, 6), fontweight="bold", **near)
    axes.axhline(6, color=LIGHT.ink, linewidth=0.8)
    axes.text(298, 6.15, "ε = 6 %", ha="right", va="bottom")
    axes.set(xscale="log", xlim=(20, 300), ylim=(0, 16))
    axes.set(xlabel="development pairs", ylabel="smallest ε (%)")
    axes.set_xticks([25, 50, 100, 200, 300], ["25", "50", "100", "200", "300"])
    axes.minorticks_off()
    axes.set_title("What so many pairs can promise with 90 % confidence")
    axes.legend(loc="upper right")

# %%
# The dots mark how many pairs ε = 6 % needs.
#
# ``plan_promise`` says what a fit would do for two tasks, multiple choice and yes/no questions, which are promised
# together.
for count in (30, 70, 140):
    plan, _ = plan_promise(0.06, count).plan_for(count)
    told = "abstains: it would change no answer"
    if plan is not None:
        told = f"harms allowed, task by task: {plan.steps}"
    print(f"{count:>4} pairs, ε = 0.06: {told}")

# %%
# And in words:
print("\n".join(plan_promise(0.02, 70).words))

# %%
# On the command line: ``unprior plan --epsilon 0.06 --pairs 70``. :doc:`/explanation/guarantee` has the proof.
