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
_DIRECTIONS = {
    "yes_to_no": "from yes to no",
    "no_to_yes": "from no to yes",
    "towards_prior_winner": "to the prior's winner",
    "from_prior_winner": "away from the prior's winner",
    "between_others": "between other options",
    "unanswered": "from or to no answer",
}


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
        lines = [
            Row(
                (shift.label, shift.side.upper(), format_points(shift.change.delta), str(shift.change.changed),
                 *("–" if count is None else str(count) for count in shift.counts)),
                bold=shift.method in FOCUS,
            )
            for shift in self.shifts
        ]  # fmt: skip
        tasks = grouped(zip(self.shifts, lines, strict=True), key=lambda pair: pair[0].task)
        return Table(
            "Where changed answers go",
            ("Method", "Images", "Δ", "Changed", "yes→no", "no→yes", "To prior's winner", "From prior's winner",
             "Between others", "From/to no answer"),
            tuple(Section(task.upper(), tuple(line for _, line in pairs)) for task, pairs in tasks.items()),
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
                **dict(zip(_DIRECTIONS, shift.counts, strict=True)),
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
    opened, examples, active, positions = (
        sum(getattr(getattr(gate, of), part) for gate in gates)
        for of in ("examples", "positions")
        for part in ("count", "total")
    )
    return (
        f"The gate of {shifts[0].label} is open on "
        f"{'every example' if opened == examples else f'{opened} of {examples} examples'} and at "
        f"{format_percent(Share(active, positions).value)} % of {positions:,} hidden positions."
    )


def _main_direction(parts: Sequence[Shift]) -> tuple[str, int]:
    """The most frequent direction in words: of yes and no where there are such, else by the prior's winner."""
    words = list(_DIRECTIONS.values())
    totals = [sum(count or 0 for count in counts) for counts in zip(*(part.counts for part in parts), strict=True)]
    places = (2, 3, 4, 5) if parts[0].yes_to_no is None else (0, 1, 5)
    best = max(places, key=totals.__getitem__)
    return words[best], totals[best]


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
