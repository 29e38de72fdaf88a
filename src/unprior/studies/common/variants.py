"""Variants of SPC side by side: what several studies share, and its figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from unprior.calibration import Decisions
from unprior.calibration.decisions import method_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.studies.common.trade_off import TradeOff, draw_changes, trade_off_panels, trade_offs
from unprior.studies.result import StudyResult, format_repairs
from unprior.tables.format import EQUAL, format_changes, highest
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class SpcVariant:
    """One row of a study: a variant of SPC and what it repairs and costs."""

    name: str
    label: str
    """Its name in tables."""
    tasks: tuple[TradeOff, ...]
    abstains: bool = False
    """Whether no setting was feasible, so that every answer stays."""
    group: str | None = None
    """Heading of the rows it belongs to."""

    @classmethod
    def from_decisions(cls, name: str, label: str, decisions: Decisions, group: str | None = None) -> SpcVariant:
        """What decisions do to the answers of their table."""
        return cls(name, label, trade_offs(decisions.table, decisions), decisions.settings is None, group)

    def on(self, task: str) -> TradeOff:
        """The outcome on one task."""
        return next(result for result in self.tasks if result.task == task)


@dataclass(frozen=True, slots=True)
class ComparedRows(StudyResult):
    """Rows that are judged on the same test examples; in the figure, that of SPC is bold."""

    rows: tuple[SpcVariant, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that every row has."""
        return tuple(result.task for result in self.rows[0].tasks)

    def of(self, name: str, group: str | None = None) -> SpcVariant:
        """One row by name."""
        return next(each for each in self.rows if (each.name, each.group) == (name, group))

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every row, one panel per task."""
        return trade_off_panels([(row.label, row.tasks) for row in self.rows], bold=(self.of("spc").label,))


@dataclass(frozen=True, slots=True)
class Variants(ComparedRows):
    """Variants of one version of SPC with one ε; studies add the words of the table, and the sentences.

    >>> from unprior import synthesize
    >>> from unprior.studies.rq3.joint_fitting import study_joint_fitting
    >>> table = synthesize(seed=0)
    >>> result = study_joint_fitting(table.where(split="dev"), table.where(split="test"))
    >>> result.tasks, result.best("mc"), result.method
    (('mc', 'qa'), ('joint',), 'SPC (standard, ε = 0.04)')
    """

    method: str
    """Version and ε that all variants have in common, such as ``SPC (standard, ε = 0.04)``."""
    title: ClassVar[str]
    """Of the table."""
    differ_in: ClassVar[str]
    """What the rows differ in: the head of the first column."""
    caption: ClassVar[str]
    """What the caption says about this study."""
    digits: ClassVar[int] = 1
    counts: ClassVar[bool] = False
    """Whether the table shows the repairs and harms on counterfactual images."""

    @classmethod
    def from_decisions(cls, rows: Iterable[tuple[str, str, Decisions]]) -> Self:
        """Variants by name and label, all of the same version and ε."""
        given = list(rows)
        return cls(tuple(SpcVariant.from_decisions(*row) for row in given), given[0][2].method)

    def best(self, task: str, group: str | None = None) -> tuple[str, ...]:
        """Names of the variants with the highest U_0.5 on a task; more than one when they are equal."""
        return highest({each.name: each.on(task).utility for each in self.rows if each.group == group})

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
            for each in self.rows
            for result in each.tasks
        ]

    @property
    def table(self) -> Table:
        """ΔCF/ΔCS by variant and task, the highest U_0.5 of every task bold."""

        def cell(result: TradeOff) -> str:
            change = format_changes(result.cf.delta, result.cs.delta, self.digits)
            return f"{change} ({format_repairs(result.cf)})" if self.counts else change

        sections: dict[str | None, list[Row]] = {each.group: [] for each in self.rows}
        for each in self.rows:
            bold = [place for place, task in enumerate(self.tasks, 1) if each.name in self.best(task, each.group)]
            label = f"{each.label} (abstains)" if each.abstains else each.label
            cells = (label, *(cell(each.on(task)) for task in self.tasks))
            sections[each.group].append(Row(cells, bold_cells=tuple(bold)))
        what = "ΔCF/ΔCS (CF repairs/harms)" if self.counts else "ΔCF/ΔCS"
        return Table(
            self.title,
            (self.differ_in, *(f"{task.upper()} {what}" for task in self.tasks)),
            tuple(Section(group, tuple(rows)) for group, rows in sections.items()),
            f"{self.method}; ΔCF/ΔCS in points. {self.caption} Bold: highest U = ΔCF + 0.5 ΔCS of the task.",
        )

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every variant on a common scale, one panel per task; the highest U has a ring."""
        return Panels.per_task(type(self)._draw, self, self.tasks, 5.2, self._height, same_scale=True)

    @property
    def _height(self) -> float:
        """Inches that the lines need."""
        return 1.25 + 0.34 * len(self.rows) + 0.2 * len({each.group for each in self.rows})

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        heights: list[float] = []
        place, last = 0.0, None
        for each in self.rows:
            if each.group != last:
                place += 0.9
                ground = {"boxstyle": "square,pad=0.1", "facecolor": style.paper, "edgecolor": "none"}
                ax.annotate(str(each.group), (0.01, place - 0.85), xycoords=("axes fraction", "data"), fontsize=8,
                            color=style.quiet, va="center", bbox=ground)  # fmt: skip
            heights.append(place)
            place, last = place + 1.0, each.group
        draw_changes(ax, style, task, [(each.label, each.on(task)) for each in self.rows], heights)
        best = [(100 * each.on(task).cf.delta, height) for each, height in zip(self.rows, heights, strict=True)
                if each.name in self.best(task, each.group)]  # fmt: skip
        ax.plot(*zip(*best, strict=True), "o", markersize=11, markerfacecolor="none", markeredgecolor=style.cf,
                label="highest U")  # fmt: skip
        ax.set_xlabel(f"change (points), {self.method}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45 / (self._height - 1.0)), ncols=3, columnspacing=1.0,
                  handletextpad=0.3)  # fmt: skip


def spc_name(epsilon: float, *, uncertainty: bool) -> str:
    """SPC with its version and limit, as ``Decisions.method`` names it.

    >>> spc_name(0.1, uncertainty=True)
    'SPC (uncertainty-aware, ε = 0.10)'
    """
    return method_name("uncertainty-aware" if uncertainty else "standard", epsilon)


def more_or_less(difference: float, more: str = "a higher", less: str = "a lower", same: str = "the same") -> str:
    """A word for the sign of a difference.

    >>> more_or_less(0.1), more_or_less(-0.1), more_or_less(0.0)
    ('a higher', 'a lower', 'the same')
    """
    return same if abs(difference) < EQUAL else more if difference > 0 else less
