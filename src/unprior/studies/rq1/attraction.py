"""RQ1: do wrong answers on counterfactual images go where the prior points?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import Share, compare_with_partner, correct, prior_winners
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle, readable_on
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.studies.inputs import External
from unprior.studies.result import StudyResult, grouped
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_list, format_percent
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENOUGH = 5
_NONE = Share(0, 0)
_ORDINARY = ("prior_is_ordinary", "ordinary_among_errors", "errors_ordinary")


@dataclass(frozen=True, slots=True)
class AttractionCell:
    """Wrong original answers to the counterfactual images of one group."""

    task: str
    category: str | None
    """None for the whole task."""
    subcategory: str | None
    """None for the whole task."""
    attracted: Share
    """Wrong answers that are the prior's winner."""
    chance: float
    """Share to expect if every wrong answer fell on any of the wrong candidates alike; NaN without errors.

    With two candidates this *is* the observed share: a wrong answer is the prior's winner whenever the prior is wrong.
    """
    prior_is_ordinary: Share
    """Commonsense examples whose right answer is the prior's winner."""
    ordinary_among_errors: Share
    """Wrong counterfactual answers in whose pair the prior's winner is the commonsense answer."""
    errors_ordinary: Share = _NONE
    """Wrong counterfactual answers that are themselves the commonsense answer of their pair."""
    benchmark: str | None = None
    """None for the benchmark under study."""

    def record(self) -> dict[str, Any]:
        """Plain numbers; what is undefined is None."""
        return {
            **{name: getattr(self, name) for name in ("benchmark", "task", "category", "subcategory")},
            "errors": self.attracted.total,
            "attracted": self.attracted.count,
            "rate": finite_or_none(self.attracted.value),
            "chance": finite_or_none(self.chance),
            **{name: finite_or_none(getattr(self, name).value) for name in _ORDINARY},
        }


@dataclass(frozen=True, slots=True)
class Attraction(StudyResult):
    """The attraction matrix: subcategories by tasks, and the rates of whole tasks.

    >>> from unprior import synthesize
    >>> result = study_attraction(synthesize(seed=0).where(split="test"))
    >>> len(result.cells), [cell.task for cell in result.overall]
    (28, ['mc', 'qa'])
    """

    overall: tuple[AttractionCell, ...]
    """One per task."""
    cells: tuple[AttractionCell, ...]
    """One per subcategory and task, in the order of the table; empty when it names no subcategory."""
    others: tuple[AttractionCell, ...] = ()
    """One per task of every other benchmark with pairs."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Columns of the matrix."""
        return tuple(cell.task for cell in self.overall)

    @property
    def subcategories(self) -> tuple[str, ...]:
        """Rows of the matrix."""
        return tuple(dict.fromkeys(str(cell.subcategory) for cell in self.cells))

    def cell(self, subcategory: str | None, task: str) -> AttractionCell | None:
        """One entry of the matrix; with subcategory None that of the whole task."""
        cells = (*self.overall, *self.cells)
        return next((cell for cell in cells if (cell.subcategory, cell.task) == (subcategory, task)), None)

    def records(self) -> list[dict[str, Any]]:
        """Whole tasks first, then the matrix, then other benchmarks."""
        return [cell.record() for cell in (*self.overall, *self.cells, *self.others)]

    @property
    def table(self) -> Table:
        """Rates of the whole tasks, and of those of other benchmarks."""
        sections = [Section(None, tuple(_row(cell.task.upper(), cell) for cell in self.overall))]
        if self.others:
            rows = tuple(_row(f"{cell.benchmark} {cell.task.upper()}", cell) for cell in self.others)
            sections.append(Section("Other benchmarks", rows))
        return Table(
            "Prior attraction of wrong CF answers (%)",
            ("Task", "CF errors", "Prior's winner", "By chance", "CS answer", "Winner is CS answer (errors)",
             "(all pairs)"),
            tuple(sections),
            "By chance: errors spread evenly over the wrong candidates; with two candidates there is no choice. CS "
            "answer: errors that are the right answer to the pair's commonsense image. Last columns: pairs whose CS "
            "answer is the prior's winner, among the errors and among all.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """How directed the errors are, and where most."""
        sentences = [
            f"Of {format_count(cell.attracted.total, f'wrong {cell.task.upper()} answer')} to counterfactual images "
            f"{format_percent(cell.attracted.value)} % are what the model answers without the image, {_beside(cell)}."
            for cell in self.overall
            if cell.attracted.total
        ]
        if shares := self._shares("ordinary_among_errors", "the {} errors"):
            sentences.append(f"The answer without the image is that to the pair's commonsense image in {shares}.")
        if large := [cell for cell in self.cells if cell.attracted.total >= _ENOUGH]:
            cells = grouped(large, key=lambda cell: cell.attracted.value)
            most, least = max(cells), min(cells)
            words = f"highest in {_named(cells[most])} and lowest in {_named(cells[least])}"
            words = words if most > least else f"{format_percent(most)} % everywhere"
            sentences.append(f"Among cells with at least {_ENOUGH} errors the rate is {words}.")
        sentences = sentences or ["There are no wrong answers to counterfactual images."]
        if shares := self._shares("prior_is_ordinary", "{} questions"):
            sentences.append(f"About commonsense images the answer without the image is right for {shares}.")
        return (*sentences, *map(_elsewhere, self.others))

    def _shares(self, name: str, of: str) -> str:
        """A share of every whole task that has one, in words."""
        shares = [(cell.task.upper(), getattr(cell, name)) for cell in self.overall]
        words = [f"{format_percent(share.value)} % of {of.format(task)}" for task, share in shares if share.total]
        return format_list(words)

    def panels(self) -> Panels:
        """The matrix as a heat map."""
        return Panels((self._draw,), 4.5, 0.75 + 0.31 * (1 + len(self.subcategories)))

    def _draw(self, axes: Axes, style: FigureStyle) -> None:
        """Subcategories by tasks, and whole tasks a little apart: the rate and n, the number of errors."""
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.patches import Rectangle

        ramp = LinearSegmentedColormap.from_list("attraction", style.ramp)
        names, last = (*self.subcategories, None), len(self.subcategories)
        tops = [row + (0.25 if 0 < row == last else 0.0) for row in range(len(names))]
        for (row, name), (column, task) in product(enumerate(names), enumerate(self.tasks)):
            cell, top = self.cell(name, task), tops[row]
            share = _NONE if cell is None else cell.attracted
            face = ramp(share.value) if share.total else style.grid
            words = readable_on(ramp(share.value)) if share.total else style.quiet
            axes.add_patch(Rectangle((column + 0.02, top + 0.04), 0.96, 0.92, facecolor=face, edgecolor="none"))
            text, align = (f"{100 * share.value:.0f} %", "right") if share.total else ("no errors", "center")
            weight = "bold" if row == last else "normal"
            axes.text(column + 0.53, top + 0.5, text, color=words, ha=align, va="center", fontweight=weight)
            if share.total:
                axes.text(column + 0.58, top + 0.5, f"n = {share.total}", color=words, va="center", fontsize=7.5)
        axes.set(xlim=(0, len(self.tasks)), ylim=(tops[-1] + 1, 0))
        axes.set_xticks([column + 0.5 for column in range(len(self.tasks))], [task.upper() for task in self.tasks])
        axes.set_yticks([top + 0.5 for top in tops], (*self.subcategories, "All"))
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)


def study_attraction(table: ScoreTable, others: Mapping[str, External] | None = None) -> Attraction:
    """Among wrong original answers to counterfactual images, the share that equals the prior's winner.

    An original answer that could not be parsed is wrong and not attracted. ``others`` are benchmarks by name; those
    with pairs are reported by task.

    >>> from unprior import synthesize
    >>> multiple_choice = study_attraction(synthesize(seed=0).where(split="test", task="mc")).overall[0]
    >>> multiple_choice.attracted.value > 2 * multiple_choice.chance
    True
    """
    groups = group_rows(table, "category", "subcategory", "task").items()
    cells = [
        replace(_cell(table.take(rows), task), category=category, subcategory=subcategory)
        for (category, subcategory, task), rows in sorted(groups, key=lambda group: int(group[1][0]))
        if subcategory is not None
    ]
    overall = [_cell(table.take(rows), task) for (task,), rows in group_rows(table, "task").items()]
    elsewhere = [
        replace(_cell(other.table.take(rows), task), benchmark=name)
        for name, other in (others or {}).items()
        if other.table.is_paired.all()
        for (task,), rows in group_rows(other.table, "task").items()
    ]
    return Attraction(tuple(overall), tuple(cells), tuple(elsewhere))


def _row(name: str, cell: AttractionCell) -> Row:
    shares = [getattr(cell, share).value for share in reversed(_ORDINARY)]
    return Row((name, str(cell.attracted.total), *map(format_percent, (cell.attracted.value, cell.chance, *shares))))


def _elsewhere(cell: AttractionCell) -> str:
    """The counts of another benchmark."""
    attracted, ordinary = cell.attracted, cell.errors_ordinary
    errors = (
        f"it is the wrong answer in {attracted.count} of {format_count(attracted.total, 'CF error')}, and "
        f"{ordinary.count} of {ordinary.total} are the ordinary answer."
    )
    return (
        f"On {cell.benchmark} {cell.task.upper()} the prior's winner is the ordinary answer in "
        f"{format_percent(cell.prior_is_ordinary.value)} % of pairs; "
        f"{errors if attracted.total else 'no CF answer is wrong there.'}"
    )


def _beside(cell: AttractionCell) -> str:
    if cell.task == "qa" and cell.chance == cell.attracted.value:
        return "but with two candidates an error has no choice"
    return f"against {format_percent(cell.chance)} % expected by chance"


def _named(cells: Sequence[AttractionCell]) -> str:
    """One cell by its name, several by their number; with their rate."""
    first, rate = cells[0], f"{format_percent(cells[0].attracted.value)} %"
    alone = f"{first.subcategory} ({first.task.upper()}, {rate})"
    return alone if len(cells) == 1 else f"{len(cells)} of them ({rate})"


def _cell(part: ScoreTable, task: str) -> AttractionCell:
    winner = prior_winners(part)
    wrong = part.is_cf & ~correct(part, part.original_positions)
    # An undirected error hits the prior's winner once in K - 1 times, and never if that is the right answer.
    possible = ~part.is_right(winner) & (part.original_positions >= 0) & (part.candidate_counts > 1)
    expected = np.where(possible, 1.0 / np.maximum(part.candidate_counts - 1, 1), 0.0)[wrong]
    ordinary = part.is_right(winner) & ~part.is_cf
    matched, same = compare_with_partner(part, winner)
    _, said_ordinary = compare_with_partner(part, part.original_positions)
    return AttractionCell(
        task=str(task),
        category=None,
        subcategory=None,
        attracted=Share(int((wrong & (part.original_positions == winner)).sum()), int(wrong.sum())),
        chance=float(expected.mean()) if len(expected) else math.nan,
        prior_is_ordinary=Share(int(ordinary.sum()), int((~part.is_cf).sum())),
        ordinary_among_errors=Share(int((wrong & same).sum()), int((wrong & matched).sum())),
        errors_ordinary=Share(int((wrong & said_ordinary).sum()), int((wrong & matched).sum())),
    )


STUDY = Study(
    name="attraction",
    figure="fig:rq1-matrix",
    title="Prior attraction by subcategory",
    asks="When the model is wrong about a counterfactual image, does it say what it would say without the image?",
    how="Among wrong original answers to counterfactual test images, the share that equals the candidate with the "
    "highest text-only score, by subcategory and task; other benchmarks with pairs by task, where they were scored.",
    run=lambda inputs: study_attraction(inputs.test, inputs.external),
    takes_open=True,
)
