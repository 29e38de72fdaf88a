"""RQ3: what each of the two support conditions contributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.calibration.gate import CONDITIONS, REASONS, Condition, Reason
from unprior.calibration.selection import Ties
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.studies.common.trade_off import trade_offs
from unprior.studies.common.variants import SpcVariant, Variants
from unprior.studies.study import Study

AGAIN, KEPT = "Settings selected again", "Settings for both conditions kept"

_ALLOWED: dict[str, tuple[str, tuple[Condition, ...] | None]] = {
    "full": ("Both conditions", CONDITIONS),
    "absorption": ("Without conflict: only absorption", (Condition.ABSORPTION,)),
    "conflict": ("Without absorption: only conflict", (Condition.CONFLICT,)),
    "none": ("No condition required", None),
}


@dataclass(frozen=True, slots=True)
class SupportConditions(Variants):
    """SPC with both conditions, with either, and with none required; settings selected again, and kept.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_support_conditions(table.where(split="dev"), table.where(split="test"))
    >>> [variant.name for variant in result.rows if variant.group == AGAIN]
    ['full', 'absorption', 'conflict', 'none']
    """

    title = "Contribution of the two support conditions"
    differ_in = "Revision is allowed under"
    caption = (
        "Conflict: image and prior scores disagree and the proposal is the image's winner. "
        "Absorption: original, image and prior agree."
    )
    counts = True

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is lost without a condition."""
        if self.of("full", AGAIN).abstains:
            return (f"{self.method} abstains, so its conditions are never checked.",)
        sentences = []
        for task in self.tasks:
            full, absorption, conflict, none = (self.of(name, AGAIN).on(task) for name in _ALLOWED)
            kept = f" ({absorption.cf.delta / full.cf.delta:.0%} of the full ΔCF)" if full.cf.delta > 0 else ""
            sentences += [
                f"On {task.upper()} {self.method} gives {full.changes}, and {none.changes} without any condition.",
                f"On {task.upper()} {self.method} gives {absorption.changes}{kept} with absorption alone and "
                f"{conflict.changes} with conflict alone.",
            ]
        return tuple(sentences)


def study_support_conditions(
    development: ScoreTable, test: ScoreTable, *, epsilon: float = 0.10, ties: Ties = "first"
) -> SupportConditions:
    """Remove conditions from the gate: with the other settings selected again, and with those of SPC kept."""
    spc = SelectivePriorCalibrator(epsilon_cs=epsilon, ties=ties)
    decided = {
        name: spc.clone(conditions=allowed).fit(development, split=None).predict(test)
        for name, (_, allowed) in _ALLOWED.items()
    }
    full = decided["full"]
    again = [SpcVariant.from_decisions(name, _ALLOWED[name][0], each, AGAIN) for name, each in decided.items()]
    kept = [
        SpcVariant(name, label, trade_offs(test, allow(full, allowed)), full.settings is None, KEPT)
        for name, (label, allowed) in _ALLOWED.items()
    ]
    return SupportConditions((*again, *kept), full.method)


def allow(decisions: Decisions, allowed: tuple[Condition, ...] | None) -> IntArray:
    """Answers if only some conditions supported a revision, or (None) if none were required; all else as decided."""
    revised = np.isin(np.array(REASONS)[decisions.reason], CONDITIONS if allowed is None else allowed)
    if allowed is None:  # the condition is the last check, so whatever failed there passed all others
        revised |= decisions.reason == REASONS.index(Reason.NO_CONDITION)
    return np.where(revised, decisions.proposal_positions, decisions.table.original_positions)


STUDY = Study(
    name="support-conditions",
    title="Contribution of the two support conditions",
    asks="Which of the two score patterns that support a revision makes the repairs?",
    how="Standard SPC, ε = {wide_epsilon}. The gate accepts both conditions, one of them, or asks for none (margin "
    "and number of candidates are still checked). The strength fits do not depend on the gate; the settings are "
    "selected again for every gate, and in the second part those for both conditions are kept.",
    run=lambda inputs: study_support_conditions(
        inputs.development, inputs.test, epsilon=inputs.wide_epsilon, ties=inputs.ties
    ),
)
