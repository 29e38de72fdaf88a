"""Rows that fitting and evaluation can use; others are refused, or left out with a warning that names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from unprior.errors import InvalidScoresError, RowProblem, UnpriorError, UnpriorNote, format_option, require_type, warn
from unprior.prompts import is_cut_off, thinks
from unprior.scores.files import read_scores
from unprior.scores.pairs import sound_pairs
from unprior.scores.schema import BoolArray
from unprior.scores.table import ScoreTable


def require_table(table: object) -> None:
    """Refuse what is no score table.

    >>> require_table("scores.parquet")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: table: give a score table, see unprior.read_scores, not 'scores.parquet'
    """
    require_type("table", table, ScoreTable, "a score table, see unprior.read_scores")


def read_checked(path: Path, *, skip_invalid: bool = False, decided_by: str | None = None) -> ScoreTable:
    """Read a score table, with or without answers; warns of rows left out and of answers that were cut off."""
    table = read_scores(path, skip_invalid=skip_invalid, require_answers=False, decided_by=decided_by)
    warn_about_skipped(path, table.skipped, len(table))
    unread, read = count_cut_off(table)
    warn_about_cut_off(unread, len(table))
    if read:
        warn(
            f"{path}: {read:,} of {len(table):,} original answers were read from texts that end before the model's "
            f"thinking does; they are no answers. Score the model again, or set them to null"
        )
    return table


def labelled_rows(table: ScoreTable, rows: BoolArray, source: Path, *, skip_invalid: bool = False) -> BoolArray:
    """Of the chosen rows those with a correct answer; missing ones are refused, or left out if asked for.

    Of a log nobody labels every row, so there they are left out and counted.
    """
    unlabelled = rows & ~table.is_labelled & ~table.is_matched
    if unlabelled.any():
        left = f"left out {int(unlabelled.sum()):,} of {int(rows.sum()):,} decisions, which have no label"
        warn(UnpriorNote(f"{source}: {left}"))
    rows = rows & ~unlabelled
    missing = rows & ~table.is_labelled
    reason = "answer is missing (fitting and evaluation need it)"
    problems = tuple(RowProblem(int(table.lines[row]), reason) for row in np.flatnonzero(missing).tolist())
    if problems and not skip_invalid:
        raise InvalidScoresError(str(source), int(rows.sum()), problems)
    labelled = rows & ~missing
    warn_about_skipped(source, problems, int(labelled.sum()))
    if not labelled.any():
        told = "; label some with `unprior label`" if unlabelled.any() else ", and fitting and evaluation need some"
        raise UnpriorError(f"{source}: no row with a correct answer is left{told}")
    return labelled


def sound_rows(
    table: ScoreTable, rows: BoolArray, source: Path, *, skip_invalid: bool = False
) -> tuple[ScoreTable, BoolArray]:
    """Of the chosen rows those of sound pairs, and which they are; others are refused, or left out if asked for."""
    sound, check = sound_pairs(table, rows)
    if not skip_invalid:
        check.refuse(str(source), skippable=True)
    elif check.problems:
        some = "1 pair that is" if check.total == 1 else f"{check.total:,} pairs that are"
        warn(_listed(f"{source}: left out {some} not sound, {len(sound):,} rows remain", check.problems))
    if len(sound) == 0:
        raise UnpriorError(f"{source}: no sound pair is left; there is nothing to work on")
    return sound, rows & check.sound


def count_bounds(table: ScoreTable) -> tuple[int, str]:
    """How many rows have a score that is only an upper bound, and the sentence about it."""
    count = int(table.is_bounded.sum())
    return count, f"{count:,} of {len(table):,} rows have a score that is only an upper bound"


def count_cut_off(table: ScoreTable) -> tuple[int, int]:
    """Rows whose text ends before the model's thinking does: without an original answer, and with one all the same."""
    if table.arrow.column("original_text").null_count == len(table):
        return 0, 0
    unread = read = 0
    model, names = table.codes("model")
    for code in range(len(names)):  # one answer tells how all others of its model are to be read
        rows = np.flatnonzero(model == code)
        texts: list[str | None] = table.arrow.column("original_text").take(rows).to_pylist()
        if thinks(texts):
            cut = np.array([text is not None and is_cut_off(text, thinking=True) for text in texts])
            none = table.original_positions[rows] < 0
            unread += int((cut & none).sum())
            read += int((cut & ~none).sum())
    return unread, read


def warn_about_cut_off(count: int, total: int) -> None:
    """Warn of answers that end before their thinking does, if there are any."""
    if count:
        warn(
            f"{count:,} of {total:,} answers were cut off while the model was thinking; they are not read and count as "
            f"wrong. Let it write more with {format_option('max_new_tokens')}, or switch its thinking off (an instruct "
            f"version of the model, or another chat template)"
        )


def warn_about_skipped(source: Path, problems: Sequence[RowProblem], remaining: int) -> None:
    """Warn of rows that were left out, if there are any."""
    if problems:
        warn(_listed(f"{source}: left out {len(problems)} invalid rows, {remaining} remain", problems))


def _listed(told: str, problems: Iterable[object]) -> str:
    return "\n".join([told, *(f"  {problem}" for problem in problems)])
