"""Whether pairs are what calibration takes them for: one counterfactual and one commonsense image of one question.

One check serves questions and score tables, before a model is asked and before anything is fitted. It works on codes
of columns without sorting them, so that a million rows take a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unprior.errors import UnpriorError, format_option
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import ScoreTable

_SHOWN_PAIRS, _SHOWN_LINES = 8, 6
_COVERED = 0.5
"""Share of open questions whose candidates should hold the right answer."""
_REMEDY = (
    "A pair is one counterfactual (cf) and one commonsense (cs) image with one question, the same options in one "
    "order, and one split. Correct these pairs"
)


class Fault(StrEnum):
    """What can be wrong with a pair."""

    TWICE = "the same example stands there more than once and would count as often; keep one"
    NO_CF = "has no counterfactual (cf) side"
    NO_CS = "has no commonsense (cs) side"
    REPEATED = "has a side more than once"
    OPTIONS = "has other options on its cf than on its cs side, so that their answers do not compare"
    SPLITS = "stands in two splits"


@dataclass(frozen=True, slots=True)
class PairProblem:
    """What is wrong with one pair."""

    fault: Fault
    pair: str
    task: str | None
    """None where it concerns the pair in all tasks."""
    lines: tuple[int, ...]
    """Where its rows stand."""

    def __str__(self) -> str:
        """Lines, pair and fault."""
        shown = ", ".join(str(line) for line in self.lines[:_SHOWN_LINES]) + (
            " …" if len(self.lines) > _SHOWN_LINES else ""
        )
        task = "" if self.task is None else f" ({self.task})"
        where = f"{'line' if len(self.lines) == 1 else 'lines'} {shown}: " if self.lines else ""
        return f"{where}pair {self.pair}{task}: {self.fault}"


class InvalidPairsError(UnpriorError):
    """Some pairs are not sound; ``problems`` describes the first of each kind."""

    def __init__(self, source: str, problems: Sequence[PairProblem], total: int, *, skippable: bool = False) -> None:
        """Say which pairs of ``source`` are wrong and what can be done."""
        self.problems = tuple(problems)
        lines = [f"{source}: {total:,} {'pair is' if total == 1 else 'pairs are'} not sound"]
        lines += [f"  {problem}" for problem in self.problems]
        if total > len(self.problems):
            lines.append(f"  … and {total - len(self.problems):,} more")
        lines.append(
            _REMEDY + (f", or leave them out with {format_option('skip_invalid', True)}." if skippable else ".")
        )
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class PairCheck:
    """The outcome of a check."""

    problems: tuple[PairProblem, ...]
    """The first problems of every kind."""
    total: int
    """Pairs (of one task) that have a problem."""
    sound: BoolArray
    """Rows of sound pairs, and rows that belong to none."""

    def refuse(self, source: str | None, *, skippable: bool = False) -> None:
        """Raise an error that names the pairs, if there are any."""
        if self.problems:
            raise InvalidPairsError(source or "score table", self.problems, self.total, skippable=skippable)


@dataclass(frozen=True)
class PairColumns:
    """What the check looks at, one entry per row."""

    pair: IntArray
    """Code of the pair (of one model and benchmark)."""
    task: IntArray
    """Code of the task."""
    is_cf: BoolArray
    is_paired: BoolArray
    """Rows that belong to no pair are left alone."""
    options: IntArray
    """Rows with the same options have the same code."""
    identity: Callable[[IntArray], Sequence[IntArray]]
    """Codes for some rows; rows of one side of a pair that share any of them are one example that stands twice."""
    split: IntArray
    describe: Callable[[int], tuple[str, str]]
    """Pair and task of a row, for people."""
    line: Callable[[int], int | None]
    """Where a row stands, if it stands in a file of lines."""
    question: IntArray | None = None
    """Rows with the same question have the same code; a pair may have several questions."""
    splits_of: BoolArray | None = None
    """Rows in which a pair must not stand in another split; by default those that belong to a pair."""

    @cached_property
    def units(self) -> IntArray:
        """Code of what must have two sides: a pair in one task, or in one of its questions."""
        unit = self.pair * (int(self.task.max(initial=0)) + 1) + self.task
        if self.question is None:
            return unit
        size = int(unit.max(initial=0)) + 1
        sides = [np.bincount(unit[self.is_paired & side], minlength=size) for side in (self.is_cf, ~self.is_cf)]
        simple = (sides[0] == 1) & (sides[1] == 1)
        finer = unit * (int(self.question.max(initial=0)) + 1) + self.question
        return _compact(np.where(simple[unit], unit, size + finer))


def check_pairs(columns: PairColumns, *, complete: bool = True) -> PairCheck:
    """Look for pairs that are not sound; with ``complete=False`` a side may be missing or repeated."""
    unit, cf = columns.units, columns.is_cf
    rows = columns.is_paired
    size = int(unit.max(initial=0)) + 1
    counts = [np.bincount(unit[rows & side], minlength=size) for side in (cf, ~cf)]
    present = (counts[0] + counts[1]) > 0
    bad: dict[Fault, BoolArray] = {}
    several = np.maximum(counts[0], counts[1]) > 1
    if several.any():
        bad[Fault.TWICE] = _twice(columns, unit, np.flatnonzero(rows & several[unit]), size)
    if complete:
        bad[Fault.NO_CF] = present & (counts[0] == 0)
        bad[Fault.NO_CS] = present & (counts[1] == 0)
        bad[Fault.REPEATED] = present & (counts[0] > 0) & (counts[1] > 0) & (counts[0] != counts[1])
    balanced = present & (counts[0] == counts[1])
    # Sums of codes agree exactly when both sides have the same options, whatever the number of their rows.
    weight = np.random.default_rng(0).integers(1, 1 << 40, int(columns.options.max(initial=0)) + 1)[columns.options]
    signed = np.where(cf, weight, -weight)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, unit[rows], signed[rows])
    bad[Fault.OPTIONS] = balanced & (total != 0)

    problems: list[PairProblem] = []
    wrong = np.zeros(size, dtype=np.bool_)
    for fault, units in bad.items():
        first = np.flatnonzero(units & ~wrong)[:_SHOWN_PAIRS].tolist()
        problems += [_problem(columns, fault, np.flatnonzero((unit == code) & rows)) for code in first]
        wrong |= units
    split_pairs = _in_two_splits(columns)
    for code in np.flatnonzero(split_pairs)[:_SHOWN_PAIRS].tolist():
        members = rows if columns.splits_of is None else columns.splits_of
        problems.append(_problem(columns, Fault.SPLITS, np.flatnonzero(members & (columns.pair == code))))
    sound = ~rows | ~(wrong[unit] | split_pairs[columns.pair])
    leaking = np.zeros(size, dtype=np.bool_)
    leaking[unit[rows & split_pairs[columns.pair]]] = True
    return PairCheck(tuple(problems), int((wrong | leaking).sum()), sound)


def _twice(columns: PairColumns, unit: IntArray, rows: IntArray, size: int) -> BoolArray:
    """Units in which one example stands more than once."""
    found = np.zeros(size, dtype=np.bool_)
    place = unit[rows] * 2 + columns.is_cf[rows]
    for code in columns.identity(rows):
        key = _compact(place * (int(code.max(initial=0)) + 1) + code)
        found[unit[rows][np.bincount(key)[key] > 1]] = True
    return found


def _in_two_splits(columns: PairColumns) -> BoolArray:
    size = int(columns.pair.max(initial=0)) + 1
    if not columns.split.any():
        return np.zeros(size, dtype=np.bool_)
    rows = columns.is_paired if columns.splits_of is None else columns.splits_of
    split = np.full(size, -1)
    split[columns.pair[rows]] = columns.split[rows]  # of several splits one stays
    leaks = np.zeros(size, dtype=np.bool_)
    leaks[columns.pair[rows & (columns.split != split[columns.pair])]] = True
    concerned = np.zeros(size, dtype=np.bool_)
    concerned[columns.pair[columns.is_paired]] = True
    return leaks & concerned


def _problem(columns: PairColumns, fault: Fault, rows: IntArray) -> PairProblem:
    pair, task = columns.describe(int(rows[0]))
    lines = tuple(line for row in rows.tolist() if (line := columns.line(row)) is not None)
    return PairProblem(fault, pair, None if fault is Fault.SPLITS else task, lines)


def _pair_codes(table: ScoreTable) -> IntArray:
    """A code for every pair of one model and benchmark."""
    pair = codes_of(table.arrow.column("pair_id"))
    for name in ("model", "benchmark"):
        if len(table.values_of(name)) > 1:
            scope = codes_of(table.arrow.column(name))
            pair = _compact(pair * (int(scope.max()) + 1) + scope)
    return pair


def table_pairs(table: ScoreTable, rows: BoolArray | None = None) -> PairColumns:
    """The pairs of a score table; ``rows`` chooses some of them."""
    arrow = table.arrow
    paired = table.is_paired & table.is_matched & (True if rows is None else rows)

    # Answers are compared by their names, so the order of the candidates does not matter here. Open questions have no
    # options: what the model proposes differs between the two images.
    flat = codes_of(table.candidate_lists.flatten())
    weights = np.random.default_rng(1).integers(1, 1 << 60, int(flat.max(initial=0)) + 1)

    def identity(some: IntArray) -> list[IntArray]:
        names = arrow.column("example_id").take(pa.array(some)).combine_chunks()
        scores = [
            hash((table.image_scores[cells].tobytes(), table.prior_scores[cells].tobytes()))
            for row in some.tolist()
            for cells in (slice(table.offsets[row], table.offsets[row + 1]),)
        ]
        return [codes_of(names), _compact(np.array(scores, dtype=np.int64))]

    return PairColumns(
        pair=_pair_codes(table),
        task=codes_of(arrow.column("task")),
        is_cf=table.is_cf,
        is_paired=paired,
        options=_compact(np.where(table.is_open, 0, np.add.reduceat(weights[flat], table.offsets[:-1]))),
        identity=identity,
        split=codes_of(arrow.column("split")),
        describe=lambda row: (str(arrow.column("pair_id")[row].as_py()), str(arrow.column("task")[row].as_py())),
        line=lambda row: int(table.lines[row]),
        splits_of=table.is_paired,
    )


def sound_pairs(table: ScoreTable, rows: BoolArray | None = None) -> tuple[ScoreTable, PairCheck]:
    """The rows of sound pairs, of all rows or of some, and what was wrong with the others."""
    check = check_pairs(table_pairs(table, rows))
    sound = table.take(check.sound if rows is None else check.sound & rows)
    sound.pairs_are_sound = True
    return sound, check


def refuse_unsound(table: ScoreTable, rows: BoolArray) -> None:
    """Raise an error that names the pairs that are not sound among some rows; a table is looked at only once."""
    if table.pairs_are_sound and rows.all():
        return
    check_pairs(table_pairs(table, rows)).refuse(table.source, skippable=True)


def codes_of(column: pa.Array | pa.ChunkedArray) -> IntArray:
    """A small number for every value, the same for equal values; null is a value, too.

    >>> codes_of(pa.array(["b", "a", "b", None])).tolist()
    [0, 1, 0, 2]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if len(column) == 0 or column.null_count == len(column):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_integer(column.type) and not column.null_count:
        values: IntArray = column.to_numpy(zero_copy_only=False).astype(np.int64)
        low, high = int(values.min()), int(values.max())
        if high - low < 8 * len(values):
            return values - low
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    codes: IntArray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _compact(codes: IntArray) -> IntArray:
    """The same groups under small numbers; sorting is avoided where the numbers are small enough already."""
    if len(codes) == 0 or (int(codes.min()) >= 0 and int(codes.max()) < 16 * len(codes) + 1024):
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


MIN_PAIRS = 2
"""Fewer pairs of a task are not fitted on: from one pair nothing can be learned about another."""
FEW_PAIRS = 30
"""Fewer pairs of a task bring a warning."""
_CHANCE_LEVEL = 0.05


def refuse_too_few(source: str, pairs: Mapping[str, int]) -> None:
    """Refuse numbers of development pairs, by task, from which nothing can be learned."""
    for task, count in pairs.items():
        if count < MIN_PAIRS:
            raise UnpriorError(
                f"{source}: task {task} has {count} development {'pair' if count == 1 else 'pairs'}; at least "
                f"{MIN_PAIRS} are needed to fit on, and {FEW_PAIRS} or more to rely on the result (the paper uses 70). "
                f"Label more pairs, or leave the task out."
            )


def warnings_about(table: ScoreTable, epsilon_cs: float | None = None) -> list[str]:
    """What a reader should know before relying on results from these rows, in sentences.

    Parameters
    ----------
    table
        Rows with answers and sides.
    epsilon_cs
        The permitted loss, where the rows are to be fitted on.
    """
    found = []
    for task, pairs in pairs_by_task(table).items():
        found += few_pairs(task, pairs, epsilon_cs)
        if sentence := _at_chance(table, table.mask(task=task) & ~table.is_cf & table.is_paired, task):
            found.append(sentence)
        found += _uncovered(table, table.mask(task=task) & table.is_open & table.is_labelled)
    return found


def _uncovered(table: ScoreTable, rows: BoolArray) -> list[str]:
    """A warning for each side of open questions whose candidates mostly miss the right answer."""
    found = []
    for side, own in (("counterfactual", rows & table.is_cf), ("commonsense", rows & ~table.is_cf)):
        held, total = int((own & table.is_covered).sum()), int(own.sum())
        if held < _COVERED * total:
            found.append(
                f"the candidates of open questions hold the right answer in only {held:,} of {total:,} rows about "
                f"{side} images, and elsewhere neither harm nor repair can be seen; check the answers, name other "
                f"texts that are right as aliases, or score with more candidates"
            )
    return found


def few_pairs(task: str, pairs: int, epsilon_cs: float | None = None) -> list[str]:
    """A sentence about a task with few pairs, and what that means; nothing for enough of them."""
    if not 0 < pairs < FEW_PAIRS:
        return []
    means = f"one answer more or less moves an accuracy by {100 / pairs:.1f} points"
    if epsilon_cs is not None and epsilon_cs * pairs < 1:
        means += f", so a permitted loss of ε = {epsilon_cs:g} permits no harmed answer at all"
    return [f"task {task} has only {pairs} pairs: {means}; the paper uses 70 development pairs"]


def pairs_by_task(table: ScoreTable) -> dict[str, int]:
    """Number of pairs of every task, by name."""
    pair = _pair_codes(table)
    tasks = sorted(table.values_of("task"))
    return {task: int(np.count_nonzero(np.bincount(pair[table.mask(task=task)]))) for task in tasks}


def _at_chance(table: ScoreTable, rows: BoolArray, task: str) -> str | None:
    """A warning if the model's own answers to commonsense images are no better than guessing."""
    from scipy.special import bdtrc  # scipy.stats takes a second to import

    total = int(rows.sum())
    if total == 0 or not table.is_labelled[rows].all() or table.is_open[rows].any():
        return None  # nobody guesses among the answers that a model itself proposes
    right = int(table.is_right(table.original_positions)[rows].sum())
    chance = float((1 / table.candidate_counts[rows]).mean())
    if bdtrc(right - 1, total, chance) <= _CHANCE_LEVEL:  # the probability of guessing so many right, or more
        return None
    return (
        f"on task {task} the model answers {right} of {total} commonsense questions right, no better than guessing "
        f"({chance * total:.0f}): there is little retention to protect, and repairs may be luck. Check prompts and "
        f"answers (`unprior doctor`)"
    )
