"""Commands about score tables: make a synthetic one, convert and merge files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unprior.cli.console import AsJson, SkipInvalid, errors, output, print_json, refuse_overwriting, warn
from unprior.scores import ScoreTable, read_scores

_SHOWN = 20


def read_table(path: Path, *, skip_invalid: bool, require_answers: bool = True) -> ScoreTable:
    """Read a score table for a command; rows that were left out are counted and listed."""
    table = read_scores(path, skip_invalid=skip_invalid, require_answers=require_answers)
    if table.skipped:
        warn(f"{path}: left out {len(table.skipped)} invalid rows, {len(table)} remain")
        for problem in table.skipped[:_SHOWN]:
            errors.print(f"  {problem}", markup=False, soft_wrap=True)
        if len(table.skipped) > _SHOWN:
            errors.print(f"  … and {len(table.skipped) - _SHOWN} more")
    return table


def describe(table: ScoreTable) -> dict[str, Any]:
    """What a table holds, in a few numbers."""
    splits, labels = table.codes("split")
    counts: dict[str, int] = {}
    for code, label in enumerate(labels):
        counts[label[0] or "none"] = int((splits == code).sum())
    return {
        "rows": len(table),
        "pairs": len(table.codes("benchmark", "pair_id")[1]),
        "splits": counts,
        "candidate_counts": sorted(set(table.candidate_counts.tolist())),
        "skipped": [{"line": problem.line, "reason": problem.reason} for problem in table.skipped],
    }


def _report(table: ScoreTable, out: Path, as_json: bool) -> None:
    record = describe(table) | {"out": str(out)}
    if as_json:
        print_json(record)
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in record["splits"].items())
    output.print(f"{record['rows']:,} rows of {record['pairs']:,} pairs ({splits}) → {out}", soft_wrap=True)


def synth(
    out: Annotated[Path, typer.Option("--out", help="Score table to write (.jsonl or .parquet).")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.", min=0)] = 0,
    repeats: Annotated[int, typer.Option(help="Copies of the 300-pair structure.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic score table (s_I = v + αp + ε) with the structure of CDH-Bench.

    Its numbers say nothing about any real model; it shows and tests the method without one.
    """
    from unprior.synthetic import synthesize

    table = synthesize(seed, repeats=repeats)
    table.write(out)
    _report(table, out, as_json)


def convert(
    files: Annotated[list[Path], typer.Argument(help="Score tables or published per-example files, in order.")],
    out: Annotated[Path, typer.Option("--out", help="Score table to write (.jsonl or .parquet).")],
    split: Annotated[str | None, typer.Option(help="Set the split of every row.")] = None,
    model: Annotated[str | None, typer.Option(help="Set the model of every row.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="Set the benchmark of every row.")] = None,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Convert score files to one table: between JSONL and Parquet, from the published layout, or merged."""
    from unprior.scores.table import concatenate

    refuse_overwriting(out, *files)
    tables = [read_table(path, skip_invalid=skip_invalid, require_answers=False) for path in files]
    merged = concatenate(tables)
    named = {name: value for name, value in (("split", split), ("model", model), ("benchmark", benchmark)) if value}
    table = merged.with_columns(**named)
    table.write(out)
    _report(table, out, as_json)
