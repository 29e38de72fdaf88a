"""RQ3: what each part of SPC contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unprior.baselines.controls.proposals import FIXED_STRENGTH, fixed_strength_answers
from unprior.calibration import Decisions
from unprior.studies.trade_off import TradeOff, trade_offs


@dataclass(frozen=True, slots=True)
class Component:
    """One variant of the method."""

    variant: str
    """``no_subtraction``, ``fixed``, ``ungated`` or ``spc``."""
    label: str
    """Its name for people."""
    tasks: tuple[TradeOff, ...]


@dataclass(frozen=True, slots=True)
class Components:
    """The rows of the paper's component table, SPC last.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> [row.variant for row in study_components(decisions).rows]
    ['no_subtraction', 'fixed', 'ungated', 'spc']
    """

    rows: tuple[Component, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that every row has."""
        return tuple(result.task for result in self.rows[0].tasks)

    def records(self) -> list[dict[str, Any]]:
        """One record per variant and task."""
        return [
            {"variant": row.variant, "label": row.label} | result.record() for row in self.rows for result in row.tasks
        ]


def study_components(decisions: Decisions, *, strength: float = FIXED_STRENGTH) -> Components:
    """Take the method apart: rescoring alone, one fixed strength, the learned strength without its gate, and SPC.

    A calibrator that abstains makes no proposals, so the ungated row is then left out.
    """
    table = decisions.table
    variants = [
        ("no_subtraction", "No subtraction (λ = 0)", fixed_strength_answers(table, 0.0)),
        ("fixed", f"Fixed strength (λ = {strength:g})", fixed_strength_answers(table, strength)),
    ]
    if decisions.settings is not None:
        variants.append(("ungated", "Learned strength, no gate", decisions.proposal))
    variants.append(("spc", "SPC", decisions.final))
    return Components(tuple(Component(name, label, trade_offs(table, given)) for name, label, given in variants))
