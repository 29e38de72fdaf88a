"""What the registry knows of a benchmark: its card, how to load and download it, which variants it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from unprior.benchmarks.card import Card
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.sources import Source

Report = Callable[[int, int], None]
"""Told how much of a preparation is done, of how much."""


class Load(Protocol):
    """Makes a benchmark ready: ``folder`` is where its files are or go."""

    def __call__(self, folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
        """Return the benchmark's questions."""
        ...


@dataclass(frozen=True)
class Variant:
    """Other questions about the same images, made from the benchmark's own."""

    about: str
    make: Callable[[Benchmark], Benchmark]


@dataclass(frozen=True)
class Entry:
    """A benchmark that has a name."""

    card: Card
    load: Load
    variants: Mapping[str, Variant] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    """Where its files are downloaded from, in this order."""
    drawn: bool = False
    """Whether loading draws the images, from a seed, instead of reading files."""
