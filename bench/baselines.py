"""Every method on the embedded model, in one run, for docs/explanation/baselines.md: results, costs, and the views."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from safetensors import safe_open

from markdown import markdown, replace_section
from unprior.baselines.answers import Cost, read_references
from unprior.baselines.mfcd import high_pass, low_pass
from unprior.baselines.vcd import diffuse
from unprior.benchmarks.microworld import pairs
from unprior.benchmarks.microworld.benchmark import IMAGE_SIZE
from unprior.benchmarks.microworld.render import render

SHOWN_PAIRS = (3, 113, 203)
TASKS = ("mc", "qa")


def main() -> None:
    """Run everything, print the tables, and put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", type=Path, help="page to put the tables into")
    parser.add_argument("--image", type=Path, help="where to draw the views")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [Path(sys.executable).parent / "unprior", "run", "--baselines", "all", "--out", folder, "--json"]
        done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - start
        original = read_references(Path(folder) / "baselines.parquet")["original"]
        revis = _revis(Path(folder) / "revis.safetensors")
    records = json.loads(done.stdout)["studies"]["methods"]
    text = f"{_results(records)}\n\n{_costs(records, original)}\n\n{_footnote(records, seconds, revis)}"
    print(text)
    if arguments.update:
        replace_section(arguments.update, "bench:baselines", text)
    if arguments.image:
        _views().save(arguments.image, quality=85, optimize=True)


def _results(records: list[dict[str, Any]]) -> str:
    lines = []
    for name in dict.fromkeys(record["method"] for record in records):
        by_task = {record["task"]: record for record in records if record["method"] == name}
        cells = [by_task[TASKS[0]]["label"]]
        for task in TASKS:
            record = by_task[task]
            shown = f"{100 * record['utility']:+.1f}"
            matched = record["matched_delta_cf"], record["matched_delta_cs"]
            cells += [
                _deltas(record["delta_cf"], record["delta_cs"]),
                "–" if matched[0] is None else _deltas(*matched),
                f"{record['cf_repairs']}/{record['cf_harms']}; {record['cs_repairs']}/{record['cs_harms']}",
                str(record["cf_changed"] + record["cs_changed"]),
                f"**{shown}**" if record["best_utility"] else shown,
            ]
        lines.append(cells)
    columns = ("ΔCF/ΔCS", "matched", "repairs/harms CF; CS", "changed", "U")
    return markdown(["", *(f"{task.upper()} {name}" for task in TASKS for name in columns)], lines)


def _deltas(cf: float, cs: float) -> str:
    return f"{100 * cf:+.1f}/{100 * cs:+.1f}"


def _costs(records: list[dict[str, Any]], original: Cost) -> str:
    measured = [record for record in records if record["cost_seconds"] is not None and record["task"] == TASKS[0]]
    costs = {"Original answer": (original.images, original.passes, original.seconds)}
    costs |= {
        record["label"]: (record["cost_images"], record["cost_passes"], record["cost_seconds"]) for record in measured
    }
    lines = [
        [label, f"{images:g}", f"{passes:.3g}", f"{1000 * seconds:.1f} ms", f"{seconds / original.seconds:.1f}×"]
        for label, (images, passes, seconds) in costs.items()
    ]
    return markdown(["one example", "images encoded", "forward passes", "time", "times the original answer"], lines)


def _footnote(records: list[dict[str, Any]], seconds: float, revis: str) -> str:
    return (
        f"Measured by `make bench-baselines` in one run: the embedded model on 230 test pairs of the microworld, in "
        f"points; costs are means over {records[0]['cost_examples']} examples, one at a time. `unprior run "
        f"--baselines all` took {seconds:.0f} s as a whole. {revis}"
    )


def _revis(path: Path) -> str:
    """What REVIS chose, and on how much."""
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["about"])
    choice, counts = about["choice"], about["counts"]
    learned = f"from {counts['false_positives']} false positives and {counts['factual']} right answers"
    if choice["layer"] is None:
        return f"REVIS, {learned}, steers no layer: {choice['reason']}."
    place = f"layer {choice['layer']} of {len(about['separation'])}"
    return f"REVIS chose {place} and τ = {choice['threshold']:.3f}, {learned}."


def _views() -> Image.Image:
    """Some images as the streams of VCD and MFCD see them: as they are, with noise, low-pass, high-pass."""
    chosen = [pair for pair in pairs(0) if pair.number in SHOWN_PAIRS]
    sheet = Image.new("RGB", (4 * IMAGE_SIZE, len(chosen) * IMAGE_SIZE), "white")
    for row, pair in enumerate(chosen):
        image = render(pair.concept, pair.state("cf"), pair.seed, size=IMAGE_SIZE)
        for column, view in enumerate((image, _noisy(image), low_pass(image, 0.9), high_pass(image, 0.1))):
            sheet.paste(view, (column * IMAGE_SIZE, row * IMAGE_SIZE))
    return sheet.resize((sheet.width * 2 // 3, sheet.height * 2 // 3), Image.Resampling.LANCZOS)


def _noisy(image: Image.Image) -> Image.Image:
    """Noise at step 500 on values normalised to mean 0.5 and deviation 0.25, and back."""
    normalised = (np.asarray(image, dtype=np.float64) / 255.0 - 0.5) / 0.25
    noisy = diffuse(normalised, np.random.default_rng(42), step=500)
    return Image.fromarray(((noisy * 0.25 + 0.5) * 255.0).clip(0, 255).astype(np.uint8))


if __name__ == "__main__":
    main()
