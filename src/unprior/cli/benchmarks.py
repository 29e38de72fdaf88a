"""Options and words about benchmarks that commands without a configuration share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unprior.cli.console import errors
from unprior.cli.options import option

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

WorldSeed = Annotated[int, option("seed")]
VariantName = Annotated[str | None, option("variant")]
DataDir = Annotated[Path | None, option("data_dir")]


def prepare(
    benchmark: str, folder: Path, seed: int, variant: str | None = None, data_dir: Path | None = None
) -> Benchmark:
    """Load a benchmark; a drawn one is drawn into the folder, with progress."""
    from unprior.benchmarks.registry import load_benchmark

    with _drawing() as report:
        return load_benchmark(benchmark, folder, seed, variant=variant, data_dir=data_dir, report=report)


def look_up(benchmark: str, seed: int, variant: str | None, data_dir: Path | None) -> Benchmark:
    """Load a benchmark from the data directory, to read or look at."""
    from unprior.benchmarks.registry import load_benchmark

    with _drawing() as report:
        return load_benchmark(benchmark, None, seed, variant=variant, data_dir=data_dir, report=report)


@contextmanager
def _drawing() -> Iterator[Callable[[int, int], None]]:
    with errors.status("Preparing the benchmark …") as status:
        yield lambda done, total: status.update(f"Drawing images: {done:,} of {total:,} …")
