"""What a control is, what it may look at, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unprior.calibration import SelectivePriorCalibrator, TaskChange
from unprior.calibration.choice import choose
from unprior.calibration.development import development_rows
from unprior.calibration.selection import Groups
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray

_SHARED_PARAMETERS = ("epsilon_cs", "uncertainty", "grid", "ties")


@dataclass(frozen=True, slots=True, eq=False)
class ControlResult:
    """What a control chose on the development rows and answers on the test rows.

    >>> from unprior import synthesize
    >>> from unprior.baselines.controls import run_controls
    >>> table = synthesize(seed=0)
    >>> (result,) = run_controls(table.where(split="dev"), table.where(split="test"), names=["selected-strength"])
    >>> result.settings, result.feasible
    ({'strength': 0.5}, True)
    """

    answers: IntArray
    """Candidate positions for the test rows, -1 for null."""
    settings: dict[str, Any]
    """What was chosen, as plain values."""
    feasible: bool
    """Whether the choice keeps the promise ΔCF ≥ 0 and ΔCS ≥ −ε on every development task."""
    changes: tuple[TaskChange, ...]
    """What the choice does to the development rows, by task; empty from a control that abstains."""
    abstains: bool = False
    """Nothing was feasible, so every original answer stays."""
    name: str = ""
    label: str = ""
    """The name for people."""
    proposals: tuple[IntArray, IntArray] | None = None
    """What a learned rule judges: candidate positions for development and test rows; None for other controls."""


@dataclass(frozen=True, slots=True)
class Control:
    """A rule on scores that is chosen on development rows and then applied to test rows."""

    name: str
    label: str
    """The name for people."""
    run: Callable[[ControlContext], ControlResult]

    def result(self, context: ControlContext) -> ControlResult:
        """Run the control and put its name on what it gives."""
        return replace(self.run(context), name=self.name, label=self.label)


class ControlContext:
    """The rows of both splits with the calibrator under study, and how a selection is made on them."""

    def __init__(self, development: ScoreTable, test: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
        """Take development rows with answers and both sides, and a calibrator that may still be fitted."""
        self.development = development_rows(development, None)
        self.test = test
        self.groups = Groups.from_table(self.development)
        self.parameters = {name: getattr(calibrator, name) for name in _SHARED_PARAMETERS}
        self._given = calibrator

    @property
    def epsilon_cs(self) -> float:
        """Permitted loss of commonsense accuracy on a development task."""
        return float(self.parameters["epsilon_cs"])

    @cached_property
    def calibrator(self) -> SelectivePriorCalibrator:
        """The calibrator under study, fitted on the development rows if it was not fitted yet."""
        if hasattr(self._given, "model_"):
            return self._given
        return self._given.clone().fit(self.development, split=None)

    def gains(self, proposals: IntArray) -> IntArray:
        """+1 where a proposal for a development row repairs the original answer, -1 where it harms it."""
        rows = self.development
        return np.asarray(rows.is_right(proposals).astype(np.int64) - rows.is_right(rows.original_positions))

    def adopt(self, proposals: Sequence[IntArray], task: str | None = None) -> tuple[int, bool, tuple[TaskChange, ...]]:
        """Choose between proposals for all development rows (of one task) that are always adopted.

        There is no abstaining here: when nothing is feasible the best is taken, and the answer says so.
        """
        rows = np.arange(len(self.development)) if task is None else np.flatnonzero(self.development.mask(task=task))
        groups = self.groups if task is None else Groups.from_table(self.development, rows).only(task)
        size = len(groups.totals)
        nets = [
            np.rint(np.bincount(groups.group, weights=self.gains(each)[rows], minlength=size)).astype(np.int64)
            for each in proposals
        ]
        changed = [int((each != self.development.original_positions)[rows].sum()) for each in proposals]
        choice = choose(np.stack(nets), np.array(changed), groups.totals, self.epsilon_cs)
        return choice.index, choice.feasible > 0, groups.changes(nets[choice.index])

    def check_tasks(self) -> None:
        """Refuse test rows of a task that has no development rows to choose on."""
        unknown = {str(task) for task in self.test.column("task")} - set(self.groups.tasks)
        if unknown:
            raise UnpriorError(
                f"the test rows have task {', '.join(sorted(unknown))}, the development rows only "
                f"{', '.join(self.groups.tasks)}; a control is chosen on development rows of every task"
            )
