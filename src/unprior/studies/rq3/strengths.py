"""RQ3: the correction strengths of SPC; does it subtract more where the prior misleads?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.calibration import Decisions
from unprior.evaluation.comparison import group_rows
from unprior.plots.display import task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores.table import FloatArray
from unprior.studies.common.variants import more_or_less
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_percent
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDES = {"cf": "counterfactual", "cs": "commonsense"}


@dataclass(frozen=True, slots=True)
class StrengthGroup:
    """The strengths of one side of one task, or of both."""

    task: str
    side: str
    """``cf``, ``cs`` or ``both``."""
    values: FloatArray
    """λ of every example, in the order of the table."""
    at_cap: int
    """How many reach the cap λ_max."""

    def record(self) -> dict[str, Any]:
        """Size, mean, quartiles, and the share at the cap."""
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75]).tolist()
        return {
            "task": self.task,
            "side": self.side,
            "n": len(self.values),
            "mean": float(self.values.mean()),
            "lower_quartile": low,
            "median": middle,
            "upper_quartile": high,
            "share_at_cap": self.at_cap / len(self.values),
        }


@dataclass(frozen=True, slots=True)
class Strengths(StudyResult):
    """The distribution of λ by task and side.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_strengths(SelectivePriorCalibrator().fit(table).predict(table))
    >>> [(group.task, group.side) for group in result.groups]
    [('mc', 'cf'), ('mc', 'cs'), ('qa', 'cf'), ('qa', 'cs')]
    """

    groups: tuple[StrengthGroup, ...]
    max_strength: float | None
    """The cap λ_max; None from a calibrator that abstains, which then has no groups."""
    method: str
    """SPC with its version and ε."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks with strengths."""
        return tuple(dict.fromkeys(group.task for group in self.groups))

    def of(self, task: str) -> tuple[StrengthGroup, ...]:
        """Both sides of one task."""
        return tuple(group for group in self.groups if group.task == task)

    def both_sides(self, task: str) -> StrengthGroup:
        """Both sides of one task together."""
        groups = self.of(task)
        values = np.concatenate([group.values for group in groups])
        return StrengthGroup(task, "both", values, sum(group.at_cap for group in groups))

    def records(self) -> list[dict[str, Any]]:
        """One record per task and side, then one per task."""
        return [group.record() for group in (*self.groups, *map(self.both_sides, self.tasks))]

    @property
    def table(self) -> Table:
        """Quartiles and the share at the cap."""
        rows = []
        for group in (group for task in self.tasks for group in (self.both_sides(task), *self.of(task))):
            record, both = group.record(), group.side == "both"
            quartiles = (f"{record[name]:.3f}" for name in ("lower_quartile", "median", "upper_quartile"))
            names = group.task.upper(), "CF and CS" if both else group.side.upper()
            cells = (*names, str(record["n"]), *quartiles, format_percent(record["share_at_cap"]))
            rows.append(Row(cells, bold=both))
        return Table(
            "Correction strengths of the test examples",
            ("Task", "Images", "n", "Lower quartile", "Median", "Upper quartile", "At the cap (%)"),
            (Section(None, tuple(rows)),),
            f"{self.method} abstains; it gives no strengths." if self.max_strength is None else
            f"{self.method}. λ is capped at {self.max_strength:g}. The calibrator never sees which side an image "
            f"belongs to.",
            text_columns=2,
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """The middle half of the strengths, and whether counterfactual images get more."""
        sentences = []
        for task in self.tasks:
            record = self.both_sides(task).record()
            low, high = record["lower_quartile"], record["upper_quartile"]
            sentences.append(
                f"The middle half of the {task.upper()} strengths of {self.method} lies between {low:.3f} and "
                f"{high:.3f}; {format_percent(record['share_at_cap'])} % reach the cap of {self.max_strength:g}."
            )
            medians = {group.side: group.record()["median"] for group in self.of(task)}
            if {"cf", "cs"} <= set(medians):
                cf, cs = medians["cf"], medians["cs"]
                word = more_or_less(cf - cs, "higher than", "lower than", "the same as")
                sentences.append(f"On {task.upper()} the median strength of {self.method} on CF images ({cf:.3f}) is "
                                 f"{word} on CS images ({cs:.3f}).")  # fmt: skip
        return tuple(sentences) or (f"{self.method} abstains; it gives no strengths.",)

    def panels(self) -> Panels | None:
        """How often each strength was given on either side, for every task."""
        return Panels.per_task(Strengths._draw, self, self.tasks, 5.4, 3.1)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        groups = self.of(task)
        top = max([self.max_strength or 0.0, *(float(group.values.max()) for group in groups)])
        edges = np.linspace(0.0, top, 25)
        for group in groups:
            colour = style.cf if group.side == "cf" else style.cs
            counts, _ = np.histogram(group.values, edges)
            ax.stairs(counts, edges, color=colour, fill=True, alpha=0.22)
            middle = float(np.median(group.values))
            name = f"{_SIDES.get(group.side, group.side)} (median {middle:.2f})"
            ax.stairs(counts, edges, color=colour, linewidth=1.6, label=name)
            ax.axvline(middle, color=colour, linestyle=":", linewidth=1.4)
        ax.set(xlabel=f"strength λ, {self.method}", ylabel="examples", title=task_name(task), xlim=(0.0, 1.02 * top))
        ax.grid(visible=False, axis="x")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def study_strengths(decisions: Decisions) -> Strengths:
    """Collect the strengths by task and side."""
    if decisions.settings is None:
        return Strengths((), None, decisions.method)
    cap = decisions.settings.max_strength
    groups = []
    for (task, side), rows in group_rows(decisions.table, "task", "side").items():
        values = decisions.strength[rows]
        groups.append(StrengthGroup(str(task), str(side), values, int((values >= cap).sum())))
    return Strengths(tuple(groups), cap, decisions.method)


STUDY = Study(
    name="strengths",
    title="Correction strengths",
    asks="How strongly is the prior subtracted, and does that differ from example to example?",
    how="The capped strength λ that {method} gives to every test example: quartiles and the "
    "share that reaches the selected cap.",
    run=lambda inputs: study_strengths(inputs.decisions()),
)
