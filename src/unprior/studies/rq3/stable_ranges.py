"""RQ3: how far may λ move before a proposal changes?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.calibration import Constant, Decisions
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.plots.display import task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores.schema import BoolArray
from unprior.scores.table import FloatArray
from unprior.studies.common.variants import more_or_less
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult
from unprior.studies.rq3.frontier import selected_strength
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_percent
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_UP_TO = 1.6
"""The paper shows ranges up to this strength."""


@dataclass(frozen=True, slots=True)
class TaskRanges:
    """The stable ranges of all proposals of one task, sorted by lower and then by upper end.

    The uncertainty-aware version may propose a candidate that no single strength puts first; such rows have no range
    and are counted in ``without``.
    """

    task: str
    low: FloatArray
    high: FloatArray
    """May be infinite."""
    strength: FloatArray
    """λ that made the proposal."""
    repaired: BoolArray
    harmed: BoolArray
    without: int
    max_strength: float
    """The selected cap λ_max."""
    fixed_strength: float | None
    """λ*, the one strength fitted for all examples, if known."""

    @property
    def radius(self) -> FloatArray:
        """Distance of λ to the nearer end of its range."""
        return np.minimum(self.strength - self.low, self.high - self.strength)

    def record(self) -> dict[str, Any]:
        """The paper's summary of the ranges."""
        width = self.high - self.low
        bounded = np.isfinite(width)
        return {
            "task": self.task,
            "n": len(self.low),
            "without_range": self.without,
            "median_bounded_width": _median(width[bounded]),
            "share_unbounded": _mean(~bounded),
            "max_strength": self.max_strength,
            "share_max_strength_inside": _mean(self._inside(self.max_strength)),
            "fixed_strength": self.fixed_strength,
            "share_fixed_strength_outside": (
                None if self.fixed_strength is None else _mean(~self._inside(self.fixed_strength))
            ),
            "median_radius_repaired": _median(self.radius[self.repaired]),
            "median_radius_harmed": _median(self.radius[self.harmed]),
        }

    def _inside(self, strength: float) -> BoolArray:
        return (self.low <= strength) & (strength <= self.high)


@dataclass(frozen=True, slots=True)
class Ranges(StudyResult):
    """Stable ranges by task; empty for a calibrator that abstains.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_ranges(SelectivePriorCalibrator().fit(table).predict(table))
    >>> [(task.task, len(task.low)) for task in result.tasks]
    [('mc', 600), ('qa', 600)]
    """

    tasks: tuple[TaskRanges, ...]
    method: str
    """SPC with its version and ε."""

    def of(self, task: str) -> TaskRanges:
        """The ranges of one task."""
        return next(each for each in self.tasks if each.task == task)

    def records(self) -> list[dict[str, Any]]:
        """One summary per task."""
        return [task.record() for task in self.tasks]

    @property
    def table(self) -> Table:
        """The summary of every task."""
        rows = [
            (
                task.task.upper(),
                _shown(record["median_bounded_width"]),
                format_percent(record["share_unbounded"]),
                f"{task.max_strength:g}",
                format_percent(record["share_max_strength_inside"]),
                _shown(task.fixed_strength),
                format_percent(record["share_fixed_strength_outside"]),
                f"{_shown(record['median_radius_repaired'])}/{_shown(record['median_radius_harmed'])}",
            )
            for task, record in zip(self.tasks, self.records(), strict=True)
        ]
        return Table.plain(
            "Strengths that keep the same proposal",
            ("Task", "Median width", "Unbounded (%)", "Cap λ", "Cap inside (%)", "One λ*", "λ* outside (%)",
             "Median radius repaired/harmed"),
            rows,
            f"{self.method}. The median width is that of bounded ranges. λ* is one strength for all examples, fitted "
            f"on the development pairs. The radius is the distance of λ to the nearer end of its range.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """How wide the ranges are, and whether the radius tells repairs from harms."""
        sentences = []
        for task, record in zip(self.tasks, self.records(), strict=True):
            name, width = f"{task.task.upper()}, {self.method}", record["median_bounded_width"]
            words = "no range is bounded" if width is None else f"the median width of a bounded range is {width:.2f}"
            sentences.append(
                f"{name}: {words}, {format_percent(record['share_unbounded'])} % have no upper end, and the cap of "
                f"{task.max_strength:g} lies inside for {format_percent(record['share_max_strength_inside'])} %."
            )
            repaired, harmed = record["median_radius_repaired"], record["median_radius_harmed"]
            if repaired is not None and harmed is not None:
                word = more_or_less(repaired - harmed, "larger than", "smaller than", "equal to")
                sentences.append(
                    f"{name}: the median radius of repairs ({repaired:.2f}) is {word} that of harms ({harmed:.2f})."
                )
            else:
                found = [
                    f"no {what} has a stability radius"
                    if radius is None
                    else f"the median stability radius of {what}s is {radius:.2f}"
                    for what, radius in (("repair", repaired), ("harm", harmed))
                ]
                sentences.append(f"{name}: {format_list(found)}.")
        return tuple(sentences) or (f"{self.method} abstains; it makes no proposals.",)

    def panels(self) -> Panels | None:
        """A line for every example: the strengths that keep its proposal, up to ``SHOWN_UP_TO``, and λ as a dot."""
        return Panels.per_task(Ranges._draw, self, [each.task for each in self.tasks], 4.5, 4.6)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        from matplotlib.collections import LineCollection

        ranges = self.of(task)
        count = len(ranges.low)
        groups = (
            (~ranges.repaired & ~ranges.harmed, style.quiet, "neither", 1.0, 0.4),
            (ranges.repaired, style.repaired, "repaired", 1.8, 0.75),
            (ranges.harmed, style.harmed, "harmed", 1.8, 0.75),
        )
        thickness = float(np.clip(260 / max(count, 1), 0.5, 4.0))
        ends = np.minimum(np.stack([ranges.low, ranges.high], axis=1), SHOWN_UP_TO)
        for level, (members, colour, name, times, alpha) in enumerate(groups, start=2):
            if members.any():
                heights = np.flatnonzero(members)
                segments = np.stack([ends[members], np.repeat(heights[:, None], 2, axis=1)], axis=2)
                lines = LineCollection(
                    list(segments), colors=colour, linewidths=times * thickness, alpha=alpha, zorder=level
                )
                ax.add_collection(lines)
                ax.plot(ranges.strength[members], heights, ".", color=style.ink, markersize=3.0,
                        markeredgecolor="none", zorder=5)  # fmt: skip
                ax.plot([], [], color=colour, linewidth=2, label=f"{name} ({len(heights)})")
        ax.plot([], [], ".", color=style.ink, markersize=5, label="fitted λ")
        ax.axvline(ranges.max_strength, color=style.ink, linestyle="--", linewidth=1.0, zorder=6,
                   label=f"cap λ = {ranges.max_strength:g}")  # fmt: skip
        if ranges.fixed_strength is not None:
            ax.axvline(ranges.fixed_strength, color=style.control, linestyle=":", linewidth=1.6, zorder=6,
                       label=f"one λ* = {ranges.fixed_strength:.2f} for all")  # fmt: skip
        ax.set(xlim=(-0.03, SHOWN_UP_TO), ylim=(-1, count), yticks=[], title=task_name(task))
        ax.set(xlabel=f"strength λ, {self.method}", ylabel=f"{count} examples, sorted")
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, columnspacing=1.4)


def study_ranges(decisions: Decisions, *, fixed_strength: float | None = None) -> Ranges:
    """Collect the stable ranges of all proposals, task by task."""
    if decisions.settings is None:
        return Ranges((), decisions.method)
    table = decisions.table
    before, after = correct(table, table.original_positions), correct(table, decisions.final_positions)
    results = []
    for (task,), rows in group_rows(table, "task").items():
        found = rows[~np.isnan(decisions.range_low[rows])]
        order = found[np.lexsort((decisions.range_high[found], decisions.range_low[found]))]
        results.append(
            TaskRanges(
                task=str(task),
                low=decisions.range_low[order],
                high=decisions.range_high[order],
                strength=decisions.strength[order],
                repaired=(~before & after)[order],
                harmed=(before & ~after)[order],
                without=len(rows) - len(found),
                max_strength=decisions.settings.max_strength,
                fixed_strength=fixed_strength,
            )
        )
    return Ranges(tuple(results), decisions.method)


def _median(values: FloatArray) -> float | None:
    """None without values, and where the middle is infinite."""
    middle = float(np.median(values)) if len(values) else math.inf
    return middle if math.isfinite(middle) else None


def _mean(flags: BoolArray) -> float | None:
    return float(flags.mean()) if len(flags) else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def fitted_ranges(inputs: StudyInputs) -> Ranges:
    """The stable ranges of SPC's proposals, beside the one strength that its gate selects on the same rows."""
    control = inputs.fitted().clone(strength=Constant()).fit(inputs.development, split=None)
    return study_ranges(inputs.decisions(), fixed_strength=selected_strength(control, inputs.test))


STUDY = Study(
    name="stable-ranges",
    title="Strengths that keep the same proposal",
    asks="How far may the correction strength move before a proposal changes?",
    how="For every test example the range of λ in which the proposal of {method} stays first; "
    "λ* is the selected fixed strength of the same development pairs.",
    run=fitted_ranges,
    figure="fig:lambda-intervals",
)
