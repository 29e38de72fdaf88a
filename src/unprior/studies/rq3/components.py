"""RQ3: what each part of SPC contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.baselines.controls.proposals import FIXED_STRENGTH, fixed_strength_answers
from unprior.calibration import Decisions
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_list
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle


@dataclass(frozen=True, slots=True)
class Component:
    """One variant of the method."""

    variant: str
    """``no_subtraction``, ``fixed``, ``ungated`` or ``spc``."""
    label: str
    """Its name for people."""
    tasks: tuple[TradeOff, ...]


@dataclass(frozen=True, slots=True)
class Components(StudyResult):
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

    @property
    def table(self) -> Table:
        """ΔCF/ΔCS by variant and task."""
        rows = tuple(
            Row(
                (row.label, *(format_changes(result.cf.delta, result.cs.delta) for result in row.tasks)),
                row.variant == "spc",
            )
            for row in self.rows
        )
        return Table(
            "Component analysis of SPC",
            ("Variant", *(f"{task.upper()} ΔCF/ΔCS" for task in self.tasks)),
            (Section(None, rows),),
            "Points of accuracy against the original answers.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What rescoring alone does, and what the gate changes."""
        by_name = {row.variant: row for row in self.rows}
        alone, spc, ungated = (by_name.get(name) for name in ("no_subtraction", "spc", "ungated"))
        assert alone is not None  # these two rows are always there
        assert spc is not None
        words = format_list(
            [f"{format_changes(each.cf.delta, each.cs.delta)} on {each.task.upper()}" for each in alone.tasks]
        )
        gains = [f"{100 * (ours.cf.delta - theirs.cf.delta) + 0.0:+.1f} on {ours.task.upper()}"
                 for ours, theirs in zip(spc.tasks, alone.tasks, strict=True)]  # fmt: skip
        said = [
            f"Choosing the best image-scored candidate without subtraction changes CF/CS accuracy by {words}.",
            f"SPC's CF change beyond that is {format_list(gains)}.",
        ]
        if ungated is None:
            return (*said, "The calibrator abstains, so there is no proposal to adopt.")
        moves = [
            f"{format_changes(gated.cf.delta - free.cf.delta, gated.cs.delta - free.cs.delta)} on {gated.task.upper()}"
            for gated, free in zip(spc.tasks, ungated.tasks, strict=True)
        ]
        return (*said, f"The gate moves ΔCF/ΔCS of the learned proposals by {format_list(moves)}.")

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """ΔCF and ΔCS of every variant."""
        from unprior.report.figures.trade_offs import draw_trade_offs

        return draw_trade_offs([(row.label, row.tasks) for row in self.rows], style, bold=("SPC",))


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
    variants.append(("spc", "SPC", decisions.final_positions))
    return Components(tuple(Component(name, label, trade_offs(table, given)) for name, label, given in variants))


STUDY = Study(
    name="components",
    question="rq3",
    title="Component analysis of SPC",
    asks="What does each part of SPC contribute?",
    how="Test answers of standard SPC (ε = {epsilon}) beside three variants that always adopt their proposal: no "
    "subtraction, one fixed strength of 0.8, and the learned strength.",
    needs=("scores",),
    run=lambda inputs: study_components(inputs.decisions()),
)
