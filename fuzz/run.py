"""The driver: runs cases of every target, prints what was tried and found, keeps what failed.

``python -m fuzz.run`` runs for ten minutes with a random seed; a failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.case import NOTES
from fuzz.pool import DEADLINE, MAX_MEMORY, Outcome, Verdict, run_cases

TARGETS = {
    "tables": "fuzz.tables:make",
    "calibrators": "fuzz.calibrators:make",
    "images": "fuzz.images:make",
    "replies": "fuzz.replies:make",
    "listings": "fuzz.listings:make",
    "models": "fuzz.models:make",
    "questions": "fuzz.questions:make",
    "stores": "fuzz.stores:make",
}
"""What is hunted in, and what prepares it."""
SHARE = {
    "tables": 60,
    "calibrators": 150,
    "images": 300,
    "replies": 40,
    "listings": 50,
    "models": 12,
    "questions": 60,
    "stores": 80,
}
"""Cases of the share that is part of `make test`: some seconds each on an idle machine."""
KEPT = Path("fuzz-failures")
_KEPT_PER_FAULT = 3
_REPORT_EVERY = 10.0


@dataclass
class Tally:
    """What came of the cases of one target."""

    target: str
    seed: int
    cases: int = 0
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    memory: int = 0
    faults: dict[tuple[Verdict, str], list[Outcome]] = field(default_factory=dict)
    """Failures by kind and place."""

    @property
    def failed(self) -> int:
        """Number of cases that failed."""
        return sum(map(len, self.faults.values()))

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.cases += 1
        self.accepted += outcome.verdict is Verdict.ACCEPTED
        self.refused += outcome.verdict is Verdict.REFUSED
        self.slowest, self.memory = max(self.slowest, outcome.seconds), max(self.memory, outcome.memory)
        if outcome.verdict.failed:
            self.faults.setdefault((outcome.verdict, outcome.place), []).append(outcome)

    def command(self, index: int) -> str:
        """How to run one case again."""
        return f"make fuzz ONLY={self.target} SEED={self.seed} CASE={index}"


def hunt(
    target: str, seed: int, *, cases: int | None = None, first: int = 0, seconds: float | None = None, workers: int = 1,
    deadline: float = DEADLINE, max_memory: int = MAX_MEMORY, factory: str | None = None, keep: Path | None = None,
    verbose: bool = False,
) -> Tally:  # fmt: skip
    """Run so many cases of one target, or as many as begin in so many seconds."""
    tally = Tally(target, seed)
    until = None if seconds is None else time.monotonic() + seconds
    reported = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unprior-fuzz-") as name:
        outcomes = run_cases(
            target, factory or TARGETS[target], seed, _indices(first, cases, until), folder=Path(name), workers=workers,
            deadline=deadline, max_memory=max_memory,
        )  # fmt: skip
        for outcome, folder in outcomes:
            tally.add(outcome)
            if outcome.verdict.failed:
                _keep(tally, outcome, folder, keep)
                if verbose and len(tally.faults[outcome.verdict, outcome.place]) == 1:
                    print(_first_words(tally, outcome), flush=True)
            if verbose and time.monotonic() - reported > _REPORT_EVERY:
                reported = time.monotonic()
                print(f"{target}: {tally.cases:,} cases, {tally.failed:,} failed", flush=True)
    return tally


def _indices(first: int, cases: int | None, until: float | None) -> Iterator[int]:
    for index in itertools.count(first) if cases is None else range(first, first + cases):
        if until is not None and time.monotonic() > until:
            return
        yield index


def _keep(tally: Tally, outcome: Outcome, folder: Path, kept: Path | None) -> None:
    """Put the files of a failure aside, with what happened and how to repeat it."""
    if kept is None or len(tally.faults[outcome.verdict, outcome.place]) > _KEPT_PER_FAULT:
        return
    target = kept / f"{tally.target}-{tally.seed}-{outcome.index}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, symlinks=True, ignore=_only_files)
    with (target / NOTES).open("a", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(f"\n{outcome.verdict} {outcome.place}\n{outcome.detail}\n{tally.command(outcome.index)}\n")


def _only_files(folder: str, names: list[str]) -> list[str]:
    """Pipes and devices cannot be copied."""
    paths = [Path(folder) / name for name in names]
    return [path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _first_words(tally: Tally, outcome: Outcome) -> str:
    lines = outcome.detail.strip().splitlines() or [""]
    shown = lines[-1] if outcome.verdict is Verdict.RAISED else lines[0]
    return f"  {outcome.verdict} {outcome.place}: {shown[:300]}\n    again: {tally.command(outcome.index)}"


def summary(tallies: Sequence[Tally]) -> str:
    """The final table, and every distinct fault with the command that repeats its first case."""
    names = ("target", "cases", "accepted", "refused", "failed", "slowest", "memory")
    rows = [
        (
            tally.target, f"{tally.cases:,}", f"{tally.accepted:,}", f"{tally.refused:,}", f"{tally.failed:,}",
            f"{tally.slowest:.1f} s", f"{tally.memory / (1 << 20):,.0f} MB",
        )
        for tally in tallies
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in (names, *rows)) for column in range(len(names))]
    lines = [
        "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (names, *rows)
    ]
    for tally in tallies:
        for (verdict, place), found in tally.faults.items():
            lines.append(f"{tally.target}: {verdict} {place} ({len(found)} cases)")
            lines.append(_first_words(tally, found[0]))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Hunt in all targets; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all targets together")
    parser.add_argument("--seed", type=int, help="by default drawn by lot")
    parser.add_argument("--only", action="append", choices=list(TARGETS), help="this target; may be repeated")
    parser.add_argument("--cases", type=int, help="so many cases of every target, whatever the time")
    parser.add_argument("--case", type=int, help="only the case of this number, with all it says")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    chosen = parser.parse_args(arguments)
    seed = int.from_bytes(os.urandom(4)) if chosen.seed is None else chosen.seed
    targets = chosen.only or list(TARGETS)
    print(f"seed {seed}", flush=True)
    began, tallies = time.monotonic(), list[Tally]()
    for place, target in enumerate(targets):
        left = 60 * chosen.minutes - (time.monotonic() - began)
        one = chosen.case is not None
        tally = hunt(
            target, seed, first=chosen.case or 0, cases=1 if one else chosen.cases,
            seconds=None if one or chosen.cases else max(left, 0) / (len(targets) - place),
            workers=1 if one else chosen.workers, keep=KEPT, verbose=True,
        )  # fmt: skip
        tallies.append(tally)
        print(f"{target}: {tally.cases:,} cases, {tally.failed:,} failed", flush=True)
        if one:
            print(*(outcome.detail for found in tally.faults.values() for outcome in found), sep="\n")
    print(summary(tallies))
    failed = any(tally.failed for tally in tallies)
    if failed:
        print(f"what failed is kept in {KEPT}/")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
