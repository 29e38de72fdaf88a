"""Controls that subtract the prior in one fixed way and always adopt the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unprior.baselines.controls.control import ControlResult, Data
from unprior.baselines.controls.proposals import GUIDANCE_SCALES, STRENGTHS, fixed_strength_answers, guided_answers
from unprior.calibration import TaskChange


def fixed_strength(*strengths: float) -> Callable[[Data], ControlResult]:
    """One strength for every example, chosen on the development rows if several are given."""

    def run(data: Data) -> ControlResult:
        proposals = [fixed_strength_answers(data.development, strength) for strength in strengths]
        best, feasible, changes = data.adopt(proposals)
        settings = {"strength": strengths[best]}
        return ControlResult(fixed_strength_answers(data.test, strengths[best]), settings, feasible, changes)

    return run


def selected_strength(data: Data) -> ControlResult:
    """The best strength of the paper's grid."""
    return fixed_strength(*STRENGTHS)(data)


def guidance(data: Data, scales: Sequence[float] = GUIDANCE_SCALES) -> ControlResult:
    """Classifier-free guidance on the scores of whole answers; every task chooses its own scale."""
    data.check_tasks()
    proposals = [guided_answers(data.development, scale) for scale in scales]
    answers = np.empty(len(data.test), dtype=np.int64)
    tasks = np.array(data.test.column("task"))
    chosen: dict[str, float] = {}
    kept: list[bool] = []
    changes: list[TaskChange] = []
    for task in data.groups.tasks:
        best, feasible, change = data.adopt(proposals, task)
        chosen[task] = scales[best]
        kept.append(feasible)
        changes += change
        rows = tasks == task
        answers[rows] = guided_answers(data.test, scales[best])[rows]
    return ControlResult(answers, {"scale": chosen}, all(kept), tuple(changes))


def ungated(data: Data) -> ControlResult:
    """SPC's learned strength with its chosen cap, always adopted; a calibrator that abstains proposes nothing."""
    calibrator = data.calibrator
    if calibrator.settings_ is None:
        return ControlResult(data.test.original_positions.copy(), {}, feasible=False, changes=(), abstains=True)
    _, feasible, changes = data.adopt([calibrator.predict(data.development).proposal_positions])
    settings = {"rho": calibrator.settings_.rho, "max_strength": calibrator.settings_.max_strength}
    return ControlResult(calibrator.predict(data.test).proposal_positions, settings, feasible, changes)
