"""Options and words about benchmarks that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import errors, warn
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

MAX_SIDE = 8192
"""Larger squares take gigabytes for every image."""

BenchmarkName = Annotated[
    str, typer.Option("--benchmark", help="A benchmark of `unprior data list`, or a file of questions (JSON lines).")
]
WorldSeed = Annotated[int, typer.Option("--seed", help="Which world to draw, for a drawn benchmark.", min=0, max=999)]
VariantName = Annotated[
    str | None,
    typer.Option("--variant", help="Other questions about the same images; `unprior data show` lists them."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", help="Folder that holds downloaded benchmarks; by default UNPRIOR_DATA or the platform's cache."
    ),
]
Resize = Annotated[
    int | None,
    typer.Option(
        help="Bring images to this square size first, e.g. 512; 0 leaves them as they are. By default as in the paper.",
        min=0,
        max=MAX_SIDE,
    ),
]
_NAMED_IMAGES = 10


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
        yield lambda done, total: status.update(f"Drawing pictures: {done:,} of {total:,} …")


def report_missing_images(benchmark: Benchmark) -> None:
    """Name the images that are not there, before a model is loaded; without any image there is nothing to do."""
    missing, total = benchmark.missing_images(), len(benchmark.images())
    if not missing:
        return
    names = "".join(f"\n  {path}" for path in missing[:_NAMED_IMAGES])
    more = f"\n  … and {len(missing) - _NAMED_IMAGES:,} more" if len(missing) > _NAMED_IMAGES else ""
    whole = f"{len(missing):,} of {total:,} images of {benchmark.name} are missing:{names}{more}"
    by_hand = f" It needs {benchmark.card.by_hand}." if benchmark.card and benchmark.card.by_hand else ""
    if len(missing) == total:
        raise UnpriorError(f"{whole}\nPut them there and try again.{by_hand}")
    warn(f"{whole}\nTheir examples will have no scores.{by_hand}")


def image_side(benchmark: Benchmark, model_type: str | None, resize: int | None) -> int | None:
    """The square size of images: as asked for, else as in the paper, which is said."""
    if resize is not None:
        return resize or None
    side = None if benchmark.card is None else benchmark.card.image_side(model_type)
    if side is not None:
        errors.print(
            f"Images of {benchmark.name} are brought to {side}×{side} for {model_type}, as in the paper; "
            f"--resize chooses another size, --resize 0 leaves them.",
            soft_wrap=True,
        )
    return side
