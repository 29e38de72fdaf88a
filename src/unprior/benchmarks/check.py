"""Whether a benchmark on disk is what was published: every file and every count."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from unprior._files import as_path, exists, is_file
from unprior.benchmarks.data_dir import data_directory
from unprior.benchmarks.download import read_manifest
from unprior.benchmarks.entry import Entry
from unprior.benchmarks.hub_rows import UNPACKED, unpacking_into
from unprior.benchmarks.pairs import check_questions
from unprior.benchmarks.registry import BENCHMARKS, find_entry, read_own
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.table_columns import Given
from unprior.errors import UnpriorError, format_option
from unprior.images import ImageError, open_image
from unprior.scores.pairs import PairCheck


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

    @cached_property
    def pairs(self) -> PairCheck:
        """Whether every pair has its two sides, the same options and one split."""
        return check_questions(self.benchmark)

    @property
    def sound(self) -> bool:
        """Whether everything is there, readable, as published, and every pair is sound."""
        counts = all(count.published == count.found for count in self.counts)
        return counts and not (self.missing or self.unreadable or self.changed or self.pairs.problems)

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "sound": self.sound,
            "counts": {count.name: {"published": count.published, "found": count.found} for count in self.counts},
            "missing": [str(image) for image in self.missing],
            "unreadable": list(self.unreadable),
            "changed": list(self.changed),
            "pairs": [str(problem) for problem in self.pairs.problems],
            "flaws": [] if self.benchmark.card is None else self.benchmark.card.record()["flaws"],
        }


def check_benchmark(
    name: str,
    folder: str | PathLike[str] | None = None,
    *,
    columns: Given = (),
    data_dir: str | PathLike[str] | None = None,
    report: Callable[[int, int], None] | None = None,
) -> CheckResult:
    """Check a benchmark by its name, in a folder or in the data directory, or questions of one's own by their path."""
    entry = None if name not in BENCHMARKS and exists(Path(name)) else find_entry(name)
    if folder is not None and data_dir is not None:
        raise UnpriorError(f"{folder} and {format_option('data_dir', data_dir)}: give one of them")
    directory = None if data_dir is None else as_path("data_dir", data_dir)
    if entry is None:
        if folder is not None:
            raise UnpriorError(f"{name} is a file of questions, which knows where its images are; give it alone")
        return check_own(read_own(Path(name), columns, directory), report)
    if columns:
        raise UnpriorError(f"{format_option('column')}: {name} has no columns to name; give it alone")
    place = data_directory(directory) / name if folder is None else as_path("folder", folder)
    if not place.is_dir():
        problem = "this is a file; give the folder" if place.is_file() else "no such folder; give the one"
        raise UnpriorError(f"{place}: {problem} that holds the files of {name}")
    return check_folder(entry, place, report)


def check_folder(entry: Entry, folder: Path, report: Callable[[int, int], None] | None = None) -> CheckResult:
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


def check_own(benchmark: Benchmark, report: Callable[[int, int], None] | None = None) -> CheckResult:
    """Check questions of one's own, whose rows were checked as they were read: their images and their pairs."""
    missing = benchmark.missing_images()
    unreadable = _unreadable({image: image for image in benchmark.images() if image not in set(missing)}, report)
    return CheckResult(benchmark, (), tuple(missing), tuple(unreadable), ())


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
    unreadable = _unreadable({image: copy for image, copy in opened.items() if is_file(copy)}, report)
    changed = [
        file.path
        for file in read_manifest(folder)
        if not is_file(folder / file.path) or not file.matches(folder / file.path)
    ]
    return CheckResult(benchmark, counts, tuple(missing), tuple(unreadable), tuple(changed))


def _unreadable(opened: Mapping[Path, Path], report: Callable[[int, int], None] | None) -> list[str]:
    """Why images cannot be opened; ``opened`` says where each one lies now."""
    unreadable = []
    for done, (image, copy) in enumerate(opened.items(), start=1):
        try:
            open_image(copy)
        except ImageError as error:
            unreadable.append(str(error).replace(str(copy), str(image)))
        if report:
            report(done, len(opened))
    return unreadable


def _belongs(image: Path, temporary: Path, place: Path) -> Path:
    return place / image.relative_to(temporary) if image.is_relative_to(temporary) else image
