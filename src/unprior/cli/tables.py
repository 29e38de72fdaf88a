"""Commands about score tables: make a synthetic one, convert and merge files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, SkipInvalid, flag, output, print_json
from unprior.cli.lazy import examples
from unprior.errors import RowProblem, UnpriorError

if TYPE_CHECKING:
    from unprior.scores import ScoreTable

TableOut = flag("Output", "Score table to write (.jsonl or .parquet).", "--out")


def skipped_record(skipped: Iterable[RowProblem]) -> list[dict[str, Any]]:
    """Invalid rows that were left out, for programs."""
    return [asdict(problem) for problem in skipped]


def _report(table: ScoreTable, out: Path, as_json: bool) -> None:
    """What a table holds, in a few numbers."""
    counts = Counter(split or "without split" for split in table.column("split"))
    pairs = len(table.codes("benchmark", "pair_id")[1])
    if as_json:
        candidates = sorted(set(table.candidate_counts.tolist()))
        record = {"rows": len(table), "pairs": pairs, "splits": counts, "candidate_counts": candidates}
        print_json(record | {"skipped": skipped_record(table.skipped), "out": str(out)})
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    output.print(f"{len(table):,} rows of {pairs:,} pairs ({splits}) → {out}", soft_wrap=True)


@examples("unprior synth --out scores.parquet", "unprior synth --published scores/ --seed 7")
def synth(
    out: Annotated[Path | None, TableOut] = None,
    published: Annotated[
        Path | None,
        flag("Output", "Folder to write files of the layout that `unprior reproduce` reads.", metavar="DIR"),
    ] = None,
    seed: Annotated[int, flag("Method", "The same seed gives the same table.", min=0)] = 0,
    repeats: Annotated[int, flag("Method", "Copies of the 300-pair structure.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic score table (s_I = v + αp + ε) with the structure of CDH-Bench.

    Its numbers say nothing about any real model; it shows and tests the method without one.
    """
    from unprior._files import check_output_file
    from unprior.reproduction import write_synthetic
    from unprior.synthetic import synthesize

    if (out is None) == (published is None):
        raise UnpriorError("choose --out FILE for a score table, or --published DIR for files of the paper's layout")
    if published is not None:
        _report(write_synthetic(published, seed, repeats=repeats), published, as_json)
    elif out is not None:
        check_output_file(out)
        table = synthesize(seed, repeats=repeats)
        table.write(out)
        _report(table, out, as_json)


@examples(
    "unprior convert scores.jsonl --out scores.parquet",
    "unprior convert dev.jsonl test.jsonl --out scores.parquet --model my-model --prior median3",
)
def convert(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Score tables or published per-example files, in order."),
    ],
    out: Annotated[Path, TableOut],
    split: Annotated[str | None, flag("Columns", "Set the split of every row.")] = None,
    model: Annotated[str | None, flag("Columns", "Set the model of every row.")] = None,
    benchmark: Annotated[str | None, flag("Columns", "Set the benchmark of every row.")] = None,
    prior: Annotated[
        str, flag("Columns", "Prior scores to use: text, white, black, mean, median, median3, adjusted, weighted.")
    ] = "text",
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Convert score files to one table: between JSONL and Parquet, from the published layout, or merged."""
    from unprior.scores.convert import convert_files

    columns = {"split": split, "model": model, "benchmark": benchmark}
    _report(convert_files(files, out, prior=prior, skip_invalid=skip_invalid, **columns), out, as_json)
