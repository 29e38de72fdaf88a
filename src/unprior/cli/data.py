"""Benchmarks on disk: what there is, how to get it, whether it is whole, and what it looks like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import AsJson, counting, flag, output, print_json, warn
from unprior.cli.data_display import download_progress, print_card, print_check
from unprior.cli.lazy import Function, GroupedCommand, application, epilog, examples, help_text
from unprior.cli.options import option
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

app = application(help="Benchmarks: what there is, how to get it, and a look at it.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A benchmark of `unprior data list`.")]
WorldSeed = Annotated[int, option("seed")]
VariantName = Annotated[str | None, option("variant")]
ColumnNames = Annotated[list[str] | None, option("column")]
DataDir = Annotated[Path | None, option("data_dir")]


def look_up(
    benchmark: str,
    seed: int,
    variant: str | None = None,
    data_dir: Path | None = None,
    columns: Sequence[str] | None = None,
) -> Benchmark:
    """Load a benchmark from the data directory; a drawn one is drawn there, with progress."""
    from unprior.benchmarks.registry import load_benchmark

    with counting("Preparing the benchmark", "Drawing images") as report:
        return load_benchmark(
            benchmark, seed=seed, variant=variant, columns=columns or (), data_dir=data_dir, report=report
        )


def _command(name: str) -> Callable[[Function], Function]:
    """Register a command with its examples."""
    return lambda function: app.command(name, cls=GroupedCommand, help=help_text(function), epilog=epilog(function))(
        function
    )


@_command("list")
@examples("unprior data list", "unprior data list --data-dir /data/benchmarks --json")
def list_benchmarks(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the benchmarks that have a name, and which of them are on this machine."""
    from unprior.benchmarks.check import presence
    from unprior.benchmarks.data_dir import data_directory
    from unprior.benchmarks.registry import BENCHMARKS
    from unprior.tables.terminal import plain_table

    folder = data_directory(data_dir)
    here = {name: "drawn" if entry.drawn else presence(entry, folder / name) for name, entry in BENCHMARKS.items()}
    if as_json:
        print_json({name: {"about": entry.card.about, "here": here[name]} for name, entry in BENCHMARKS.items()})
        return
    table = plain_table(None, ("Name", "What it is", "Here"), unbroken=("Name", "Here"))
    for name, entry in BENCHMARKS.items():
        table.add_row(name, entry.card.about, here[name])
    table.caption = f"Downloaded benchmarks are in {folder}"
    output.print(table)


@_command("show")
@examples("unprior data show cdh-bench", "unprior data show cdh-bench --variant qa-relabelled")
def show(
    name: Name, variant: VariantName = None, seed: WorldSeed = 0, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Tell all about a benchmark: source, licence, counts, split, variants, a sample, and its known flaws."""
    from unprior.benchmarks.registry import find_entry, variants_of

    entry = find_entry(name)
    variants = {key: each.about for key, each in variants_of(entry).items()}
    benchmark, absent = None, None
    try:
        benchmark = look_up(name, seed, variant, data_dir)
    except UnpriorError as error:
        if variant is not None and variant not in variants:
            raise
        absent = str(error)
    if as_json:
        found = None if benchmark is None else benchmark.counts()
        print_json(entry.card.record() | {"found": found, "variants": variants, "absent": absent})
        return
    print_card(entry, benchmark, variants)
    if absent:
        warn(absent)


@_command("get")
@examples("unprior data get cdh-bench", "unprior data get microworld --seed 3 --out worlds/")
def get(
    name: Name,
    out: Annotated[
        Path | None, flag("Output", "Folder for its files; by default one of its name in the data directory.")
    ] = None,
    seed: WorldSeed = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Download a benchmark (or draw it), and write its questions beside it (questions.jsonl).

    Files that are there and whole stay; a download that broke goes on where it was.
    """
    from unprior.benchmarks.get import get_benchmark
    from unprior.benchmarks.registry import find_entry

    drawn = find_entry(name).drawn
    with counting("Preparing the benchmark", "Drawing images") if drawn else download_progress() as report:
        benchmark, questions = get_benchmark(name, out, seed, data_dir=data_dir, report=report)
    images, missing = len(benchmark.images()), len(benchmark.missing_images())
    if as_json:
        print_json(
            {"benchmark": benchmark.name, "examples": len(benchmark), "images": images, "missing": missing,
             "out": str(questions)}
        )  # fmt: skip
        return
    output.print(f"{len(benchmark):,} questions about {images:,} images → {questions}", soft_wrap=True)
    if missing:
        check = f"`unprior data check {name} {questions.parent}`"
        warn(f"{missing:,} of {images:,} images are still missing; {check} names them")
        return
    first = benchmark.examples[0]
    options = "" if first.texts is None else f" --options {'|'.join(first.texts)!r}"
    options = " --open" if first.is_open else options
    output.print(f"Try: unprior ask {first.image} {first.question!r}{options}", soft_wrap=True)


@_command("check")
@examples("unprior data check cdh-bench", "unprior data check POPE.tsv --column id=index")
def check(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A benchmark of `unprior data list`, or a file or table of questions."),
    ],
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="The folder that holds its files; by default in the data directory."),
    ] = None,
    column: ColumnNames = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Check that every file is there and readable, that counts are those published, and that pairs are sound.

    A file or table of questions is checked, too: its rows, images and pairs.
    """
    from unprior.benchmarks.check import check_benchmark

    with counting("Opening every image", "Opening images") as report:
        result = check_benchmark(name, path, columns=column or (), data_dir=data_dir, report=report)
    if as_json:
        print_json(result.record())
    else:
        print_check(result)
    if not result.sound:
        raise typer.Exit(1)


@_command("gallery")
@examples("unprior data gallery microworld", "unprior data gallery questions.jsonl --out pairs.html --limit 20")
def gallery(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A benchmark, or a file or table of questions.")],
    out: Annotated[Path, flag("Output", "The page to write.")] = Path("gallery.html"),
    limit: Annotated[int | None, flag("Output", "Only the first pairs.", min=1)] = None,
    variant: VariantName = None,
    column: ColumnNames = None,
    seed: WorldSeed = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a page that shows every pair side by side, with its questions, options and both labels."""
    from unprior._files import check_output_file
    from unprior.report.browse import write_gallery

    check_output_file(out)
    benchmark = look_up(name, seed, variant, data_dir, column)
    with counting("Making thumbnails", "Thumbnails") as report:
        shown = write_gallery(out, benchmark, limit, report=report)
    size = out.stat().st_size
    if as_json:
        print_json({"benchmark": benchmark.name, "shown": shown, "bytes": size, "out": str(out)})
        return
    counted = "1 entry" if shown == 1 else f"{shown:,} entries"
    output.print(f"{counted} of {benchmark.name} ({size / 1e6:.2g} MB) → {out}", soft_wrap=True)
