"""
A limit that holds on new pairs
===============================

The paper chooses settings that lose at most a share ε of commonsense accuracy *on the development pairs*. New pairs
are another matter. The certified rule promises something about them. This example draws development pairs again and
again and looks at what each rule does to new ones.

The scores are synthetic, because that needs thousands of pairs; they say nothing about any real model.
"""

# %%
# A large population of pairs, and 100 times 70 development pairs out of it. *Harm* is the share of commonsense
# answers that were right and are wrong after the correction, in the task that suffers most.
import matplotlib.pyplot as plt
import numpy as np

import unprior
from unprior.plots.style import LIGHT

EPSILON, PAIRS, DRAWS = 0.06, 70, 100
population = unprior.synthesize(seed=7, repeats=8)
pair_ids = np.array(population.column("pair_id"))
tasks = np.array(population.column("task"))
ordinary = ~population.is_cf


def outcome(calibrator: unprior.SelectivePriorCalibrator) -> tuple[float, float]:
    """Harm of the worst task, and change of counterfactual accuracy, in all pairs."""
    final = calibrator.predict(population).final
    right_before = population.original == population.answer
    right_after = final == population.answer
    harmed = right_before & ~right_after
    worst = max(harmed[ordinary & (tasks == task)].mean() for task in ("mc", "qa"))
    repaired = right_after[~ordinary].mean() - right_before[~ordinary].mean()
    return 100 * worst, 100 * repaired


random = np.random.default_rng(0)
results = {"paper": [], "certified": []}
for _ in range(DRAWS):
    some = random.choice(np.unique(pair_ids), PAIRS, replace=False)
    drawn = population.take(np.isin(pair_ids, some))
    for rule, outcomes in results.items():
        settings = {"epsilon_cs": EPSILON, "retention": rule}
        calibrator = unprior.SelectivePriorCalibrator(**settings)
        outcomes.append(outcome(calibrator.fit(drawn, split=None)))

# %%
# Every dot is one draw of development pairs. Dots to the right of the line harm more new pairs than ε.
with LIGHT.applied():
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    looks = {
        "paper": ("paper's rule", LIGHT.control, "s"),
        "certified": ("certified", LIGHT.method, "o"),
    }
    for rule, (name, colour, marker) in looks.items():
        harm, repair = np.array(results[rule]).T
        beyond = np.mean(harm > 100 * EPSILON)
        dots = {"markersize": 5, "markeredgecolor": "none", "alpha": 0.75}
        label = f"{name}: beyond ε in {beyond:.0%} of the draws"
        axes.plot(harm, repair, marker, color=colour, label=label, **dots)
    axes.axvline(100 * EPSILON, color=LIGHT.ink, linestyle="--", linewidth=1)
    below = {"transform": axes.get_xaxis_transform(), "ha": "right"}
    axes.text(100 * EPSILON - 0.15, 0.03, f"ε = {EPSILON:.0%}", **below)
    axes.set_xlim(0, None)
    axes.set_xlabel("harm on new pairs, worst task (%)")
    axes.set_ylabel("repair: ΔCF on new pairs (points)")
    axes.set_title("How often is ε exceeded on new pairs?")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)

# %%
# The certified rule may exceed ε in at most one of ten draws (δ = 0.1). It pays with part of the repair. The price
# falls as the number of development pairs grows.
print(calibrator.certificate_.sentence)

# %%
# :doc:`/explanation/guarantee` says why the promise holds, :doc:`/how-to/certify` how to use it.
