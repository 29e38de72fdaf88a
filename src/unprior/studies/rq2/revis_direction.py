"""RQ2: which way do changed answers go? Why REVIS's gain on yes/no questions does not carry over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.baselines.activity import GateActivity
from unprior.baselines.answers import MethodAnswers
from unprior.evaluation import Change, Share, compare, prior_winners
from unprior.evaluation.comparison import group_rows
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.scores.schema import IntArray
from unprior.studies.result import StudyResult, grouped
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_percent, format_points
from unprior.tables.model import Row, Section, Table

FOCUS = ("revis", "revis-2.5")
DIRECTIONS = {
    "yes_to_no": "from yes to no",
    "no_to_yes": "from no to yes",
    "towards_prior_winner": "to the prior's winner",
    "from_prior_winner": "away from the prior's winner",
    "between_others": "between other options",
    "unanswered": "from or to no answer",
}
"""Where a changed answer may go, in words."""


@dataclass(frozen=True, slots=True)
class GateShare:
    """How much of a side a gate on hidden states was open for."""

    examples: Share
    """Examples with at least one open position."""
    positions: Share
    """Open positions."""

    @classmethod
    def from_activity(cls, activity: Sequence[GateActivity]) -> GateShare:
        """Add up examples."""
        opened = Share(sum(each.active for each in activity), sum(each.positions for each in activity))
        return cls(Share(sum(each.active > 0 for each in activity), len(activity)), opened)


@dataclass(frozen=True, slots=True)
class Shift:
    """Changed answers of one method on one side of one task, by direction."""

    method: str
    label: str
    """The name for people."""
    task: str
    side: str
    change: Change
    counts: dict[str, int | None]
    """Changed answers by the names of ``DIRECTIONS``; None for yes and no in multiple choice."""
    gated: GateShare | None = None
    """Where the method has a gate on hidden states that was counted."""


@dataclass(frozen=True, slots=True)
class AnswerShifts(StudyResult):
    """Directions of changed answers by method, task and side.

    >>> from unprior import synthesize
    >>> study_answer_shifts(synthesize(seed=0), []).sentences
    ('No method changes any answer.',)
    """

    shifts: tuple[Shift, ...]
    """By task and method, both sides each; REVIS before all others."""

    @property
    def table(self) -> Table:
        """One section per task."""
        sections: dict[str, list[Row]] = {}
        for shift in self.shifts:
            counts = ["–" if count is None else str(count) for count in shift.counts.values()]
            delta, changed = format_points(shift.change.delta), str(shift.change.changed)
            row = Row((shift.label, shift.side.upper(), delta, changed, *counts), bold=shift.method in FOCUS)
            sections.setdefault(shift.task.upper(), []).append(row)
        return Table(
            "Where changed answers go",
            ("Method", "Images", "Δ", "Changed", "yes→no", "no→yes", "To prior's winner", "From prior's winner",
             "Between others", "From/to no answer"),
            tuple(Section(task, tuple(rows)) for task, rows in sections.items()),
            "Against the original answers; the prior's winner is the candidate with the highest text-only score.",
            text_columns=2,
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """How one-sided REVIS is, and which of the others are entirely so."""
        sentences, alike = [], dict[tuple[str, str], list[str]]()
        for (task, method), parts in grouped(self.shifts, key=lambda shift: (shift.task, shift.method)).items():
            changed = sum(part.change.changed for part in parts)
            if not changed:
                continue
            direction, count = _main_direction(parts)
            if method in FOCUS:
                deltas = " and ".join(f"{part.side.upper()} {format_points(part.change.delta)}" for part in parts)
                share = "all" if count == changed else f"{format_percent(count / changed, 0)} %"
                words = f"{parts[0].label} changes {changed} {task.upper()} answers ({deltas} points)"
                sentences.append(f"{words}; {share} of them go {direction}.")
            elif count == changed:
                alike.setdefault((task, direction), []).append(parts[0].label)
        for (task, direction), labels in alike.items():
            names, verb = format_list(labels), "moves" if len(labels) == 1 else "move"
            sentences.append(f"{names} {verb} every {task.upper()} answer that changes {direction}.")
        gates = filter(None, map(_gate_in_words, grouped(self.shifts, key=lambda shift: shift.method).values()))
        if not any(shift.change.changed for shift in self.shifts):
            return ("No method changes any answer.", *gates)
        return (*(sentences or ("No method moves all its changed answers in one direction.",)), *gates)

    def of(self, method: str) -> tuple[Shift, ...]:
        """All tasks and sides of one method."""
        return tuple(shift for shift in self.shifts if shift.method == method)

    def records(self) -> list[dict[str, Any]]:
        """One record per method, task and side."""
        return [
            {
                "method": shift.method, "label": shift.label, "task": shift.task, "side": shift.side,
                "delta": shift.change.delta, "changed": shift.change.changed, "total": shift.change.total,
                **shift.counts,
                **{f"gate_{name}": None if shift.gated is None else finite_or_none(getattr(shift.gated, name).value)
                   for name in ("examples", "positions")},
            }
            for shift in self.shifts
        ]  # fmt: skip


def _gate_in_words(shifts: Sequence[Shift]) -> str:
    """Over all tasks and sides; nothing where no gate was counted."""
    gates = [shift.gated for shift in shifts if shift.gated is not None]
    if not gates:
        return ""
    examples, positions = (
        Share(sum(share.count for share in shares), sum(share.total for share in shares))
        for shares in zip(*((gate.examples, gate.positions) for gate in gates), strict=True)
    )
    where = "every example" if examples.count == examples.total else f"{examples.count} of {examples.total} examples"
    return (
        f"The gate of {shifts[0].label} is open on {where} and at {format_percent(positions.value)} % of "
        f"{positions.total:,} hidden positions."
    )


def _main_direction(parts: Sequence[Shift]) -> tuple[str, int]:
    """The most frequent direction in words: of yes and no where there are such, else by the prior's winner."""
    yes_to_no, no_to_yes, *others, unanswered = DIRECTIONS
    names = others if parts[0].counts["yes_to_no"] is None else [yes_to_no, no_to_yes]
    totals = {name: sum(part.counts[name] or 0 for part in parts) for name in (*names, unanswered)}
    best = max(totals, key=totals.__getitem__)
    return DIRECTIONS[best], totals[best]


def study_answer_shifts(table: ScoreTable, methods: Sequence[MethodAnswers]) -> AnswerShifts:
    """Count changed answers to the rows of a table by direction."""
    ordered = sorted(methods, key=lambda each: each.info.name not in FOCUS)
    sides = grouped(group_rows(table, "task", "side").items(), key=lambda group: group[0][0])
    shifts = [
        _shift(table.take(rows), method, rows, str(task), str(side))
        for groups in sides.values()
        for method in ordered
        for (task, side), rows in groups
    ]
    return AnswerShifts(tuple(shifts))


def _shift(part: ScoreTable, method: MethodAnswers, rows: IntArray, task: str, side: str) -> Shift:
    given, before, winner = method.answers[rows], part.original_positions, prior_winners(part)
    changed = given != before
    answered = changed & (given >= 0) & (before >= 0)
    old, new = (np.array(part.candidate_names(each), dtype=object) for each in (before, given))
    to_no, to_yes = ((changed & (old == one) & (new == two)) for one, two in (("yes", "no"), ("no", "yes")))
    towards, away = answered & (given == winner), answered & (before == winner)
    found = (to_no, to_yes, towards, away, answered & ~towards & ~away, changed & ~answered)
    counts: dict[str, int | None] = {name: int(each.sum()) for name, each in zip(DIRECTIONS, found, strict=True)}
    if task != "qa":
        counts |= {"yes_to_no": None, "no_to_yes": None}
    gated = None if method.activity is None else GateShare.from_activity([method.activity[row] for row in rows])
    return Shift(method.info.name, method.info.label, task, side, compare(part, given, side=None), counts, gated)


STUDY = Study(
    name="revis-direction",
    title="Where changed answers go",
    asks="Does REVIS move answers by what the image shows, or always in the same direction?",
    how="Answers of REVIS to the test pairs that differ from the original ones, by task, side and direction; the same "
    "for every other method that was run.",
    needs=("scores", "revis"),
    run=lambda inputs: study_answer_shifts(inputs.test, inputs.baselines),
)
