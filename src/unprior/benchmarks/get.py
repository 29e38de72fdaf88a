"""Getting a benchmark: downloaded or drawn, with its questions in a file beside it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from unprior._files import as_path
from unprior.benchmarks.data_dir import data_directory
from unprior.benchmarks.download import download
from unprior.benchmarks.registry import find_entry, load_benchmark
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.user_file import write_questions
from unprior.errors import UnpriorError, format_option, warn

QUESTIONS = "questions.jsonl"


def get_benchmark(
    name: str,
    out: str | PathLike[str] | None = None,
    seed: int = 0,
    *,
    data_dir: str | PathLike[str] | None = None,
    report: Callable[..., Any] | None = None,
) -> tuple[Benchmark, Path]:
    """Download a benchmark, or draw it, and write its questions; gives both, the questions as the path of their file.

    Parameters
    ----------
    name
        A name of ``unprior.benchmarks.registry.BENCHMARKS``.
    out
        Folder for its files; by default one of its name in the data directory.
    seed
        Which world to draw; other benchmarks have none.
    data_dir
        The data directory, see :func:`unprior.benchmarks.data_dir.data_directory`.
    report
        Told how many images are drawn, of how many; of a download, how far it is (``Fetched``).
    """
    entry = find_entry(name)
    if out is None:
        folder = data_directory(None if data_dir is None else as_path("data_dir", data_dir)) / name
    else:
        folder = data_directory(as_path("out", out))
    if entry.drawn:
        benchmark = load_benchmark(name, folder, seed, report=report)
    elif seed:
        raise UnpriorError(f"{format_option('seed', seed)}: only a drawn benchmark has seeds, {name} is not drawn")
    else:
        if entry.card.by_hand:
            warn(f"{name} also needs {entry.card.by_hand} ({folder})")
        download(entry, folder, report)
        benchmark = entry.load(folder)
    write_questions(folder / QUESTIONS, benchmark)
    return benchmark, folder / QUESTIONS
