"""How fast the core is: every figure is measured here, side by side, in one run.

Run ``make bench``; it prints the tables and puts them into docs/reference/measurements.md.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import straightforward
from markdown import markdown, replace_section
from unprior import ScoreTable, SelectivePriorCalibrator, pair_bootstrap, synthesize


def best_time(action: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of several runs: the least disturbed one."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def show_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def compare_fits(seed: int) -> list[list[str]]:
    """Fit and selection on 280 rows against the row-by-row implementation."""
    development = synthesize(seed).where(split="dev")
    rows = development.arrow.to_pylist()
    lines = []
    for name, uncertainty in (("standard, 80 settings", False), ("uncertainty-aware, 8,640 settings", True)):
        calibrator = SelectivePriorCalibrator(uncertainty=uncertainty)
        ours = best_time(lambda calibrator=calibrator: calibrator.fit(development), repeats=5)  # type: ignore[misc]
        cells = [f"fit + selection, {name}", show_seconds(ours)]
        for numeric in (True, False):
            models: list[straightforward.Model] = []
            theirs = best_time(
                lambda: models.append(straightforward.fit(rows, 0.04, uncertainty, numeric)),  # noqa: B023
                repeats=3,
            )
            check_same_choice(calibrator, models[-1])
            cells.append(f"{show_seconds(theirs)} ({theirs / ours:,.0f}×)")
        lines.append(cells)
    return lines


def check_same_choice(calibrator: SelectivePriorCalibrator, model: straightforward.Model) -> None:
    """A speed-up counts only if the result is the same."""
    settings = calibrator.settings_
    if settings is None or model.settings is None:
        raise SystemExit("a calibrator abstains; choose another seed to compare")
    if any(abs(getattr(settings, name) - value) > 1e-6 for name, value in model.settings.items()):
        raise SystemExit(f"different choices: {settings} and {model.settings}")


def large_table(rows: int) -> ScoreTable:
    """A table of any size with K = 4, made column by column."""
    generator = np.random.default_rng(0)
    prior = generator.normal(0, 1.5, (rows, 4))
    image = generator.normal(0, 1.5, (rows, 4)) + 0.8 * prior
    names = pa.array(["A", "B", "C", "D"])
    offsets = pa.array(np.arange(0, 4 * rows + 1, 4, dtype=np.int32))
    candidates = pa.ListArray.from_arrays(offsets, names.take(pa.array(np.tile(range(4), rows))))
    return ScoreTable.from_arrow(
        pa.table(
            {
                "pair_id": pa.array(np.arange(rows) // 2),
                "side": pa.array(["cf", "cs"]).take(pa.array(np.arange(rows) % 2)),
                "task": pa.repeat("mc", rows),
                "candidates": candidates,
                "image_scores": pa.ListArray.from_arrays(offsets, pa.array(image.ravel())),
                "prior_scores": pa.ListArray.from_arrays(offsets, pa.array(prior.ravel())),
                "original": names.take(pa.array(image.argmax(axis=1))),
                "answer": names.take(pa.array(generator.integers(0, 4, rows))),
            }
        )
    )


def memory(kind: str) -> int:
    """Resident size of this process in bytes: now (``VmRSS``) or at its highest (``VmHWM``); Linux only."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split(f"{kind}:")[1].split()[0])


def measure_apply(rows: int) -> None:
    """In a process of its own, so that the peak memory is that of ``predict`` alone."""
    synthetic = synthesize(0)
    table = large_table(rows)
    table.original_positions, table.answer_positions, table.image_scores, table.prior_scores  # noqa: B018  (fill the caches)
    for uncertainty in (False, True):
        calibrator = SelectivePriorCalibrator(uncertainty=uncertainty).fit(synthetic)
        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)  # give freed memory back first, or the peak would hide in it
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
        before = memory("VmRSS")
        decisions = calibrator.predict(table)
        above = memory("VmHWM") - before
        seconds = best_time(lambda: calibrator.predict(table), repeats=3)  # noqa: B023
        print(seconds, above, int(decisions.revised.sum()))


def apply_lines(rows: int = 1_000_000) -> list[list[str]]:
    command = [sys.executable, __file__, "--apply-rows", str(rows)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    lines = []
    for name, line in zip(("standard", "uncertainty-aware"), printed, strict=False):
        seconds, memory = float(line.split()[0]), int(line.split()[1])
        rate = f"{rows / seconds:,.0f} rows/s, {memory / 2**20:,.0f} MB above the table"
        lines.append([f"apply, {name}, {rows:,} rows (K = 4)", show_seconds(seconds), rate])
    return lines


def bootstrap_line() -> list[str]:
    values = np.random.default_rng(0).choice([-1.0, 0.0, 0.0, 0.0, 1.0], size=(230, 2))
    seconds = best_time(lambda: pair_bootstrap(values, resamples=10_000), repeats=10)
    return ["pair bootstrap, 10,000 resamples of 230 pairs, both sides", show_seconds(seconds), ""]


def growth_lines() -> list[list[str]]:
    """The same fit on ever more rows: the time per row must not grow."""
    lines = []
    whole = synthesize(0, repeats=1000).where(split="dev")
    for rows in (280, 2_800, 28_000, 280_000):
        table = whole.take(np.arange(rows))
        cells = [f"{rows:,}"]
        for uncertainty in (False, True):
            calibrator = SelectivePriorCalibrator(uncertainty=uncertainty)
            seconds = best_time(lambda: calibrator.fit(table), repeats=3 if rows < 10_000 else 1)  # noqa: B023
            cells += [show_seconds(seconds), f"{1e6 * seconds / rows:.1f} µs"]
        lines.append(cells)
    return lines


def report() -> str:
    machine = f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}"
    parts = [
        markdown(
            ["280 development rows", "unprior", "row by row, SciPy differentiates", "row by row, gradient by hand"],
            compare_fits(seed=2),
        ),
        markdown(["on one machine", "time", ""], [*apply_lines(), bootstrap_line()]),
        markdown(["fit on rows", "standard", "per row", "uncertainty-aware", "per row"], growth_lines()),
        f"Measured by `make bench` in one run ({machine}, {os.cpu_count()} cores). “Row by row” is "
        "`bench/straightforward.py`, an independent implementation; the benchmark stops unless both choose the same "
        "settings.",
    ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", type=Path, help="file whose marked section receives the tables")
    parser.add_argument("--apply-rows", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apply_rows:
        measure_apply(arguments.apply_rows)
        return
    text = report()
    print(text)
    if arguments.update:
        replace_section(arguments.update, "bench:core", text)


if __name__ == "__main__":
    main()
