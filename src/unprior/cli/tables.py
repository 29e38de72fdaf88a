"""Commands about score tables: make a synthetic one, convert and merge files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unprior.cli.console import AsJson, SkipInvalid, errors, output, print_json, refuse_overwriting, warn
from unprior.cli.thinking import count_cut_off, warn_about_cut_off
from unprior.errors import InvalidScoresError, RowProblem, UnpriorError
from unprior.scores import ScoreTable, read_scores
from unprior.scores.pairs import sound_pairs
from unprior.scores.schema import BoolArray
from unprior.scores.table import concatenate


def read_table(path: Path, *, skip_invalid: bool) -> ScoreTable:
    """Read a score table for a command, with or without answers; rows left out are counted and listed."""
    table = read_scores(path, skip_invalid=skip_invalid, require_answers=False)
    list_skipped(path, table.skipped, len(table))
    unread, read = count_cut_off(table)
    warn_about_cut_off(unread, len(table))
    if read:
        warn(
            f"{path}: {read:,} of {len(table):,} original answers were read from texts that end before the model's "
            f"thinking does; they are no answers. Score the model again, or set them to null"
        )
    return table


def labelled_rows(table: ScoreTable, rows: BoolArray, path: Path, *, skip_invalid: bool) -> BoolArray:
    """Of the chosen rows those with a correct answer; missing ones are refused, or left out if asked for."""
    missing = rows & (table.answer_positions < 0)
    reason = "answer is missing (fitting and evaluation need it)"
    problems = tuple(RowProblem(int(table.lines[row]), reason) for row in np.flatnonzero(missing).tolist())
    if problems and not skip_invalid:
        raise InvalidScoresError(str(path), int(rows.sum()), problems)
    list_skipped(path, problems, int((rows & ~missing).sum()))
    if not (rows & ~missing).any():
        raise UnpriorError(f"{path}: no row with a correct answer is left, and fitting and evaluation need some")
    return rows & ~missing


def whole_pairs(table: ScoreTable, rows: BoolArray, path: Path, *, skip_invalid: bool) -> tuple[ScoreTable, BoolArray]:
    """Of the chosen rows those of sound pairs, and which they are; others are refused, or left out if asked for."""
    sound, check = sound_pairs(table, rows)
    if not skip_invalid:
        check.refuse(str(path), skippable=True)
    elif check.problems:
        some = "1 pair that is" if check.total == 1 else f"{check.total:,} pairs that are"
        warn(f"{path}: left out {some} not sound, {len(sound):,} rows remain")
        for problem in check.problems:
            errors.print(f"  {problem}", soft_wrap=True)
    if len(sound) == 0:
        raise UnpriorError(f"{path}: no sound pair is left; there is nothing to work on")
    return sound, rows & check.sound


def list_skipped(path: Path, problems: tuple[RowProblem, ...], remaining: int) -> None:
    """Warn about rows that were left out, if there are any."""
    if problems:
        warn(f"{path}: left out {len(problems)} invalid rows, {remaining} remain")
        for problem in problems:
            errors.print(f"  {problem}", soft_wrap=True)


def describe(table: ScoreTable) -> dict[str, Any]:
    """What a table holds, in a few numbers."""
    splits, labels = table.codes("split")
    counts: dict[str, int] = {}
    for code, label in enumerate(labels):
        name = label[0] or "without split"
        counts[name] = counts.get(name, 0) + int((splits == code).sum())
    return {
        "rows": len(table),
        "pairs": len(table.codes("benchmark", "pair_id")[1]),
        "splits": counts,
        "candidate_counts": sorted(set(table.candidate_counts.tolist())),
        "skipped": skipped_record(table),
    }


def skipped_record(table: ScoreTable) -> list[dict[str, Any]]:
    """Invalid rows that were left out, for programs."""
    return [{"line": problem.line, "reason": problem.reason} for problem in table.skipped]


def _report(table: ScoreTable, out: Path, as_json: bool) -> None:
    record = describe(table) | {"out": str(out)}
    if as_json:
        print_json(record)
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in record["splits"].items())
    output.print(f"{record['rows']:,} rows of {record['pairs']:,} pairs ({splits}) → {out}", soft_wrap=True)


def synth(
    out: Annotated[Path | None, typer.Option("--out", help="Score table to write (.jsonl or .parquet).")] = None,
    published: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write files of the layout that `unprior reproduce` reads."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.", min=0)] = 0,
    repeats: Annotated[int, typer.Option(help="Copies of the 300-pair structure.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic score table (s_I = v + αp + ε) with the structure of CDH-Bench.

    Its numbers say nothing about any real model; it shows and tests the method without one.
    """
    from unprior.synthetic import synthesize

    if (out is None) == (published is None):
        raise UnpriorError("choose --out FILE for a score table, or --published DIR for files of the paper's layout")
    if published is not None:
        tables = [synthesize(seed + index, repeats=repeats) for index in range(3)]
        _write_published(tables, published)
        _report(concatenate(tables), published, as_json)
    elif out is not None:
        table = synthesize(seed, repeats=repeats)
        table.write(out)
        _report(table, out, as_json)


def _write_published(tables: list[ScoreTable], folder: Path) -> None:
    """One table for each of the paper's models."""
    from unprior.reproduction import MODELS, write_published

    for table, model in zip(tables, MODELS, strict=True):
        write_published(table, folder, model)


def convert(
    files: Annotated[list[Path], typer.Argument(help="Score tables or published per-example files, in order.")],
    out: Annotated[Path, typer.Option("--out", help="Score table to write (.jsonl or .parquet).")],
    split: Annotated[str | None, typer.Option(help="Set the split of every row.")] = None,
    model: Annotated[str | None, typer.Option(help="Set the model of every row.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="Set the benchmark of every row.")] = None,
    prior: Annotated[
        str, typer.Option(help="Prior scores to use: text, white, black, mean, median, median3, adjusted, weighted.")
    ] = "text",
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Convert score files to one table: between JSONL and Parquet, from the published layout, or merged."""
    from unprior.scores.priors import with_prior

    refuse_overwriting(out, *files)
    tables = [read_table(path, skip_invalid=skip_invalid) for path in files]
    merged = concatenate(tables)
    named = {
        name: value
        for name, value in (("split", split), ("model", model), ("benchmark", benchmark))
        if value is not None
    }
    table = with_prior(merged.with_columns(**named), prior)
    table.write(out)
    _report(table, out, as_json)
