"""Benchmarks by name. To add one: write its file, and add one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.user_file import read_questions
from unprior.errors import UnpriorError

Report = Callable[[int, int], None]
"""Told how much of a preparation is done, of how much."""


class Load(Protocol):
    """Makes a benchmark ready: ``folder`` is where its files are or go."""

    def __call__(self, folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
        """Return the benchmark's questions."""
        ...


@dataclass(frozen=True)
class Entry:
    """A benchmark that has a name."""

    load: Load
    about: str


BENCHMARKS: dict[str, Entry] = {
    "microworld": Entry(microworld, "300 drawn pairs in 14 subcategories, one choice and one yes/no question each"),
    "microworld-forms": Entry(
        partial(microworld, variant="forms"), "the same pairs, four question forms in both claim orders"
    ),
    "microworld-presence": Entry(
        partial(microworld, variant="presence"), "the same pictures, presence questions without a prior conflict"
    ),
}


def load_benchmark(name: str, folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """A benchmark by its name, or a file of questions by its path.

    Parameters
    ----------
    name
        A name of ``BENCHMARKS``, or the path of a file of questions.
    folder
        Where pictures of a drawn benchmark go.
    seed
        Which world to draw; other benchmarks have none.
    report
        Told how far the preparation is.
    """
    if name in BENCHMARKS:
        return BENCHMARKS[name].load(folder, seed, report=report)
    if not Path(name).exists():
        known = ", ".join(BENCHMARKS)
        raise UnpriorError(f"{name}: no such file of questions, and no benchmark of that name; benchmarks are {known}")
    if seed:
        raise UnpriorError(f"--seed {seed}: only a drawn benchmark has seeds, {name} is a file of questions")
    return read_questions(Path(name))
