"""All controls by name, and running them."""

from __future__ import annotations

from collections.abc import Sequence

from unprior.baselines.controls.control import Control, ControlContext, ControlResult
from unprior.baselines.controls.gated import gated_strength
from unprior.baselines.controls.learned import learned_rule
from unprior.baselines.controls.proposals import (
    FIXED_STRENGTH,
    GUIDANCE_SCALES,
    STRENGTHS,
    fixed_strength_answers,
    guided_answers,
)
from unprior.baselines.controls.subtraction import fixed_strength, guidance, selected_strength, ungated
from unprior.calibration import SelectivePriorCalibrator
from unprior.errors import UnpriorError, did_you_mean
from unprior.scores import ScoreTable

CONTROLS: dict[str, Control] = {
    name: Control(name, label, run)
    for name, label, run in (
        ("no-subtraction", "No subtraction", fixed_strength(0.0)),
        ("fixed-strength", f"Fixed λ = {FIXED_STRENGTH:g}", fixed_strength(FIXED_STRENGTH)),
        ("fixed-strength-gated", f"Fixed λ = {FIXED_STRENGTH:g}, gated", gated_strength(FIXED_STRENGTH)),
        ("selected-strength", "Selected λ", selected_strength),
        ("selected-strength-gated", "Selected λ, gated", gated_strength()),
        # λ = 1 without a gate is the pointwise mutual information by which language-model harnesses normalise.
        ("direct-subtraction", "Direct (PMI, λ = 1)", fixed_strength(1.0)),
        ("cfg-score", "CFG on scores", guidance),
        ("learned-rule-fixed", "Learned rule, fixed λ", learned_rule(fixed_strength_answers, STRENGTHS)),
        ("learned-rule-direct", "Learned rule, guided", learned_rule(guided_answers, GUIDANCE_SCALES)),
        ("ungated-adaptive", "Adaptive λ, no gate", ungated),
    )
}
"""Every control in the order of tables."""


def run_controls(
    development: ScoreTable,
    test: ScoreTable,
    *,
    calibrator: SelectivePriorCalibrator | None = None,
    epsilon_cs: float = 0.04,
    names: Sequence[str] | None = None,
) -> list[ControlResult]:
    """Choose every control on the development rows and apply it to the test rows, whose answers are not looked at.

    Parameters
    ----------
    development
        Rows to choose on, with answers and both sides of every task; all of them are used.
    test
        Rows to answer.
    calibrator
        Gives ε, version and grid; its fit is the adaptive control's. One is fitted when it is not given.
    epsilon_cs
        Permitted loss of commonsense accuracy, without a calibrator.
    names
        Which controls; by default all.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> results = run_controls(table.where(split="dev"), table.where(split="test"))
    >>> [result.name for result in results] == list(CONTROLS)
    True
    """
    chosen = list(CONTROLS) if names is None else list(names)
    unknown = [name for name in chosen if name not in CONTROLS]
    if unknown:
        like = did_you_mean(unknown[0], CONTROLS)
        raise UnpriorError(f"no control {', '.join(unknown)}{like}; there are {', '.join(CONTROLS)}")
    context = ControlContext(development, test, calibrator or SelectivePriorCalibrator(epsilon_cs=epsilon_cs))
    return [CONTROLS[name].result(context) for name in chosen]
