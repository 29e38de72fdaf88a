"""RQ3: what each part of SPC contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unprior.baselines.controls.proposals import FIXED_STRENGTH, fixed_strength_answers
from unprior.calibration import Decisions
from unprior.studies.common.trade_off import changes_by_task, trade_offs
from unprior.studies.common.variants import ComparedRows, SpcVariant
from unprior.studies.result import format_repairs
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_points
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class Components(ComparedRows):
    """The rows of the paper's component table: ``no_subtraction``, ``fixed``, ``ungated`` and ``spc``.

    The third is not there where SPC abstains.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> [row.name for row in study_components(decisions).rows]
    ['no_subtraction', 'fixed', 'ungated', 'spc']
    """

    def records(self) -> list[dict[str, Any]]:
        """One record per variant and task."""
        return [
            {"variant": row.name, "label": row.label} | result.record() for row in self.rows for result in row.tasks
        ]

    @property
    def table(self) -> Table:
        """ΔCF/ΔCS by variant and task, with the repairs and harms of both sides and U."""
        rows = []
        for row in self.rows:
            cells = [row.label]
            for result in row.tasks:
                counts = f"{format_repairs(result.cf)}; {format_repairs(result.cs)}"
                cells += [result.changes, counts, format_points(result.utility)]
            rows.append(cells)
        heads = ("ΔCF/ΔCS", "repairs/harms (CF; CS)", "U")
        return Table.plain(
            "Component analysis of SPC",
            ("Variant", *(f"{task.upper()} {head}" for task in self.tasks for head in heads)),
            rows,
            f"Points of accuracy against the original answers; U = ΔCF + 0.5 ΔCS. The learned strength is that of "
            f"{self.rows[-1].label}.",
            bold=(len(rows) - 1,),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What rescoring alone does, and what the gate changes."""
        alone, spc = self.rows[0], self.rows[-1]
        gains = [
            f"{format_points(ours.cf.delta - theirs.cf.delta)} on {ours.task.upper()}"
            for ours, theirs in zip(spc.tasks, alone.tasks, strict=True)
        ]
        sentences = (
            f"Choosing the best image-scored candidate without subtraction changes CF/CS accuracy by "
            f"{changes_by_task(alone.tasks)}.",
            f"The CF change of {spc.label} beyond that is {format_list(gains)}.",
        )
        ungated = next((row for row in self.rows if row.name == "ungated"), None)
        if ungated is None:
            return (*sentences, f"{spc.label} abstains, so there is no proposal to adopt.")
        moves = changes_by_task(spc.tasks, ungated.tasks)
        return (*sentences, f"The gate of {spc.label} changes ΔCF/ΔCS of its proposals by {moves}.")


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
        variants.append(("ungated", "Learned strength, no gate", decisions.proposal_positions))
    variants.append(("spc", decisions.method, decisions.final_positions))
    return Components(tuple(SpcVariant(name, label, trade_offs(table, given)) for name, label, given in variants))


STUDY = Study(
    name="components",
    title="Component analysis of SPC",
    asks="What does each part of SPC contribute?",
    how="Test answers of {method} beside three variants that always adopt their "
    "proposal: no subtraction, one fixed strength of 0.8, and the learned strength.",
    run=lambda inputs: study_components(inputs.decisions()),
    label="tab:components",
)
