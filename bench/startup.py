"""How long commands take to start, each beside a bare script of the same libraries, in one run.

Run ``make bench-startup``; it prints the table and puts it into docs/reference/measurements.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from markdown import markdown, publish
from unprior import synthesize
from unprior.benchmarks.microworld.pairs import pairs
from unprior.benchmarks.microworld.render import render
from unprior.embedded import FOLDER

QUESTION = "Is there a red circle?"
IMPORTS = "import typer, rich"
READ = """
import numpy, scipy.optimize, pyarrow.parquet
pyarrow.parquet.read_table("scores.parquet")
"""
GENERATE = f"""
import sys
sys.modules["torchvision"] = None  # transformers cannot be loaded beside it and a torch for CPUs
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor
folder = {str(FOLDER)!r}
model = AutoModelForImageTextToText.from_pretrained(folder, dtype="auto", local_files_only=True)
processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
content = [{{"type": "image"}}, {{"type": "text", "text": {QUESTION!r}}}]
text = processor.apply_chat_template([{{"role": "user", "content": content}}], add_generation_prompt=True)
inputs = processor(text=text, images=Image.open("image.png").convert("RGB"), return_tensors="pt")
with torch.inference_mode():
    made = model.generate(**inputs, max_new_tokens=64, do_sample=False)
print(processor.decode(made[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True))
"""


@dataclass(frozen=True)
class Case:
    """A command, a script that does the least it could do, and the ratio of their times that is permitted."""

    command: tuple[str, ...]
    script: str
    about: str
    """What the script does."""
    limit: float
    rounds: int


CASES = (
    Case(("--help",), IMPORTS, "`import typer, rich`", 2.0, 15),
    Case(
        ("fit", "scores.parquet", "--out", "calibrator.json"),
        READ,
        "import NumPy, `scipy.optimize` and `pyarrow.parquet`, read the table",
        1.6,
        9,
    ),
    Case(
        ("ask", "image.png", QUESTION),
        GENERATE,
        "bare transformers: load the model, generate the answer",
        1.3,
        5,
    ),
)


def seconds(command: list[str], folder: Path) -> float:
    """Wall-clock time of a process."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:80]} failed:\n{done.stderr}")
    return taken


def measure(case: Case, folder: Path) -> tuple[float, float]:
    """Medians of the command and of the script, measured in turn; the first round of each only warms up."""
    unprior = [str(Path(sys.executable).parent / "unprior"), *case.command]
    script = [sys.executable, "-c", case.script]
    times = [(seconds(unprior, folder), seconds(script, folder)) for _ in range(case.rounds + 1)][1:]
    return median(ours for ours, _ in times), median(theirs for _, theirs in times)


def report() -> str:
    """The table."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthesize(seed=0).where(split="dev").write(folder / "scores.parquet")
        pair = next(pairs(seed=0))
        render(pair.concept, pair.state("cf"), pair.seed).save(folder / "image.png")
        for case in CASES:
            ours, theirs = measure(case, folder)
            shown = "unprior " + " ".join(f"'{word}'" if " " in word else word for word in case.command)
            times = [f"{1000 * value:,.0f} ms" for value in (ours, theirs)]
            lines.append([f"`{shown}`", times[0], case.about, times[1], f"{ours / theirs:.2f}×", f"{case.limit:g}×"])
    rounds = ", ".join(str(case.rounds) for case in CASES)
    return (
        markdown(["command", "time", "bare script", "time", "ratio", "limit"], lines)
        + f"\n\nMeasured by `make bench-startup` in one run: medians of {rounds} processes of each kind, in turn, with "
        "one thread. `unprior fit` reads 280 rows; `unprior ask` also scores the candidates with and without the "
        "image."
    )


if __name__ == "__main__":
    publish(report, "bench:startup", __doc__)
