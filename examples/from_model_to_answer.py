"""From a model to a calibrated answer, step by step, with the model that comes with the package.

Every ``# %%`` begins a cell: run it in an editor that knows such cells, as a notebook, or as a script.
"""

# %% The model, and questions about pairs of images: one as usual, one against common sense.
import tempfile
from pathlib import Path

import unprior

folder = Path(tempfile.mkdtemp())
engine = unprior.load_engine("embedded")
benchmark = unprior.load_benchmark("microworld", folder)

# %% Every fourth pair is enough for an example.
benchmark = benchmark.with_examples([example for example in benchmark if int(example.pair_id or 0) % 4 == 0])

# %% Scores of every candidate answer, with the image and without it. What is scored is stored in the folder.
table = unprior.score(engine, benchmark, folder, batch_size=16)

# %% Learn on the development pairs how much of the prior to subtract, and when; then decide about the test pairs.
calibrator = unprior.SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
test = table.where(split="test")
decisions = calibrator.predict(test)

# %% How much is repaired, and what is lost?
evaluation = unprior.evaluate(test, decisions.final)
for task in evaluation.tasks:
    print(f"{task.task}: counterfactual {100 * task.cf.change.delta:+.1f}, "
          f"commonsense {100 * task.cs.change.delta:+.1f} points of accuracy")  # fmt: skip

# %% One question about one image, with an explanation of the answer.
repaired = next(number for number in range(len(test)) if decisions.revised[number])
example = next(each for each in benchmark if each.example_id == test.column("example_id")[repaired])
answer = unprior.ask(engine, example.image, example.question, options=example.texts, calibrator=calibrator)
print(f"{example.question} {answer.original} → {answer.final}. {answer.explanation}")
