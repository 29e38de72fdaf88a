"""Every study over the scores of one model: how long each takes, and the whole command with its files and page."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from markdown import markdown, replace_section
from unprior import synthesize
from unprior.calibration import SelectivePriorCalibrator
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES

SLOWEST = 5
FITS = 40


def main() -> None:
    """Prepare a run where none is given, time everything, print the table, and put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a prepared run folder; by default one of the embedded model is made")
    parser.add_argument("--update", type=Path, help="page to put the table into")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = arguments.run or _prepared(Path(folder) / "run")
        text = _measure(run, Path(folder) / "study")
    print(text)
    if arguments.update:
        replace_section(arguments.update, "bench:studies", text)


def _prepared(run: Path) -> Path:
    start = time.perf_counter()
    _unprior("run", "--out", run)
    _unprior("study", "all", "--run", run, "--out", run / "first", "--prepare")
    print(f"preparing took {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return run


def _measure(run: Path, out: Path) -> str:
    inputs = StudyInputs.from_run(run)
    seconds: dict[str, float] = {}
    with _counted_fits() as fits:
        for name, study in STUDIES.items():
            if study.missing(inputs):
                raise SystemExit(f"{name} lacks {', '.join(study.missing(inputs))}")
            start = time.perf_counter()
            study.run(inputs)
            seconds[name] = time.perf_counter() - start
    start = time.perf_counter()
    _unprior("study", "all", "--run", run, "--out", out)
    whole = time.perf_counter() - start
    alone, together = _fits_in_one_process(), _fits_in_two_processes()
    slowest = sorted(seconds, key=seconds.__getitem__, reverse=True)[:SLOWEST]
    rest = sum(value for name, value in seconds.items() if name not in slowest)
    lines = [[f"`{name}`", f"{seconds[name]:.2f} s"] for name in slowest]
    lines += [
        [f"the other {len(seconds) - SLOWEST}", f"{rest:.2f} s"],
        ["all analyses", f"{sum(seconds.values()):.1f} s"],
        ["`unprior study all` with tables, figures, LaTeX and page", f"{whole:.1f} s"],
        [f"{FITS} fits in one process", f"{alone:.2f} s"],
        [f"{FITS} fits in two processes, with their start", f"{together:.2f} s"],
    ]
    title = f"{len(seconds)} studies over existing scores, {fits[0]} fits of SPC and its controls"
    measured = f"1,200 examples of the embedded model and their variants, {os.cpu_count()} cores"
    return f"{markdown([title, 'time'], lines)}\n\nMeasured by `make bench-studies` in one run: {measured}."


def _fits_in_one_process() -> float:
    start = time.perf_counter()
    for seed in range(FITS):
        _fit(seed)
    return time.perf_counter() - start


def _fits_in_two_processes() -> float:
    start = time.perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_fit, range(FITS)))
    return time.perf_counter() - start


def _fit(seed: int) -> float:
    return SelectivePriorCalibrator(uncertainty=True).fit(synthesize(seed=seed)).loss_


@contextmanager
def _counted_fits() -> Iterator[list[int]]:
    """Count every fit of a calibrator while the context lasts."""
    count, plain = [0], SelectivePriorCalibrator.fit

    def counted(self: SelectivePriorCalibrator, *arguments: object, **options: object) -> SelectivePriorCalibrator:
        count[0] += 1
        return plain(self, *arguments, **options)  # type: ignore[arg-type]

    SelectivePriorCalibrator.fit = counted  # type: ignore[method-assign, assignment]
    try:
        yield count
    finally:
        SelectivePriorCalibrator.fit = plain  # type: ignore[method-assign]


def _unprior(*arguments: object) -> None:
    command = [Path(sys.executable).parent / "unprior", *arguments]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, env=os.environ)


if __name__ == "__main__":
    main()
