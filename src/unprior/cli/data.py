"""Benchmarks on disk: what there is, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unprior.cli.console import AsJson, output, print_json
from unprior.cli.score import WorldSeed, prepare
from unprior.errors import UnpriorError

app = typer.Typer(help="Benchmarks: what there is, and how to get it.", no_args_is_help=True)


@app.command("list")
def list_benchmarks(as_json: AsJson = False) -> None:
    """List the benchmarks that have a name."""
    from unprior.benchmarks.registry import BENCHMARKS
    from unprior.report import plain_table

    if as_json:
        print_json({name: entry.about for name, entry in BENCHMARKS.items()})
        return
    table = plain_table()
    table.add_column("Name", no_wrap=True)
    table.add_column("What it is")
    for name, entry in BENCHMARKS.items():
        table.add_row(name, entry.about)
    output.print(table)


@app.command("get")
def get_benchmark(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A benchmark of `unprior data list`.")],
    out: Annotated[Path, typer.Option(help="Folder for pictures and questions.")],
    seed: WorldSeed = 0,
    as_json: AsJson = False,
) -> None:
    """Put a benchmark's pictures and its questions (questions.jsonl) into a folder."""
    from unprior.benchmarks.registry import BENCHMARKS
    from unprior.benchmarks.user_file import write_questions

    if name not in BENCHMARKS:
        raise UnpriorError(f"{name}: no such benchmark; known are {', '.join(BENCHMARKS)}")
    benchmark = prepare(name, out, seed)
    questions = out / "questions.jsonl"
    write_questions(questions, benchmark)
    pictures = len({example.image for example in benchmark})
    if as_json:
        print_json({"benchmark": benchmark.name, "examples": len(benchmark), "images": pictures, "out": str(questions)})
        return
    output.print(f"{len(benchmark):,} questions about {pictures:,} pictures → {questions}", soft_wrap=True)
    first = benchmark.examples[0]
    output.print(f"Try: unprior ask {first.image} {first.question!r}" + _options(first.texts), soft_wrap=True)


def _options(texts: tuple[str, ...] | None) -> str:
    return "" if texts is None else f" --options {'|'.join(texts)!r}"
