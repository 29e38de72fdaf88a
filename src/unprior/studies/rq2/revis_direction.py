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
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_percent, format_points
from unprior.tables.model import Row, Section, Table

FOCUS = ("revis", "revis-2.5")


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
        opened, positions = (sum(each.active for each in activity), sum(each.positions for each in activity))
        return cls(Share(sum(each.active > 0 for each in activity), len(activity)), Share(opened, positions))


@dataclass(frozen=True, slots=True)
class Shift:
    """Changed answers of one method on one side of one task, by direction."""

    method: str
    label: str
    """The name for people."""
    task: str
    side: str
    change: Change
    yes_to_no: int | None
    """None for multiple choice."""
    no_to_yes: int | None
    """None for multiple choice."""
    towards: int
    """To the prior's winner."""
    away: int
    """From the prior's winner."""
    between: int
    """From one of the other candidates to another."""
    unanswered: int
    """From or to no answer."""
    gated: GateShare | None = None
    """Where the method has a gate on hidden states that was counted."""

    @property
    def counts(self) -> tuple[int | None, ...]:
        """Directions as tables have them."""
        return self.yes_to_no, self.no_to_yes, self.towards, self.away, self.between, self.unanswered


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
        tasks = dict.fromkeys(shift.task for shift in self.shifts)
        sections = tuple(
            Section(
                task.upper(),
                tuple(
                    Row(
                        (shift.label, shift.side.upper(), format_points(shift.change.delta), str(shift.change.changed),
                         *("–" if count is None else str(count) for count in shift.counts)),
                        bold=shift.method in FOCUS,
                    )
                    for shift in self.shifts
                    if shift.task == task
                ),
            )
            for task in tasks
        )  # fmt: skip
        return Table(
            "Where changed answers go",
            ("Method", "Images", "Δ", "Changed", "yes→no", "no→yes", "To prior's winner", "From prior's winner",
             "Between others", "From/to no answer"),
            sections,
            "Against the original answers; the prior's winner is the candidate with the highest text-only score.",
            text_columns=2,
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """How one-sided REVIS is, and which of the others are entirely so."""
        sentences, alike = [], dict[tuple[str, str], list[str]]()
        for task, method in dict.fromkeys((shift.task, shift.method) for shift in self.shifts):
            parts = [shift for shift in self.shifts if (shift.task, shift.method) == (task, method)]
            changed = sum(part.change.changed for part in parts)
            if not changed:
                continue
            direction, count = _main_direction(parts)
            if method in FOCUS:
                deltas = " and ".join(f"{part.side.upper()} {format_points(part.change.delta)}" for part in parts)
                share = "all" if count == changed else f"{format_percent(count / changed, 0)} %"
                sentences.append(
                    f"{parts[0].label} changes {changed} {task.upper()} answers ({deltas} points); {share} of them go "
                    f"{direction}."
                )
            elif count == changed:
                alike.setdefault((task, direction), []).append(parts[0].label)
        sentences += [
            f"{format_list(labels)} {'moves' if len(labels) == 1 else 'move'} every {task.upper()} answer that changes "
            f"{direction}."
            for (task, direction), labels in alike.items()
        ]
        gates = [_gate_in_words(self.of(method)) for method in dict.fromkeys(each.method for each in self.shifts)]
        gates = [each for each in gates if each]
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
                "yes_to_no": shift.yes_to_no, "no_to_yes": shift.no_to_yes, "towards_prior_winner": shift.towards,
                "from_prior_winner": shift.away, "between_others": shift.between, "unanswered": shift.unanswered,
                "gate_examples": None if shift.gated is None else finite_or_none(shift.gated.examples.value),
                "gate_positions": None if shift.gated is None else finite_or_none(shift.gated.positions.value),
            }
            for shift in self.shifts
        ]  # fmt: skip


def _gate_in_words(shifts: Sequence[Shift]) -> str:
    """Over all tasks and sides; nothing where no gate was counted."""
    gates = [shift.gated for shift in shifts if shift.gated is not None]
    if not gates:
        return ""
    examples, positions = (
        Share(sum(each.count for each in shares), sum(each.total for each in shares))
        for shares in ([gate.examples for gate in gates], [gate.positions for gate in gates])
    )
    where = "every example" if examples.count == examples.total else f"{examples.count} of {examples.total} examples"
    return (
        f"The gate of {shifts[0].label} is open on {where} and at {format_percent(positions.value)} % of "
        f"{positions.total:,} hidden positions."
    )


def _main_direction(parts: Sequence[Shift]) -> tuple[str, int]:
    """The most frequent direction in words: of yes and no where there are such, else by the prior's winner."""
    yes_no = parts[0].yes_to_no is not None
    words = ("from yes to no", "from no to yes") if yes_no else (
        "to the prior's winner", "away from the prior's winner", "between other options")  # fmt: skip
    first = 0 if yes_no else 2
    totals = [sum(part.counts[first + index] or 0 for part in parts) for index in range(len(words))]
    totals.append(sum(part.unanswered for part in parts))
    best = totals.index(max(totals))
    return (*words, "from or to no answer")[best], totals[best]


def study_answer_shifts(table: ScoreTable, methods: Sequence[MethodAnswers]) -> AnswerShifts:
    """Count changed answers to the rows of a table by direction."""
    ordered = sorted(methods, key=lambda each: each.info.name not in FOCUS)
    groups = group_rows(table, "task", "side")
    tasks = dict.fromkeys(task for task, _ in groups)
    return AnswerShifts(
        tuple(
            _shift(table.take(rows), method, rows, str(task), str(side))
            for wanted in tasks
            for method in ordered
            for (task, side), rows in groups.items()
            if task == wanted
        )
    )


def _shift(part: ScoreTable, method: MethodAnswers, rows: IntArray, task: str, side: str) -> Shift:
    given, before, winner = method.answers[rows], part.original_positions, prior_winners(part)
    activity = None if method.activity is None else [method.activity[row] for row in rows.tolist()]
    changed = given != before
    answered = changed & (given >= 0) & (before >= 0)
    old, new = (np.array(part.candidate_names(each), dtype=object) for each in (before, given))
    towards, away = answered & (given == winner), answered & (before == winner)

    def moved(one: str, other: str) -> int | None:
        return int((changed & (old == one) & (new == other)).sum()) if task == "qa" else None

    return Shift(
        method=method.info.name,
        label=method.info.label,
        task=task,
        side=side,
        change=compare(part, given, side=None),
        yes_to_no=moved("yes", "no"),
        no_to_yes=moved("no", "yes"),
        towards=int(towards.sum()),
        away=int(away.sum()),
        between=int((answered & ~towards & ~away).sum()),
        unanswered=int((changed & ~answered).sum()),
        gated=None if activity is None else GateShare.from_activity(activity),
    )


STUDY = Study(
    name="revis-direction",
    question="rq2",
    title="Where changed answers go",
    asks="Does REVIS move answers by what the image shows, or always in the same direction?",
    how="Answers of REVIS to the test pairs that differ from the original ones, by task, side and direction; the same "
    "for every other method that was run.",
    needs=("scores", "revis"),
    run=lambda inputs: study_answer_shifts(inputs.test, inputs.baselines),
)
