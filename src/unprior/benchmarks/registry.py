"""Benchmarks by name. To add one: write its file, and add one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from numbers import Integral
from os import PathLike
from pathlib import Path

from unprior._files import as_path
from unprior.benchmarks.data_dir import data_directory
from unprior.benchmarks.entry import Entry, Report, Variant
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.table_columns import Given
from unprior.benchmarks.user_file import read_questions
from unprior.benchmarks.variants import constructed
from unprior.errors import UnpriorError, did_you_mean, format_option, require_type

_ENTRIES = (
    "microworld.benchmark:ENTRY",
    "microworld.benchmark:FORMS_ENTRY",
    "microworld.benchmark:PRESENCE_ENTRY",
    "microworld.benchmark:OPEN_ENTRY",
    "microworld.benchmark:OPTIONS_ENTRY",
    "cdh_bench:ENTRY",
    "hallusion_bench:ENTRY",
    "pope:ENTRY",
    "pope_v2:ENTRY",
    "visual_counterfact:ENTRY",
    "conflict_vis:ENTRY",
)


def _entry(place: str) -> Entry:
    module, _, name = place.partition(":")
    entry: Entry = getattr(import_module(f"unprior.benchmarks.{module}"), name)
    return entry


BENCHMARKS: dict[str, Entry] = {entry.card.name: entry for entry in map(_entry, _ENTRIES)}
MAX_SEED = 999
"""Of the seeds of a drawn benchmark, from 0."""
STANDARD = "standard"
"""The name of a benchmark's own questions among its variants."""


def find_entry(name: str) -> Entry:
    """The entry of a name.

    >>> find_entry("cdh-bench").card.counts["pairs"]
    300
    """
    if name not in BENCHMARKS:
        like = did_you_mean(name, BENCHMARKS)
        raise UnpriorError(f"{name}: no such benchmark{like}; known are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]


def load_benchmark(
    name: str | PathLike[str],
    folder: str | PathLike[str] | None = None,
    seed: int = 0,
    *,
    variant: str | None = None,
    columns: Given = (),
    data_dir: str | PathLike[str] | None = None,
    report: Report | None = None,
) -> Benchmark:
    """A benchmark by its name, or questions of one's own by their path.

    Parameters
    ----------
    name
        A name of ``BENCHMARKS``, or a path: a file of questions (JSON lines), a table of questions (VLMEvalKit's TSV
        files, Parquet), or a folder with Parquet or Arrow files of Hugging Face's datasets.
    folder
        Where images of a drawn benchmark go; by default in the data directory.
    seed
        Which world to draw; other benchmarks have none.
    variant
        Other questions made from the benchmark's own, such as ``order-3210`` or ``forms``.
    columns
        Of a table: columns by what they hold, such as ``{"question": "text", "options": ["A", "B"]}``, where they are
        not called as ``unprior.benchmarks.table_columns.FIELDS`` expects.
    data_dir
        The folder for downloaded benchmarks, and for images that tables hold; see
        :func:`unprior.benchmarks.data_dir.data_directory`.
    report
        Told how far the preparation is.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed <= MAX_SEED:
        raise UnpriorError(f"{format_option('seed', seed)}: give a whole number from 0 to {MAX_SEED}")
    require_type("name", name, (str, PathLike), "the name of a benchmark, or the path of a file of questions")
    require_type("columns", columns, (Mapping, list, tuple), "columns by what they hold, or texts FIELD=COLUMN")
    name, data_dir = str(name), None if data_dir is None else as_path("data_dir", data_dir)
    if variant == STANDARD:
        variant = None
    if f"{name}-{variant}" in BENCHMARKS:  # a variant that needs more than the questions is a benchmark of its own
        name, variant = f"{name}-{variant}", None
    entry = BENCHMARKS.get(name)
    if entry is None and not _exists(Path(name)):
        like, known = did_you_mean(name, BENCHMARKS), ", ".join(BENCHMARKS)
        raise UnpriorError(
            f"{name}: no such file of questions, and no benchmark of that name{like}; benchmarks are {known}"
        )
    change = None if variant is None else _variant(name, entry, variant)
    if seed and (entry is None or not entry.drawn):
        kind = "a file of questions" if entry is None else "not drawn"
        raise UnpriorError(f"{format_option('seed', seed)}: only a drawn benchmark has seeds, {name} is {kind}")
    if entry is None:
        benchmark = read_own(Path(name), columns, data_dir)
    elif columns:
        raise UnpriorError(f"{format_option('column')}: {name} has no columns to name; give it alone")
    else:
        own = data_directory(data_dir) / _folder(name, entry, seed)
        place = as_path("folder", folder) if entry.drawn and folder is not None else own
        benchmark = entry.load(place, seed, report=report)
    if change is None:
        return benchmark
    return replace(change.make(benchmark), name=f"{benchmark.name}-{variant}")


def read_own(path: Path, columns: Given = (), data_dir: Path | None = None) -> Benchmark:
    """Questions of one's own: JSON lines, or a table."""
    from unprior.benchmarks.table_file import read_table
    from unprior.benchmarks.table_rows import is_table

    if is_table(path):
        return read_table(path, columns, data=data_directory(data_dir))
    if path.is_dir():
        raise UnpriorError(
            f"{path}: this is a folder without Parquet files; give the name of a benchmark, and its parent folder by "
            f"{format_option('data_dir')}, or give a file of questions"
        )
    if columns:
        raise UnpriorError(
            f"{format_option('column')} is for tables (.tsv, .parquet), {path} is read as JSON lines; name its fields "
            f"as docs/how-to/your-data.md says"
        )
    return read_questions(path)


def _folder(name: str, entry: Entry, seed: int) -> str:
    """Where a benchmark lies in the data directory; the variants of a drawn world show the same images."""
    if not entry.drawn:
        return name
    family = name.partition("-")[0]
    return f"{family}-seed-{seed}" if seed else family


def variants_of(entry: Entry | None) -> dict[str, Variant]:
    """What can be made of a benchmark's questions; a file of questions has the constructed tests."""
    return dict(constructed() if entry is None else entry.variants)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _variant(name: str, entry: Entry | None, variant: str) -> Variant:
    known = variants_of(entry)
    if variant not in known:
        own = [other.removeprefix(f"{name}-") for other in BENCHMARKS if other.startswith(f"{name}-")]
        names = dict.fromkeys([STANDARD, *own, *known])
        like = did_you_mean(variant, names)
        raise UnpriorError(
            f"{format_option('variant', variant)}: {name} has no such variant{like}; choose from {', '.join(names)}"
        )
    return known[variant]
