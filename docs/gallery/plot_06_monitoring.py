"""
Does the promise still hold?
============================

A certified calibrator promises that at most a share ε of the commonsense answers turns from right to wrong. The
promise is about images like those it was fitted on. When the images change, it may break. ``monitor`` tests it on
decisions that somebody checked, one after the other.

The scores are synthetic: first a service whose images stay alike, then one whose images become less clear.
"""

# %%
# Fit on development pairs, and save the calibrator.
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unprior
from unprior.evaluation.monitor import Monitor, monitor_file
from unprior.plots.style import LIGHT

folder = Path(tempfile.mkdtemp())
calibrator = unprior.SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06)
calibrator.fit(unprior.synthesize(seed=0))
calibrator.save(folder / "calibrator.json")
print(calibrator.certificate_.sentence)

# %%
# A stream of new pairs. In the second stream the images become unclear from pair 301 on: the same answer is still the
# best one, but the scores with the image lie closer together, so that subtracting the prior changes more answers.
steady = unprior.synthesize(seed=1, repeats=2).with_columns(split="test")
late = np.repeat(np.array(steady.column("pair_id")) > 300, steady.candidate_counts)
drifting = steady.with_image_scores(np.where(late, 0.45, 1.0) * steady.image_scores)


# %%
# ``unprior apply`` or ``predict`` writes decisions; whoever checks them adds the right answer to each line.
def monitor(stream: unprior.ScoreTable, name: str) -> Monitor:
    """Decide about a stream, add the right answers, and test the promise."""
    path = folder / f"{name}.jsonl"
    calibrator.predict(stream).write(path)
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    both = zip(lines, stream.answer, strict=True)
    checked = [decision | {"answer": answer} for decision, answer in both]
    path.write_text("\n".join(map(json.dumps, checked)) + "\n", encoding="utf-8")
    return monitor_file(folder / "calibrator.json", path)


monitors = {
    "images stay alike": monitor(steady, "steady"),
    "images become unclear": monitor(drifting, "drifting"),
}

# %%
# The test may be looked at after every single decision. While the rate of harm is at most ε, the chance that it
# *ever* calls for a new calibration is at most 5 %.
with LIGHT.applied():
    figure, both = plt.subplots(1, 2, sharey=True, layout="constrained")
    figure.set_size_inches(9, 3.4)
    for axes, (title, watched) in zip(both, monitors.items(), strict=True):
        watched.plot(ax=axes)
        axes.set_title(f"The promise over time: {title}", fontsize=9.5)
        for text in axes.texts:  # where the test calls for a new calibration
            text.set(text="promise broken here", position=(-9, 3), ha="right")
    both[0].set_ylim(0, 22)  # after few decisions one harm is a large share
    both[1].set_ylabel("")

# %%
# MC are multiple-choice questions, QA yes/no questions.
print("\n".join(monitors["images become unclear"].words[1:]))

# %%
# On the command line: ``unprior monitor calibrator.json labelled.jsonl``, with exit code 1 when it is time to
# calibrate again.
