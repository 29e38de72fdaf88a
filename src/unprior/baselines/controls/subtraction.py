"""Controls that subtract the prior in one fixed way and always adopt the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unprior.baselines.controls.control import ControlContext, ControlResult
from unprior.baselines.controls.proposals import GUIDANCE_SCALES, STRENGTHS, fixed_strength_answers, guided_answers
from unprior.calibration import TaskChange


def fixed_strength(*strengths: float) -> Callable[[ControlContext], ControlResult]:
    """One strength for every example, chosen on the development rows if several are given."""

    def run(context: ControlContext) -> ControlResult:
        proposals = [fixed_strength_answers(context.development, strength) for strength in strengths]
        best, feasible, changes = context.adopt(proposals)
        settings = {"strength": strengths[best]}
        return ControlResult(fixed_strength_answers(context.test, strengths[best]), settings, feasible, changes)

    return run


def selected_strength(context: ControlContext) -> ControlResult:
    """The best strength of the paper's grid."""
    return fixed_strength(*STRENGTHS)(context)


def guidance(context: ControlContext, scales: Sequence[float] = GUIDANCE_SCALES) -> ControlResult:
    """Classifier-free guidance on the scores of whole answers; every task chooses its own scale."""
    context.check_tasks()
    proposals = [guided_answers(context.development, scale) for scale in scales]
    answers = np.empty(len(context.test), dtype=np.int64)
    tasks = np.array(context.test.column("task"))
    chosen: dict[str, float] = {}
    kept: list[bool] = []
    changes: list[TaskChange] = []
    for task in context.groups.tasks:
        best, feasible, change = context.adopt(proposals, task)
        chosen[task] = scales[best]
        kept.append(feasible)
        changes += change
        rows = tasks == task
        answers[rows] = guided_answers(context.test, scales[best])[rows]
    return ControlResult(answers, {"scale": chosen}, all(kept), tuple(changes))


def ungated(context: ControlContext) -> ControlResult:
    """SPC's learned strength with its chosen cap, always adopted; a calibrator that abstains proposes nothing."""
    calibrator = context.calibrator
    if calibrator.settings_ is None:
        return ControlResult(context.test.original_positions.copy(), {}, feasible=False, changes=(), abstains=True)
    _, feasible, changes = context.adopt([calibrator.predict(context.development).proposal_positions])
    settings = {"rho": calibrator.settings_.rho, "max_strength": calibrator.settings_.max_strength}
    return ControlResult(calibrator.predict(context.test).proposal_positions, settings, feasible, changes)
