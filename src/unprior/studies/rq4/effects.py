"""What answers change on one task of any benchmark, in the measures that apply to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unprior.evaluation import Change, compare, mcnemar
from unprior.evaluation.metrics import correct
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES, IntArray
from unprior.tables.format import format_list


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """One measure before and after."""

    measure: str
    """``cf`` and ``cs`` where images are paired; else ``accuracy``, and ``f1`` (yes is positive) for yes/no."""
    before: float
    after: float
    delta: float
    p: float | None
    """Exact test of repairs against harms; None for F1."""


@dataclass(frozen=True, slots=True)
class MethodEffect:
    """What one method does to one task of one benchmark."""

    method: str
    label: str
    """The name for people."""
    change: Change
    """Over all rows."""
    effects: tuple[MeasureChange, ...]

    def dominates(self, other: MethodEffect) -> bool:
        """Nowhere worse and somewhere better; undefined measures are left out."""
        pairs = [(mine.after, theirs.after) for mine, theirs in zip(self.effects, other.effects, strict=True)]
        defined = [(mine, theirs) for mine, theirs in pairs if not math.isnan(mine) and not math.isnan(theirs)]
        return all(mine >= theirs for mine, theirs in defined) and any(mine > theirs for mine, theirs in defined)


def method_effect(part: ScoreTable, method: str, label: str, answers: IntArray) -> MethodEffect:
    """Measure answers to the rows of one task against the original answers."""
    change = compare(part, answers, side=None)
    if part.is_paired.all():
        effects = [_accuracy(part, answers, side) for side in SIDES if (part.is_cf == (side == "cf")).any()]
    else:
        effects = [_accuracy(part, answers, None)]
        if all("yes" in candidates for candidates in part.column("candidates")):
            before, after = _f1(part, part.original_positions), _f1(part, answers)
            effects.append(MeasureChange("f1", before, after, after - before, None))
    return MethodEffect(method, label, change, tuple(effects))


def _accuracy(part: ScoreTable, answers: IntArray, side: str | None) -> MeasureChange:
    rows = np.ones(len(part), dtype=np.bool_) if side is None else part.is_cf == (side == "cf")
    change = compare(part, answers, side=side)
    before, after = (float(correct(part, given)[rows].mean()) for given in (part.original_positions, answers))
    return MeasureChange(side or "accuracy", before, after, change.delta, mcnemar(change.repairs, change.harms).p_value)


def _f1(part: ScoreTable, answers: IntArray) -> float:
    """With yes as the positive answer; NaN where yes is neither given nor right."""
    given = np.array([name == "yes" for name in part.candidate_names(answers)])
    right = np.array([name == "yes" for name in part.column("answer")])
    total = int(given.sum() + right.sum())
    return 2 * int((given & right).sum()) / total if total else math.nan


def only_answer(part: ScoreTable) -> str | None:
    """The right answer of all rows, if there are several and it is the same in all: always giving it is then enough.

    >>> from unprior import synthesize
    >>> qa = synthesize(seed=0).where(task="qa")
    >>> only_answer(qa), only_answer(qa.where(answer="no"))
    (None, 'no')
    """
    answers = {str(answer) for answer in part.column("answer")}
    return answers.pop() if len(answers) == 1 and len(part) > 1 else None


def always_same(places: Mapping[str, str | None]) -> tuple[str, ...]:
    """A sentence about the benchmarks and tasks where one answer is always right; none if there are none.

    >>> always_same({"conflictvis MC": None, "conflictvis QA": "yes"})
    ('All right answers of conflictvis QA are “yes”, so a gain there may only show a bias towards that answer.',)
    """
    by_answer: dict[str, list[str]] = {}
    for place, answer in places.items():
        if answer is not None:
            by_answer.setdefault(answer, []).append(place)
    return tuple(
        f"All right answers of {format_list(names)} are “{answer}”, so a gain there may only show a bias towards that "
        f"answer."
        for answer, names in by_answer.items()
    )
