"""Is a benchmark on disk what was published? Every file, every count."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from unprior._files import is_file
from unprior.benchmarks.download import read_manifest
from unprior.benchmarks.entry import Entry
from unprior.benchmarks.hub_rows import UNPACKED, unpacking_into
from unprior.benchmarks.schema import Benchmark
from unprior.engines.images import ImageError, open_image
from unprior.errors import UnpriorError


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
    """Load a benchmark from a folder, open every image, and compare with what was published; nothing is written there.

    Images that a dataset holds packed, and have not been unpacked yet, are opened in a temporary folder.
    """
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        if entry.drawn:
            benchmark, place = entry.load(temporary, report=report), folder
        else:
            with unpacking_into(temporary):
                benchmark, place = entry.load(folder, report=report), folder / UNPACKED
        return _checked(entry, folder, benchmark, (temporary, place), report)


def presence(entry: Entry, folder: Path) -> str:
    """Whether a benchmark is in a folder, in a word or two: its questions, and its images."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return "no"
    if any(folder.rglob("*.parquet")):  # these hold the images, too
        return "yes"
    try:
        benchmark = entry.load(folder)
    except UnpriorError:
        return "not whole"
    missing, total = len(benchmark.missing_images()), len(benchmark.images())
    if missing == total:
        return "questions only, no image"
    return f"{missing:,} of {total:,} images missing" if missing else "yes"


def _checked(
    entry: Entry,
    folder: Path,
    benchmark: Benchmark,
    moved: tuple[Path, Path],
    report: Callable[[int, int], None] | None,
) -> CheckResult:
    """Compare with what was published; ``moved`` are the temporary folder and the one its images belong to."""
    copies = {_belongs(image, *moved): image for image in benchmark.images()}
    benchmark = benchmark.with_examples([replace(each, image=_belongs(each.image, *moved)) for each in benchmark])
    if entry.drawn:
        copies = {}
    opened = {image: image if is_file(image) else copies.get(image, image) for image in benchmark.images()}
    missing = [image for image, copy in opened.items() if not is_file(copy)]
    found = benchmark.counts()
    found["images"] -= len(missing)  # those that are named but not there do not count
    counts = tuple(Count(name, number, found.get(name, 0)) for name, number in entry.card.counts.items())
    there = [image for image, copy in opened.items() if is_file(copy)]
    unreadable = []
    for done, image in enumerate(there, start=1):
        try:
            open_image(opened[image])
        except ImageError as error:
            unreadable.append(str(error).replace(str(opened[image]), str(image)))
        if report:
            report(done, len(there))
    changed = [
        file.path
        for file in read_manifest(folder)
        if not is_file(folder / file.path) or not file.matches(folder / file.path)
    ]
    return CheckResult(benchmark, counts, tuple(missing), tuple(unreadable), tuple(changed))


def _belongs(image: Path, temporary: Path, place: Path) -> Path:
    return place / image.relative_to(temporary) if image.is_relative_to(temporary) else image
