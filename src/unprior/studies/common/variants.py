"""Variants of SPC side by side: what several studies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.calibration import Decisions
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.result import StudyResult, format_repairs
from unprior.tables.format import EQUAL, format_changes, highest
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a study: a variant of the method and what it repairs and costs."""

    name: str
    label: str
    """Its name for people."""
    tasks: tuple[TradeOff, ...]
    abstains: bool = False
    """Whether no setting was feasible, so that every answer stays."""
    group: str | None = None
    """Heading of the rows it belongs to."""

    @classmethod
    def of(cls, name: str, label: str, decisions: Decisions, group: str | None = None) -> Variant:
        """What decisions do to the answers of their table."""
        return cls(name, label, trade_offs(decisions.table, decisions), decisions.settings is None, group)

    def on(self, task: str) -> TradeOff:
        """The outcome on one task."""
        return next(result for result in self.tasks if result.task == task)


@dataclass(frozen=True, slots=True)
class Variants(StudyResult):
    """Variants that are judged on the same test rows.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> result = Variants((Variant.of("spc", "SPC", decisions),))
    >>> result.tasks, result.best("mc"), len(result.records())
    (('mc', 'qa'), ('spc',), 2)
    """

    variants: tuple[Variant, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that every variant has."""
        return tuple(result.task for result in self.variants[0].tasks)

    def of(self, name: str, group: str | None = None) -> Variant:
        """One variant by name."""
        return next(each for each in self.variants if (each.name, each.group) == (name, group))

    def best(self, task: str, group: str | None = None) -> tuple[str, ...]:
        """Names of the variants with the highest U_0.5 on a task; more than one when they are equal."""
        return highest({each.name: each.on(task).utility for each in self.variants if each.group == group})

    def records(self) -> list[dict[str, Any]]:
        """One record per variant and task."""
        return [
            {"variant": each.name, "label": each.label, "group": each.group}
            | result.record()
            | {
                "changed": result.cf.changed + result.cs.changed,
                "abstains": each.abstains,
                "best_utility": each.name in self.best(result.task, each.group),
            }
            for each in self.variants
            for result in each.tasks
        ]

    def to_table(self, title: str, head: str, caption: str, *, digits: int = 1, counts: bool = False) -> Table:
        """ΔCF/ΔCS by variant and task, the highest U_0.5 of every task bold; ``counts`` adds CF repairs/harms."""

        def cell(result: TradeOff) -> str:
            change = format_changes(result.cf.delta, result.cs.delta, digits)
            return f"{change} ({format_repairs(result.cf)})" if counts else change

        sections = []
        for group in dict.fromkeys(each.group for each in self.variants):
            rows = []
            for each in (each for each in self.variants if each.group == group):
                bold = tuple(
                    place for place, task in enumerate(self.tasks, start=1) if each.name in self.best(task, group)
                )
                label = f"{each.label} (abstains)" if each.abstains else each.label
                rows.append(Row((label, *(cell(each.on(task)) for task in self.tasks)), bold_cells=bold))
            sections.append(Section(group, tuple(rows)))
        what = "ΔCF/ΔCS (CF repairs/harms)" if counts else "ΔCF/ΔCS"
        columns = (head, *(f"{task.upper()} {what}" for task in self.tasks))
        return Table(title, columns, tuple(sections), caption)

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """ΔCF and ΔCS of every variant, one panel per task."""
        from unprior.plots.style import LIGHT
        from unprior.report.figures import VariantsDisplay, side_by_side

        chosen = style or LIGHT
        draws = [
            lambda axes, task=task: VariantsDisplay.from_results(self, task=task, ax=axes, style=chosen)
            for task in self.tasks
        ]
        return side_by_side(draws, 5.2, VariantsDisplay.height(self), chosen, same_scale=True)


def more_or_less(difference: float, more: str = "a higher", less: str = "a lower", same: str = "the same") -> str:
    """A word for the sign of a difference.

    >>> more_or_less(0.1), more_or_less(-0.1), more_or_less(0.0)
    ('a higher', 'a lower', 'the same')
    """
    return same if abs(difference) < EQUAL else more if difference > 0 else less
