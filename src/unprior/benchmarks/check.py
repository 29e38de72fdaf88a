"""Is a benchmark on disk what was published? Every file, every count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unprior.benchmarks.download import read_manifest
from unprior.benchmarks.entry import Entry
from unprior.benchmarks.schema import Benchmark
from unprior.engines.images import ImageError, open_image


@dataclass(frozen=True, slots=True)
class Count:
    """A number as published and as found."""

    name: str
    published: int
    found: int


@dataclass(frozen=True)
class CheckResult:
    """What a check found."""

    benchmark: Benchmark
    counts: tuple[Count, ...]
    missing: tuple[Path, ...]
    """Images that are not there."""
    unreadable: tuple[str, ...]
    """Images that cannot be opened, each with the reason."""
    changed: tuple[str, ...]
    """Downloaded files that are gone or no longer have their checksum."""

    @property
    def sound(self) -> bool:
        """Whether everything is there, readable, and as published."""
        counts = all(count.published == count.found for count in self.counts)
        return counts and not (self.missing or self.unreadable or self.changed)


def check_benchmark(entry: Entry, folder: Path, report: Callable[[int, int], None] | None = None) -> CheckResult:
    """Load a benchmark from a folder, open every image, and compare with what was published."""
    benchmark = entry.load(folder, report=report)
    found = benchmark.counts()
    counts = tuple(Count(name, number, found.get(name, 0)) for name, number in entry.card.counts.items())
    missing = benchmark.missing_images()
    absent = set(missing)
    there = [image for image in benchmark.images() if image not in absent]
    unreadable = []
    for done, image in enumerate(there, start=1):
        try:
            open_image(image)
        except ImageError as error:
            unreadable.append(str(error))
        if report:
            report(done, len(there))
    changed = [
        file.path
        for file in read_manifest(folder)
        if not (folder / file.path).is_file() or not file.matches(folder / file.path)
    ]
    return CheckResult(benchmark, counts, tuple(missing), tuple(unreadable), tuple(changed))
