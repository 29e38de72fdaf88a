"""RQ2: SPC beside other methods and beside controls on the same scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.baselines.answers import Cost, MethodAnswers
from unprior.baselines.controls import ControlResult, run_controls
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import TaskResult, evaluate, holm
from unprior.evaluation.show import flat_sides
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.plots.display import draw_zero, limits, task_name
from unprior.plots.labels import NEAR, place_labels, room
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.studies.common.versions import spc_versions
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult, Test, format_repairs, grouped
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_p, format_points, format_settings
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Results = tuple[TaskResult, ...]
_LEVEL = 0.95
_ABSTAINS, _NOT_FEASIBLE = "abstains: no setting feasible", "not feasible on the development rows"
_MARKS = {_ABSTAINS: "†", _NOT_FEASIBLE: "‡"}
_MIN_SHOWN = -12.0
_STAR, _OTHER = 13.0, 8.0  # what markers take up
_MARKERS = {"prompt": "^", "decoder": "s", "edit": "v", "control": "o", "spc": "*"}


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method of the comparison."""

    name: str
    label: str
    """The name for people; that of SPC says version and ε."""
    kind: str
    """``prompt``, ``decoder``, ``edit``, ``control`` or ``spc``."""
    note: str | None
    """What a reader must know about its choice on the development rows."""
    settings: dict[str, Any]
    tasks: Results
    """Against the common original answers; Holm over all of these in the table."""
    matched: Results | None
    """Against the same decoder with its correction switched off; Holm over all of these in the table."""
    cost: Cost | None
    """None where it was not measured."""


@dataclass(frozen=True, slots=True)
class MethodPoint:
    """One method on one task, in points of accuracy."""

    number: int
    """In the order of tables, from 1."""
    label: str
    kind: str
    cs: float
    cf: float
    outside: bool = False
    """Whether it loses too much to be shown without squeezing all others."""


@dataclass(frozen=True, slots=True)
class Methods(StudyResult):
    """All methods in the order of tables: baselines, controls, SPC with the version under study first.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_methods(calibrator.predict(table.where(split="test")), calibrator, table.where(split="dev"))
    >>> len(result.rows), result.rows[-1].label, result.family, result.best("mc")
    (11, 'SPC (standard, ε = 0.04)', 44, ('fixed-strength',))
    """

    rows: tuple[MethodRow, ...]
    original_cost: Cost | None
    """What the original answer costs; None where it was not measured."""
    level: float
    """Of the intervals."""
    resamples: int
    seed: int

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that every method answers."""
        return tuple(result.task for result in self.rows[0].tasks)

    @property
    def family(self) -> int:
        """Number of tests against the original answers that the Holm adjustment covers."""
        return sum(2 * len(row.tasks) for row in self.rows)

    @property
    def matched_family(self) -> int:
        """Number of tests against matched decoders that the Holm adjustment covers."""
        return sum(2 * len(row.matched) for row in self.rows if row.matched is not None)

    def best(self, task: str) -> tuple[str, ...]:
        """Names of the methods with the largest U on a task; several when they are exactly equal."""
        index = self.tasks.index(task)
        values = {row.name: _exact_utility(row.tasks[index]) for row in self.rows}
        return tuple(name for name, value in values.items() if value == max(values.values()))

    @property
    def table(self) -> Table:
        """A section for every task; the largest U of the task is bold."""
        columns = ["Method", "ΔCF/ΔCS", "U", "R/H CF", "R/H CS", "Changed", "p CF", "p CS"]
        matched = ["Matched ΔCF/ΔCS"] if self.matched_family else []
        lines = [tuple(self._line(row, index) for row in self.rows) for index in range(len(self.tasks))]
        sections = tuple(map(Section, map(task_name, self.tasks), lines))
        return Table("Repair and retention by method", (*columns, *matched), sections, self._caption())

    def _line(self, row: MethodRow, index: int) -> Row:
        result = row.tasks[index]
        cf, cs = result.cf, result.cs
        cells = [
            f"{row.label} {_MARKS[row.note]}" if row.note else row.label,
            result.changes,
            format_points(result.utility),
            *(format_repairs(side.change) for side in (cf, cs)),
            str(cf.change.changed + cs.change.changed),
            *(format_p(side.test.p_value) for side in (cf, cs)),
        ]
        if self.matched_family:
            cells.append("–" if row.matched is None else row.matched[index].changes)
        bold = ((0,) if row.kind == "spc" else ()) + ((1, 2) if row.name in self.best(result.task) else ())
        return Row(tuple(cells), bold_cells=bold)

    def _caption(self) -> str:
        parts = [
            "All against the common original answers. Δ and U = ΔCF + 0.5 ΔCS in points, the largest U of a task bold. "
            "R/H: repairs and harms. Changed: answers on both sides. p: exact two-sided McNemar tests, not adjusted."
        ]
        own = [row.label for row in self.rows if row.kind == "spc"]
        if own and any(row.kind == "control" for row in self.rows):
            parts.append(f"Controls are chosen on the development pairs like {own[0]}.")
        if self.matched_family:
            parts.append("Matched: against the same decoder with its correction switched off.")
        notes = {row.note for row in self.rows}
        parts += [f"{mark} {note}." for note, mark in _MARKS.items() if note in notes]
        return " ".join(parts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is best by task, where SPC stands if it is not, and who makes counterfactual answers worse."""
        sentences, worse = [], dict[str, list[str]]()  # tasks by method
        for index, task in enumerate(self.tasks):
            best = [row for row in self.rows if row.name in self.best(task)]
            sentences.append(
                f"On {task.upper()} {format_list([row.label for row in best])} {'has' if len(best) == 1 else 'have'} "
                f"the highest U ({format_points(best[0].tasks[index].utility)}){self._runner_up(index, best)}."
            )
            for row in self.rows:
                if row.kind != "spc" and row.tasks[index].cf.change.delta < 0:
                    worse.setdefault(row.label, []).append(task.upper())
        named = [f"{label} (on {format_list(tasks)})" for label, tasks in worse.items()]
        return (*sentences, *([f"CF accuracy falls with {format_list(named)}."] if named else []))

    def _runner_up(self, index: int, best: Sequence[MethodRow]) -> str:
        """The best of those on the other side: another method where SPC leads, SPC where it does not."""
        leads = {row.kind == "spc" for row in best}
        rivals = [row for row in self.rows if {row.kind == "spc"} != leads and row not in best]
        if not rivals or len(leads) > 1:
            return ""
        second = max(rivals, key=lambda row: row.tasks[index].utility)
        return f", against {format_points(second.tasks[index].utility)} of {second.label}"

    def panels(self) -> Panels | None:
        """Repair against retention, one panel per task."""
        return Panels.per_task(Methods._draw, self, self.tasks, 4.5, 3.4)

    def points(self, task: str) -> tuple[MethodPoint, ...]:
        """The methods as the figure shows them."""
        place = self.tasks.index(task)
        found = []
        for number, row in enumerate(self.rows, start=1):
            cs, cf = (100 * side.change.delta for side in (row.tasks[place].cs, row.tasks[place].cf))
            found.append(MethodPoint(number, row.label, row.kind, cs, cf))
        own = next((point for point in found if point.kind == "spc"), found[-1])
        cs, cf = (min(1.6 * change, _MIN_SHOWN) for change in (own.cs, own.cf))
        return tuple(replace(point, outside=point.cs < cs or point.cf < cf) for point in found)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        """Retention to the right, repair upwards, one numbered point per method and SPC as a star."""
        points = self.points(task)
        shown, outside = ([point for point in points if point.outside == lost] for lost in (False, True))
        across, upwards = (limits([getattr(point, side) for point in shown]) for side in ("cs", "cf"))
        ax.set(xlim=across, ylim=upwards, title=task_name(task))
        ax.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)")
        ax.grid(visible=False)
        ax.locator_params(nbins=6, integer=True)
        _draw_equal_utility(ax, style)
        draw_zero(ax, style)
        looks: dict[str, dict[str, Any]] = {
            "spc": {"color": style.method, "markersize": _STAR, "markeredgecolor": style.paper, "zorder": 6},
            "control": {"color": style.quiet, "markersize": 5.5, "markerfacecolor": style.paper, "zorder": 4},
        }
        other = {"color": style.control, "markersize": 7, "markeredgecolor": style.paper, "zorder": 5}
        for point in points:
            at = ([], []) if point.outside else ([point.cs], [point.cf])
            ax.plot(*at, label=f"{point.number}  {point.label}", marker=_MARKERS[point.kind], linestyle="none",
                    **looks.get(point.kind, other))  # fmt: skip
        _draw_numbers(ax, style, shown, stars=sum(point.kind == "spc" for point in points) > 1)
        if outside:
            numbers = ", ".join(str(point.number) for point in outside)
            ax.set_title(f"not shown: {numbers}", loc="right", fontsize=7.8, fontweight="normal", color=style.quiet)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), handlelength=1.0, handletextpad=0.5, fontsize=8.2,
                  labelspacing=0.35)  # fmt: skip

    def tests(self) -> tuple[Test, ...]:
        """The tests of every method, each a family of its own."""
        return tuple(test for row in self.rows for test in Test.from_tasks(row.label, row.tasks))

    def records(self) -> list[dict[str, Any]]:
        """One record per method and task."""
        return [self._record(row, index) for row in self.rows for index in range(len(row.tasks))]

    def _record(self, row: MethodRow, index: int) -> dict[str, Any]:
        result, matched = row.tasks[index], None if row.matched is None else row.matched[index]
        return {
            "method": row.name, "label": row.label, "kind": row.kind, "note": row.note, "task": result.task,
            "settings": format_settings(row.settings), "utility": result.utility,
            "best_utility": row.name in self.best(result.task),
            **flat_sides(result),
            "matched_utility": None if matched is None else matched.utility,
            **{f"matched_{name}": None if matched is None else value
               for name, value in flat_sides(matched or result).items()},
            **{f"cost_{name}": getattr(row.cost, name, None) for name in ("images", "passes", "seconds", "examples")},
        }  # fmt: skip


def _draw_equal_utility(axes: Axes, style: FigureStyle) -> None:
    """Faint lines on which U = ΔCF + 0.5 ΔCS is the same."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    lowest, highest = bottom + 0.5 * left, top + 0.5 * right
    step = next(step for step in (1, 2, 5, 10, 20, 50) if (highest - lowest) / step <= 7)
    for value in np.arange(math.ceil(lowest / step) * step, highest, step).tolist():
        axes.axline((0, value), slope=-0.5, color=style.grid, linewidth=0.9, zorder=1)
        height = value - 0.5 * right
        if bottom < height < top:
            words = f"U {value:+.0f}".replace("-", "−") if value else "U 0"
            axes.annotate(words, (right, height), (3, 0), textcoords="offset points", fontsize=7, va="center",
                          color=style.quiet, annotation_clip=False)  # fmt: skip


def _draw_numbers(axes: Axes, style: FigureStyle, shown: Sequence[MethodPoint], *, stars: bool) -> None:
    """Number the points, SPC only if there are several ``stars``; methods at the very same place share one label."""
    together = grouped(shown, key=lambda point: (point.cs, point.cf))
    texts = [", ".join(str(point.number) for point in each if point.kind != "spc" or stars)
             for each in together.values()]  # fmt: skip
    sizes = [_STAR if any(point.kind == "spc" for point in each) else _OTHER for each in together.values()]
    area = room(axes)
    low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
    places = [tuple(((np.array(at) - low) / (high - low) * area).tolist()) for at in together]
    across, up = (-low / (high - low) * area).tolist()  # where both changes are 0
    lines = [[(0.0, up), (area[0], up)], [(across, 0.0), (across, area[1])]]
    for at, text, offset in zip(together, texts, place_labels(places, texts, *area, sizes, lines), strict=True):
        far = math.hypot(*offset) > NEAR + 2.5 * len(text)
        line = {"arrowstyle": "-", "color": style.quiet, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
        ground = {"boxstyle": "round,pad=0.1", "facecolor": style.paper, "edgecolor": "none", "alpha": 0.8}
        axes.annotate(text, at, offset, textcoords="offset points", fontsize=7.8, ha="center", va="center", zorder=3,
                      bbox=ground if text else None, arrowprops=line if far and text else None)  # fmt: skip


def study_methods(
    decisions: Decisions,
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable | None,
    baselines: Sequence[MethodAnswers] = (),
    *,
    controls: Sequence[str] | None = None,
    **options: Any,
) -> Methods:
    """Compare SPC with other methods and with the controls, all against the same original answers.

    The decisions about the test rows are those of ``calibrator``. Controls (by name; by default all) take its ε,
    version and grid and are chosen on the ``development`` rows that it was fitted on; without these there are none.
    ``options`` are ``further``, ``references``, ``resamples`` and ``seed`` of :func:`compare_methods`.
    """
    test = decisions.table
    chosen = [] if development is None else run_controls(development, test, calibrator=calibrator, names=controls)
    return compare_methods(test, decisions, baselines, controls=chosen, **options)


def compare_methods(
    table: ScoreTable,
    final: Decisions | IntArray | None,
    baselines: Sequence[MethodAnswers],
    *,
    controls: Sequence[ControlResult] = (),
    further: Sequence[Decisions] = (),
    references: Mapping[str, Cost] | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> Methods:
    """Compare final answers of SPC with those of other methods, all against the original answers of a table.

    Final answers are decisions, or positions where nothing more is known of them; without them the other methods stand
    alone. ``baselines`` are answers to the same rows, see :func:`unprior.baselines.answers.read_answers`. ``further``
    are decisions of other versions of SPC, ``references`` the costs of the ``original`` answers and of ``spc``,
    measured together with the baselines; ``resamples`` and ``seed`` are those of the bootstrap.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> [row.label for row in compare_methods(table, table.original_positions, []).rows]
    ['SPC']
    """
    costs = references or {}

    def judged(given: Any, reference: Any = None) -> Results:
        return evaluate(table, given, reference=reference, resamples=resamples, seed=seed, level=_LEVEL).tasks

    def version(name: str, found: Decisions) -> MethodRow:
        settings = {} if found.settings is None else asdict(found.settings)
        known = {key: value for key, value in settings.items() if value is not None}
        note = None if settings else _ABSTAINS
        return MethodRow(name, found.method, "spc", note, known, judged(found), None, costs.get("spc"))

    rows = []
    for each in baselines:
        info, tasks = each.info, judged(each.answers)
        matched = None if each.matched is None else judged(each.answers, each.matched)
        rows.append(MethodRow(info.name, info.label, info.kind, None, info.settings, tasks, matched, info.cost))
    for control in controls:
        tasks, settings = judged(control.answers), control.settings
        note = _ABSTAINS if control.abstains else None if control.feasible else _NOT_FEASIBLE
        rows.append(MethodRow(control.name, control.label, "control", note, settings, tasks, None, None))
    if isinstance(final, Decisions):
        rows.append(version("spc", final))
    elif final is not None:
        rows.append(MethodRow("spc", "SPC", "spc", None, {}, judged(final), None, costs.get("spc")))
    rows += [version(found.method, found) for found in further]
    if not rows:
        raise UnpriorError("there is no method to compare")
    return Methods(_adjusted(rows), costs.get("original"), _LEVEL, resamples, seed)


def _adjusted(rows: Sequence[MethodRow]) -> tuple[MethodRow, ...]:
    """Holm over all tests of the table; those against matched decoders are a family of their own."""
    tasks = iter(_holm([row.tasks for row in rows]))
    other = iter(_holm([row.matched for row in rows if row.matched is not None]))
    return tuple(replace(row, tasks=next(tasks), matched=None if row.matched is None else next(other)) for row in rows)


def _holm(table: Sequence[Results]) -> list[Results]:
    sides = [side for results in table for result in results for side in (result.cf, result.cs)]
    adjusted = holm([side.test.p_value for side in sides]).adjusted
    found = iter([replace(side, holm_p=p) for side, p in zip(sides, adjusted, strict=True)])
    return [tuple(replace(result, cf=next(found), cs=next(found)) for result in each) for each in table]


def _exact_utility(result: TaskResult) -> Fraction:
    cf, cs = result.cf.change, result.cs.change
    return Fraction(cf.repairs - cf.harms, cf.total) + Fraction(cs.repairs - cs.harms, 2 * cs.total)


def _run(inputs: StudyInputs) -> Methods:
    own, *further = spc_versions(inputs).values()
    options: dict[str, Any] = {"references": inputs.costs, "resamples": inputs.resamples, "seed": inputs.seed}
    return study_methods(own, inputs.fitted(), inputs.development, inputs.baselines, further=further, **options)


STUDY = Study(
    name="methods",
    label="tab:controlled",
    title="SPC beside other methods",
    asks="Which method repairs most for what it loses?",
    how="All methods against the common original answers to the test pairs, decoders also against the same decoder "
    "with its correction switched off; U = ΔCF + 0.5 ΔCS. Controls are other rules on the same scores, chosen on the "
    "development pairs like {method}. Beside them {versions}; the paper's table has the numbers of the "
    "uncertainty-aware version at the wider limit.",
    wants=("baselines",),
    run=_run,
)
