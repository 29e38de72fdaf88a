"""RQ4: does SPC carry over to other benchmarks without retuning?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.baselines.controls import run_controls
from unprior.calibration import SelectivePriorCalibrator
from unprior.evaluation import Change, compare, mcnemar
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.scores.schema import SIDES, IntArray
from unprior.studies.inputs import External
from unprior.studies.result import StudyResult, format_repairs
from unprior.studies.study import Study
from unprior.tables.format import format_limit, format_list, format_points
from unprior.tables.model import Row, Section, Table

WIDE_CONTROLS = {"selected-strength-gated": "Fixed strength", "learned-rule-fixed": "Learned rule"}
"""Controls that the paper carries over at the wide limit."""
PRIMARY_CONTROLS = {"cfg-score": "CFG on scores"}
"""Controls that it carries over at the primary limit."""
_NAMES = {"cf": "ΔCF", "cs": "ΔCS", "accuracy": "Δaccuracy", "f1": "ΔF1"}


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """One measure before and after."""

    measure: str
    """``cf`` and ``cs`` where images are paired; else ``accuracy``, and ``f1`` (yes is positive) for yes/no."""
    before: float
    after: float
    delta: float
    p: float | None
    """Exact test of repairs against harms; None for F1."""


@dataclass(frozen=True, slots=True)
class MethodEffect:
    """What one method does to one task of one benchmark."""

    method: str
    label: str
    """The name for people."""
    change: Change
    """Over all rows."""
    effects: tuple[MeasureChange, ...]

    @property
    def measures(self) -> str:
        """What is measured, such as ``ΔCF/ΔCS``."""
        return "/".join(_NAMES[effect.measure] for effect in self.effects)

    @property
    def deltas(self) -> str:
        """Changes in points, in the order of the measures."""
        return "/".join(format_points(effect.delta) for effect in self.effects)

    def counts(self) -> dict[str, int]:
        """Answers, and how many of them are changed, repaired and harmed."""
        return {name: getattr(self.change, name) for name in ("total", "changed", "repairs", "harms")}

    def record(self, measure: str, *parts: str) -> dict[str, float | None]:
        """Parts of one measure as plain numbers; None where it does not apply or is undefined."""
        found = next((effect for effect in self.effects if effect.measure == measure), None)
        values = {f"{measure}_{part}": getattr(found, part, None) for part in parts}
        return {name: None if value is None else finite_or_none(value) for name, value in values.items()}

    def dominates(self, other: MethodEffect) -> bool:
        """Nowhere worse and somewhere better; undefined measures are left out."""
        pairs = [(mine.after, theirs.after) for mine, theirs in zip(self.effects, other.effects, strict=True)]
        defined = [(mine, theirs) for mine, theirs in pairs if not math.isnan(mine) and not math.isnan(theirs)]
        return all(mine >= theirs for mine, theirs in defined) and any(mine > theirs for mine, theirs in defined)


def method_effect(part: ScoreTable, method: str, label: str, answers: IntArray) -> MethodEffect:
    """Measure answers to the rows of one task against the original answers."""
    sides = [side for side in SIDES if (part.is_cf == (side == "cf")).any()] if part.is_paired.all() else [None]
    effects = [_accuracy(part, answers, side) for side in sides]
    if sides == [None] and all("yes" in candidates for candidates in part.column("candidates")):
        before, after = _f1(part, part.original_positions), _f1(part, answers)
        effects.append(MeasureChange("f1", before, after, after - before, None))
    return MethodEffect(method, label, compare(part, answers, side=None), tuple(effects))


def _accuracy(part: ScoreTable, answers: IntArray, side: str | None) -> MeasureChange:
    rows = np.ones(len(part), dtype=np.bool_) if side is None else part.is_cf == (side == "cf")
    change = compare(part, answers, side=side)
    before, after = (float(correct(part, given)[rows].mean()) for given in (part.original_positions, answers))
    return MeasureChange(side or "accuracy", before, after, change.delta, mcnemar(change.repairs, change.harms).p_value)


def _f1(part: ScoreTable, answers: IntArray) -> float:
    """With yes as the positive answer; NaN where yes is neither given nor right."""
    given = np.array([name == "yes" for name in part.candidate_names(answers)])
    right = np.array([name == "yes" for name in part.column("answer")])
    total = int(given.sum() + right.sum())
    return 2 * int((given & right).sum()) / total if total else math.nan


def only_answer(part: ScoreTable) -> str | None:
    """The right answer of all rows, if there are several and it is the same in all: always giving it is then enough.

    >>> from unprior import synthesize
    >>> qa = synthesize(seed=0).where(task="qa")
    >>> only_answer(qa), only_answer(qa.where(answer="no"))
    (None, 'no')
    """
    answers = {str(answer) for answer in part.column("answer")}
    return answers.pop() if len(answers) == 1 and len(part) > 1 else None


def always_same(places: Mapping[str, str | None]) -> tuple[str, ...]:
    """A sentence about the benchmarks and tasks where one answer is always right; none if there are none.

    >>> always_same({"conflictvis MC": None, "conflictvis QA": "yes"})
    ('All right answers of conflictvis QA are “yes”, so a gain there may only show a bias towards that answer.',)
    """
    return tuple(
        f"All right answers of {format_list([place for place, each in places.items() if each == answer])} are "
        f"“{answer}”, so a gain there may only show a bias towards that answer."
        for answer in dict.fromkeys(places.values())
        if answer is not None
    )


@dataclass(frozen=True, slots=True)
class BenchmarkEffects:
    """What the methods do to one task of one benchmark."""

    benchmark: str
    task: str
    own: bool
    """Whether this is the benchmark that SPC was fitted on."""
    methods: tuple[MethodEffect, ...]
    only_answer: str | None = None
    """The right answer of all questions, if it is the same everywhere."""

    @property
    def name(self) -> str:
        """Such as ``pope QA``."""
        return f"{self.benchmark} {self.task.upper()}"

    @property
    def nondominated(self) -> tuple[str, ...]:
        """Names of the methods that no other one dominates."""
        return tuple(each.method for each in self.methods if not any(other.dominates(each) for other in self.methods))

    def of(self, method: str) -> MethodEffect | None:
        """One method, if it has answered here."""
        return next((each for each in self.methods if each.method == method), None)


@dataclass(frozen=True, slots=True)
class ExternalBenchmarks(StudyResult):
    """SPC with settings from its own development rows, on its own test rows and on other benchmarks.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_external([calibrator], External(table.where(split="test")), {"other": External(synthesize(1))})
    >>> [(row.benchmark, row.task, row.own) for row in result.rows][1:3]
    [('synthetic', 'qa', True), ('other', 'mc', False)]
    """

    rows: tuple[BenchmarkEffects, ...]

    def records(self) -> list[dict[str, Any]]:
        """One record per benchmark, task and method; measures that do not apply are None."""
        return [
            {"benchmark": row.benchmark, "task": row.task, "own": row.own, "method": each.method, "label": each.label}
            | each.counts()
            | {"nondominated": each.method in row.nondominated, "only_answer": row.only_answer}
            | {name: value for measure in _NAMES
               for name, value in each.record(measure, "before", "after", "delta", "p").items()}
            for row in self.rows
            for each in row.methods
        ]  # fmt: skip

    @property
    def table(self) -> Table:
        """By benchmark and method: answers changed, repairs and harms, and effects; nondominated ones bold."""
        sections = []
        for row in self.rows:
            first, fitted = row.methods[0], ", the run's own benchmark" if row.own else ""
            lines = tuple(
                Row((each.label, str(each.change.changed), format_repairs(each.change), each.deltas),
                    bold_cells=(3,) if each.method in row.nondominated else ())
                for each in row.methods
            )  # fmt: skip
            sections.append(Section(f"{row.name}{fitted}: {first.measures} of {first.change.total} answers", lines))
        return Table(
            "Performance on other benchmarks",
            ("Method", "Changed", "Repairs/harms", "Effect"),
            tuple(sections),
            "Points; SPC and the rules with an ε are fitted and selected on SPC's own development pairs alone. Within "
            "a benchmark, effects that no other row dominates are bold. F1 takes yes as positive."
            + "".join(f" {sentence}" for sentence in self._always_same),
        )

    @property
    def _always_same(self) -> tuple[str, ...]:
        return always_same({row.name: row.only_answer for row in self.rows})

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much SPC changes elsewhere, and beside other methods."""
        others = [row for row in self.rows if not row.own]
        if not others:
            return ("There are no other benchmarks.",)
        sentences = [
            f"On {row.name}, {spc.label} changes {spc.change.changed} of {spc.change.total} answers (repairs/harms "
            f"{format_repairs(spc.change)}, {spc.measures} {spc.deltas})."
            for row in others
            for spc in row.methods[:1]
        ]
        methods = dict.fromkeys(each.method for row in self.rows for each in row.methods)
        versions = [name for name in methods if name.startswith("spc-")]
        for name in (name for name in methods if name not in versions):
            same_limit = (version for version in versions if name.endswith(version.removeprefix("spc")))
            sentences.append(_beside(others, next(same_limit, versions[0]), name))
        return (*filter(None, sentences), *self._always_same)


def _beside(rows: Sequence[BenchmarkEffects], spc: str, other: str) -> str:
    """One method against SPC wherever both have answered; nothing where that is nowhere."""
    found = [(row.of(spc), row.of(other)) for row in rows]
    pairs = [(mine, theirs) for mine, theirs in found if mine is not None and theirs is not None]
    if not pairs:
        return ""
    more = sum(theirs.change.changed > mine.change.changed for mine, theirs in pairs)
    worse, better = (sum(one.dominates(two) for one, two in each) for each in (pairs, [each[::-1] for each in pairs]))
    mine, theirs = pairs[0]
    return (
        f"{theirs.label} changes more answers than {mine.label} in {more} of {len(pairs)} combinations of benchmark "
        f"and task, is dominated by it in {worse} and dominates it in {better}."
    )


def study_external(
    calibrators: Sequence[SelectivePriorCalibrator],
    own: External,
    others: Mapping[str, External],
    *,
    development: ScoreTable | None = None,
) -> ExternalBenchmarks:
    """Apply fitted calibrators to their own test rows and to all rows of other benchmarks.

    Parameters
    ----------
    calibrators
        Fitted on development rows of the own benchmark, with rising ε.
    own
        Test rows of the own benchmark, and answers of other methods to them.
    others
        Other benchmarks by name; methods stand beside SPC where their answers are there.
    development
        Rows that the calibrators were fitted on; if given, controls are chosen on them and applied as well.
    """
    name = next((str(each) for each in own.table.column("benchmark") if each is not None), "own test rows")
    compared = {"nolan"} | {each.info.name for external in others.values() for each in external.baselines}
    rows: list[BenchmarkEffects] = []
    for benchmark, external in ((name, own), *others.items()):
        baselines = [each for each in external.baselines if each.info.name in compared]
        for (task,), chosen in group_rows(external.table, "task").items():
            part = external.table.take(chosen)
            effects = [
                method_effect(part, f"spc-{each.epsilon_cs:g}", decisions.method, decisions.final_positions)
                for each, decisions in ((each, each.predict(part)) for each in calibrators)
            ]
            if development is not None:
                effects += _control_effects(calibrators, development, part)
            for each in baselines:
                effects.append(method_effect(part, each.info.name, each.info.label, each.answers[chosen]))
            rows.append(BenchmarkEffects(benchmark, str(task), external is own, tuple(effects), only_answer(part)))
    return ExternalBenchmarks(tuple(rows))


def _control_effects(
    calibrators: Sequence[SelectivePriorCalibrator], development: ScoreTable, part: ScoreTable
) -> list[MethodEffect]:
    """Controls chosen on development rows, with the limits of the last and the first calibrator."""
    known = set(development.column("task")) >= set(part.column("task"))
    effects = []
    # Guidance has a scale for every task, so that it has none for a task without development rows.
    for calibrator, labels in ((calibrators[-1], WIDE_CONTROLS), (calibrators[0], PRIMARY_CONTROLS if known else {})):
        for result in run_controls(development, part, calibrator=calibrator, names=list(labels)):
            label = f"{labels[result.name]} (ε = {format_limit(calibrator.epsilon_cs)})"
            effects.append(method_effect(part, f"{result.name}-{calibrator.epsilon_cs:g}", label, result.answers))
    return effects


STUDY = Study(
    name="external",
    title="Transfer to other benchmarks",
    asks="Does SPC carry over to other benchmarks without retuning?",
    how="{method} and {wide_method} (the paper has the standard version), fitted and selected "
    "on the run's own development pairs, is applied to every other benchmark as it is. Paired benchmarks report "
    "ΔCF/ΔCS, others Δaccuracy and for yes/no questions ΔF1. A fixed strength with SPC's gate and a separately learned "
    "revision rule (ε = {wide_epsilon}), and guidance on scores (ε = {epsilon}), are chosen on the same pairs; methods "
    "with answers at hand, such as NoLan, stand beside them.",
    label="tab:spectrum",
    needs=("scores", "external"),
    run=lambda inputs: study_external(
        [inputs.fitted(epsilon) for epsilon in (inputs.epsilon, inputs.wide_epsilon)],
        External(inputs.test, inputs.baselines),
        inputs.external,
        development=inputs.development,
    ),
)
