"""RQ4: does SPC carry over to other benchmarks without retuning?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.baselines.controls import run_controls
from unprior.calibration import SelectivePriorCalibrator
from unprior.evaluation.comparison import group_rows
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.studies.inputs import External
from unprior.studies.result import StudyResult, format_repairs
from unprior.studies.rq4.effects import MethodEffect, always_same, method_effect, only_answer
from unprior.studies.study import Study
from unprior.tables.format import format_limit, format_points
from unprior.tables.model import Row, Section, Table

WIDE_CONTROLS = {"selected-strength-gated": "Fixed strength", "learned-rule-fixed": "Learned rule"}
"""Controls that the paper carries over at the wide limit."""
PRIMARY_CONTROLS = {"cfg-score": "CFG on scores"}
"""Controls that it carries over at the primary limit."""
_NAMES = {"cf": "ΔCF", "cs": "ΔCS", "accuracy": "Δaccuracy", "f1": "ΔF1"}
_CAPTION = (
    "Points; SPC and the rules with an ε are fitted and selected on SPC's own development pairs alone. Within a "
    "benchmark, effects that no other row dominates are bold. F1 takes yes as positive."
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

    @property
    def methods(self) -> dict[str, str]:
        """Names for people of all methods, by name."""
        return {each.method: each.label for row in self.rows for each in row.methods}

    def records(self) -> list[dict[str, Any]]:
        """One record per benchmark, task and method; measures that do not apply are None."""
        records = []
        for row in self.rows:
            for each in row.methods:
                record: dict[str, Any] = {
                    "benchmark": row.benchmark, "task": row.task, "own": row.own, "method": each.method,
                    "label": each.label, "total": each.change.total, "changed": each.change.changed,
                    "repairs": each.change.repairs, "harms": each.change.harms,
                    "nondominated": each.method in row.nondominated, "only_answer": row.only_answer,
                }  # fmt: skip
                effects = {effect.measure: effect for effect in each.effects}
                for measure in _NAMES:
                    found = effects.get(measure)
                    for part in ("before", "after", "delta", "p"):
                        value = None if found is None else getattr(found, part)
                        record[f"{measure}_{part}"] = None if value is None else finite_or_none(value)
                records.append(record)
        return records

    @property
    def table(self) -> Table:
        """By benchmark and method: answers changed, repairs and harms, and effects; nondominated ones bold."""
        sections = []
        for row in self.rows:
            fitted = ", where SPC was fitted" if row.own else ""
            heading = f"{row.name}{fitted}: {_measures(row.methods[0])} of {row.methods[0].change.total} answers"
            lines = tuple(
                Row(
                    (each.label, str(each.change.changed), format_repairs(each.change), _deltas(each)),
                    bold_cells=(3,) if each.method in row.nondominated else (),
                )
                for each in row.methods
            )
            sections.append(Section(heading, lines))
        return Table(
            "Performance on other benchmarks",
            ("Method", "Changed", "Repairs/harms", "Effect"),
            tuple(sections),
            " ".join((_CAPTION, *self._always_same)),
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
        sentences = []
        first, label = next(iter(self.methods.items()))
        for row in others:
            found = row.of(first)
            assert found is not None  # SPC answers everywhere
            sentences.append(
                f"On {row.name}, {label} changes {found.change.changed} of {found.change.total} "
                f"answers (repairs/harms {format_repairs(found.change)}, {_measures(found)} {_deltas(found)})."
            )
        versions = [name for name in self.methods if name.startswith("spc-")]
        for name in (name for name in self.methods if name not in versions):
            same_limit = (version for version in versions if name.endswith(version.removeprefix("spc")))
            sentences.append(_beside(others, next(same_limit, first), name))
        return (*filter(None, sentences), *self._always_same)


def _measures(found: MethodEffect) -> str:
    return "/".join(_NAMES[effect.measure] for effect in found.effects)


def _deltas(found: MethodEffect) -> str:
    return "/".join(format_points(effect.delta) for effect in found.effects)


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
            effects += [
                method_effect(part, each.info.name, each.info.label, each.answers[chosen]) for each in baselines
            ]
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
    question="rq4",
    title="Transfer to other benchmarks",
    asks="Does SPC carry over to other benchmarks without retuning?",
    how="SPC (the version under study, standard in the paper; ε = {epsilon} and {wide_epsilon}), fitted and selected "
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
