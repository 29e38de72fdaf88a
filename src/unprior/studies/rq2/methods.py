"""SPC beside other methods and beside controls on the same scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from unprior.baselines.answers import Cost, MethodAnswers
from unprior.baselines.controls import ControlResult, run_controls
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import SideResult, TaskResult, evaluate, holm
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.studies.result import StudyResult
from unprior.studies.rq2.method_records import flat_sides, in_words
from unprior.studies.rq2.method_words import methods_sentences, methods_table
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle

Results = tuple[TaskResult, ...]
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method of the comparison."""

    name: str
    label: str
    """The name for people."""
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
class Methods(StudyResult):
    """All methods in the order of tables: baselines, controls, SPC.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_methods(calibrator.predict(table.where(split="test")), calibrator, table.where(split="dev"))
    >>> len(result.rows), result.rows[-1].label, result.family, result.best("mc")
    (11, 'SPC', 44, ('fixed-strength',))
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
        """ΔCF/ΔCS by method and task, the largest U of every task bold."""
        return methods_table(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is best by task, and where SPC stands."""
        return methods_sentences(self)

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """Repair against retention, one panel per task."""
        from unprior.plots.style import LIGHT
        from unprior.report.figures import MethodsDisplay, side_by_side

        chosen = style or LIGHT
        draws = [
            lambda axes, task=task: MethodsDisplay.from_results(self, task=task, ax=axes, style=chosen)
            for task in self.tasks
        ]
        return side_by_side(draws, *MethodsDisplay.size(len(self.rows)), chosen)

    def records(self) -> list[dict[str, Any]]:
        """One record per method and task."""
        return [self._record(row, index) for row in self.rows for index in range(len(row.tasks))]

    def _record(self, row: MethodRow, index: int) -> dict[str, Any]:
        result = row.tasks[index]
        record: dict[str, Any] = {
            "method": row.name, "label": row.label, "kind": row.kind, "note": row.note, "task": result.task,
            "settings": in_words(row.settings), "utility": result.utility,
            "best_utility": row.name in self.best(result.task),
        }  # fmt: skip
        record |= flat_sides("", result)
        record["matched_utility"] = None if row.matched is None else row.matched[index].utility
        record |= flat_sides("matched_", None if row.matched is None else row.matched[index])
        costs = {} if row.cost is None else asdict(row.cost)
        return record | {f"cost_{name}": costs.get(name) for name in ("images", "passes", "seconds", "examples")}


@dataclass(frozen=True, slots=True)
class OwnChoice:
    """What SPC chose on its development rows, as far as it is known."""

    settings: dict[str, Any]
    note: str | None


_NO_SETTINGS = OwnChoice({}, None)


def study_methods(
    decisions: Decisions,
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable | None,
    baselines: Sequence[MethodAnswers] = (),
    *,
    references: Mapping[str, Cost] | None = None,
    controls: Sequence[str] | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> Methods:
    """Compare SPC with other methods and with the controls, all against the same original answers.

    Parameters
    ----------
    decisions
        Made by ``calibrator`` for the test rows.
    calibrator
        The fitted calibrator under study; controls take its ε, version and grid.
    development
        The rows it was fitted on; without them there are no controls.
    baselines
        Answers of other methods to the test rows, see :func:`unprior.baselines.answers.read_answers`.
    references
        Costs of the ``original`` answers and of ``spc``, measured together with the baselines.
    controls
        Names of the controls to run; by default all.
    resamples
        Of the bootstrap.
    """
    test = decisions.table
    chosen = [] if development is None else run_controls(development, test, calibrator=calibrator, names=controls)
    return compare_methods(
        test, decisions.final_positions, baselines, controls=chosen, references=references, own=own_choice(decisions),
        resamples=resamples,
    )  # fmt: skip


def own_choice(decisions: Decisions) -> OwnChoice:
    """Settings of a calibrator from its decisions, and whether it abstains."""
    settings = {} if decisions.settings is None else asdict(decisions.settings)
    return OwnChoice(
        settings={name: value for name, value in settings.items() if value is not None},
        note=None if settings else "abstains: no setting feasible",
    )


def compare_methods(
    table: ScoreTable,
    final: IntArray | None,
    baselines: Sequence[MethodAnswers],
    *,
    controls: Sequence[ControlResult] = (),
    references: Mapping[str, Cost] | None = None,
    own: OwnChoice = _NO_SETTINGS,
    further: Mapping[str, tuple[IntArray, OwnChoice]] | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> Methods:
    """Compare final answers of SPC with those of other methods, all against the original answers of a table.

    Without final answers the other methods stand alone.

    ``further`` are answers of other versions of SPC by their names.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> [row.label for row in compare_methods(table, table.original_positions, []).rows]
    ['SPC']
    """
    costs = references or {}

    def judged(given: Any, reference: Any = None) -> Results:
        return evaluate(table, given, reference=reference, resamples=resamples, seed=seed, level=_LEVEL).tasks

    rows = []
    for each in baselines:
        info, matched = each.info, None if each.matched is None else judged(each.answers, each.matched)
        rows.append(
            MethodRow(
                info.name, info.label, info.kind, None, info.settings, judged(each.answers), matched, info.cost
            )
        )  # fmt: skip
    for control in controls:
        tasks = judged(control.answers)
        rows.append(
            MethodRow(control.name, control.label, "control", _note(control), control.settings, tasks, None, None)
        )
    if final is not None:
        rows.append(MethodRow("spc", "SPC", "spc", own.note, own.settings, judged(final), None, costs.get("spc")))
    for name, (answers, choice) in (further or {}).items():
        rows.append(MethodRow(name, name, "spc", choice.note, choice.settings, judged(answers), None, costs.get("spc")))
    if not rows:
        raise UnpriorError("there is no method to compare")
    return Methods(_adjusted(rows), costs.get("original"), _LEVEL, resamples, seed)


def _note(result: ControlResult) -> str | None:
    if result.abstains:
        return "abstains: no setting feasible"
    return None if result.feasible else "not feasible on the development rows"


def _adjusted(rows: Sequence[MethodRow]) -> tuple[MethodRow, ...]:
    """Holm over all tests of the table; those against matched decoders are a family of their own."""
    tasks = _holm([row.tasks for row in rows])
    matched = iter(_holm([row.matched for row in rows if row.matched is not None]))
    return tuple(
        replace(row, tasks=results, matched=None if row.matched is None else next(matched))
        for row, results in zip(rows, tasks, strict=True)
    )


def _holm(table: Sequence[Results]) -> list[Results]:
    sides = [side for results in table for result in results for side in (result.cf, result.cs)]
    adjusted = iter(holm([side.test.p_value for side in sides]).adjusted)

    def with_p(side: SideResult) -> SideResult:
        return replace(side, holm_p=next(adjusted))

    return [tuple(replace(result, cf=with_p(result.cf), cs=with_p(result.cs)) for result in each) for each in table]


def _exact_utility(result: TaskResult) -> Fraction:
    cf, cs = result.cf.change, result.cs.change
    return Fraction(cf.repairs - cf.harms, cf.total) + Fraction(cs.repairs - cs.harms, 2 * cs.total)
