"""Variants of SPC side by side: what several studies share, and its figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from unprior.calibration import Decisions
from unprior.plots.display import Display, task_name
from unprior.plots.panels import Panels
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.common.trade_off import TradeOff, draw_changes, trade_offs
from unprior.studies.result import StudyResult, format_repairs
from unprior.tables.format import EQUAL, format_changes, format_limit, highest
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
class Variants(StudyResult):
    """Variants that are evaluated on the same test rows; studies add the title and the sentences.

    >>> from unprior import synthesize
    >>> from unprior.studies.rq3.joint_fitting import study_joint_fitting
    >>> table = synthesize(seed=0)
    >>> result = study_joint_fitting(table.where(split="dev"), table.where(split="test"))
    >>> result.tasks, result.best("mc"), result.method
    (('mc', 'qa'), ('joint',), 'SPC (standard, ε = 0.04)')
    """

    variants: tuple[SpcVariant, ...]
    method: str
    """Version and ε that all variants have in common, such as ``SPC (standard, ε = 0.04)``."""

    @classmethod
    def from_decisions(cls, rows: Iterable[tuple[str, str, Decisions]]) -> Self:
        """Variants by name and label, all of the same version and ε."""
        given = list(rows)
        return cls(tuple(SpcVariant.from_decisions(*row) for row in given), given[0][2].method)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that every variant has."""
        return tuple(result.task for result in self.variants[0].tasks)

    def of(self, name: str, group: str | None = None) -> SpcVariant:
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
        words = f"{self.method}; ΔCF/ΔCS in points. {caption} Bold: highest U = ΔCF + 0.5 ΔCS of the task."
        return Table(title, columns, tuple(sections), words)

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every variant, one panel per task."""
        size = 5.2, VariantsDisplay.height(self)
        return Panels.per_task(VariantsDisplay.from_results, self, self.tasks, *size, same_scale=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantsDisplay(Display):
    """One task: ΔCF and ΔCS of every variant on a common scale.

    >>> from unprior import synthesize
    >>> from unprior.studies.rq3.joint_fitting import study_joint_fitting
    >>> table = synthesize(seed=0)
    >>> results = study_joint_fitting(table.where(split="dev"), table.where(split="test"))
    >>> VariantsDisplay.from_results(results, task="mc").rows
    ('MC and QA', 'MC only', 'QA only')
    """

    rows: tuple[str, ...]
    """Variants from top to bottom."""
    cf: tuple[float, ...]
    """ΔCF in points."""
    cs: tuple[float, ...]
    """ΔCS in points."""

    @staticmethod
    def height(results: Variants) -> float:
        """Inches that the lines need."""
        groups = len({each.group for each in results.variants})
        return 1.25 + 0.34 * len(results.variants) + 0.2 * groups

    @classmethod
    def from_results(cls, results: Variants, *, task: str, ax: Axes | None = None, style: FigureStyle = LIGHT) -> Self:
        """Draw one task on ``ax``, or on a new figure."""
        outcomes = [each.on(task) for each in results.variants]
        cf = tuple(100 * outcome.cf.delta for outcome in outcomes)
        cs = tuple(100 * outcome.cs.delta for outcome in outcomes)
        rows = tuple(each.label for each in results.variants)
        with style.applied():
            axes = ax or style.new_axes(5.2, cls.height(results))
            display = cls(axes_=axes, style=style, rows=rows, cf=cf, cs=cs)
            display._draw(results, task)
        return display

    def _draw(self, results: Variants, task: str) -> None:
        axes, style = self.axes_, self.style
        heights, place, last = [], 0.0, None
        for each in results.variants:
            if each.group != last:
                place += 0.9
                ground = {"boxstyle": "square,pad=0.1", "facecolor": style.paper, "edgecolor": "none"}
                axes.annotate(str(each.group), (0.01, place - 0.85), xycoords=("axes fraction", "data"), fontsize=8,
                              color=style.quiet, va="center", bbox=ground)  # fmt: skip
            heights.append(place)
            place, last = place + 1.0, each.group
        draw_changes(axes, style, heights, self.cf, self.cs)
        best = [index for index, each in enumerate(results.variants) if each.name in results.best(task, each.group)]
        axes.plot([self.cf[index] for index in best], [heights[index] for index in best], "o", markersize=11,
                  markerfacecolor="none", markeredgecolor=style.cf, label="highest U")  # fmt: skip
        axes.set_yticks(heights, self.rows)
        axes.set_ylim(place - 0.4, -0.6)
        axes.set(title=task_name(task), xlabel=f"change (points), {results.method}")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45 / (self.height(results) - 1.0)), ncols=3,
                    columnspacing=1.0, handletextpad=0.3)  # fmt: skip


def spc_name(epsilon: float, *, uncertainty: bool) -> str:
    """SPC with its version and limit, as ``Decisions.method`` names it.

    >>> spc_name(0.1, uncertainty=True)
    'SPC (uncertainty-aware, ε = 0.10)'
    """
    return f"SPC ({'uncertainty-aware' if uncertainty else 'standard'}, ε = {format_limit(epsilon)})"


def more_or_less(difference: float, more: str = "a higher", less: str = "a lower", same: str = "the same") -> str:
    """A word for the sign of a difference.

    >>> more_or_less(0.1), more_or_less(-0.1), more_or_less(0.0)
    ('a higher', 'a lower', 'the same')
    """
    return same if abs(difference) < EQUAL else more if difference > 0 else less
