"""RQ4: does SPC carry over to other benchmarks without retuning?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.baselines.answers import MethodAnswers
from unprior.calibration import SelectivePriorCalibrator
from unprior.evaluation.comparison import group_rows
from unprior.scores.files import finite_or_none
from unprior.studies.effects import MethodEffect, method_effect
from unprior.studies.inputs import External
from unprior.studies.result import ResultRow, ResultSection, ResultTable, limit, points, repairs
from unprior.studies.study import Study

_NAMES = {"cf": "ΔCF", "cs": "ΔCS", "accuracy": "Δaccuracy", "f1": "ΔF1"}


@dataclass(frozen=True, slots=True)
class Transfer:
    """One task of one benchmark."""

    benchmark: str
    task: str
    own: bool
    """Whether this is the benchmark that SPC was fitted on."""
    methods: tuple[MethodEffect, ...]

    @property
    def nondominated(self) -> tuple[str, ...]:
        """Names of the methods that no other one dominates."""
        return tuple(each.method for each in self.methods if not any(other.dominates(each) for other in self.methods))

    def of(self, method: str) -> MethodEffect | None:
        """One method, if it has answered here."""
        return next((each for each in self.methods if each.method == method), None)


@dataclass(frozen=True, slots=True)
class Transfers:
    """SPC with settings from its own development rows, on its own test rows and on other benchmarks.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_external([calibrator], External(table.where(split="test")), {"other": External(synthesize(1))})
    >>> [(row.benchmark, row.task, row.own) for row in result.rows][1:3]
    [('synthetic', 'qa', True), ('other', 'mc', False)]
    """

    rows: tuple[Transfer, ...]

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
                    "nondominated": each.method in row.nondominated,
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
    def table(self) -> ResultTable:
        """By benchmark and method: answers changed, repairs and harms, and effects; nondominated ones marked."""
        sections = []
        for row in self.rows:
            measures = "/".join(_NAMES[effect.measure] for effect in row.methods[0].effects)
            fitted = ", where SPC was fitted" if row.own else ""
            heading = f"{row.benchmark} {row.task.upper()}{fitted}: {measures} of {row.methods[0].change.total} answers"
            lines = tuple(
                ResultRow(
                    (each.label, str(each.change.changed), repairs(each.change), _deltas(each)),
                    strong_cells=(3,) if each.method in row.nondominated else (),
                )
                for each in row.methods
            )
            sections.append(ResultSection(heading, lines))
        return ResultTable(
            "Performance on other benchmarks",
            ("Method", "Changed", "Repairs/harms", "Effect"),
            tuple(sections),
            "Points; standard SPC, fitted and selected on its own development pairs alone. Within a benchmark, effects "
            "that no other method dominates are marked. F1 takes yes as positive.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much SPC changes elsewhere, and beside other methods."""
        others = [row for row in self.rows if not row.own]
        said = []
        first, label = next(iter(self.methods.items()))
        for row in others:
            found = row.of(first)
            assert found is not None  # SPC answers everywhere
            names = "/".join(_NAMES[effect.measure] for effect in found.effects)
            said.append(
                f"On {row.benchmark} {row.task.upper()} {label} changes {found.change.changed} of {found.change.total} "
                f"answers (repairs/harms {repairs(found.change)}, {names} {_deltas(found)})."
            )
        compared = [row for row in others if row.of("nolan") is not None]
        if compared:
            more = sum(_changed(row, "nolan") > _changed(row, first) for row in compared)
            best = sum(first in row.nondominated for row in compared)
            said.append(
                f"NoLan changes more answers than {label} in {more} of {len(compared)} combinations of benchmark and "
                f"task; {label} is not dominated in {best}."
            )
        return tuple(said) or ("There are no other benchmarks.",)

    def figure(self, style: object = None) -> None:
        """There is none: the measures differ from benchmark to benchmark."""
        return


def _deltas(found: MethodEffect) -> str:
    return "/".join(points(effect.delta) for effect in found.effects)


def _changed(row: Transfer, method: str) -> int:
    found = row.of(method)
    return 0 if found is None else found.change.changed


def study_external(
    calibrators: Sequence[SelectivePriorCalibrator], own: External, others: Mapping[str, External]
) -> Transfers:
    """Apply fitted calibrators to their own test rows and to all rows of other benchmarks.

    Parameters
    ----------
    calibrators
        Fitted on development rows of the own benchmark, with different ε.
    own
        Test rows of the own benchmark, and answers of other methods to them.
    others
        Other benchmarks by name; NoLan is taken where its answers are there.
    """
    name = next((str(each) for each in own.table.column("benchmark") if each is not None), "own test rows")
    rows: list[Transfer] = []
    for benchmark, external in ((name, own), *others.items()):
        answers = [
            (f"spc-{calibrator.epsilon_cs:g}", f"SPC (ε = {limit(calibrator.epsilon_cs)})",
             calibrator.predict(external.table).final)
            for calibrator in calibrators
        ] + [(each.info.name, each.info.label, each.answers) for each in _nolan(external.baselines)]  # fmt: skip
        for (task,), chosen in group_rows(external.table, "task").items():
            part = external.table.take(chosen)
            effects = tuple(method_effect(part, method, label, given[chosen]) for method, label, given in answers)
            rows.append(Transfer(benchmark, str(task), external is own, effects))
    return Transfers(tuple(rows))


def _nolan(baselines: Sequence[MethodAnswers]) -> list[MethodAnswers]:
    return [each for each in baselines if each.info.name == "nolan"]


STUDY = Study(
    name="external",
    question="rq4",
    title="Transfer to other benchmarks",
    asks="Does SPC carry over to other benchmarks without retuning?",
    how="Standard SPC (ε = {epsilon} and {wide_epsilon}), fitted and selected on the run's own development pairs, is "
    "applied to every other benchmark as it is; paired benchmarks report ΔCF/ΔCS, others Δaccuracy and for yes/no "
    "questions ΔF1. NoLan stands beside it where its answers are at hand.",
    needs=("scores", "external"),
    run=lambda inputs: study_external(
        [inputs.fitted(epsilon) for epsilon in (inputs.epsilon, inputs.wide_epsilon)],
        External(inputs.test, inputs.baselines),
        inputs.external,
    ),
)
