"""RQ4: what does SPC do to the parts of other benchmarks?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unprior.calibration import SelectivePriorCalibrator
from unprior.evaluation import holm, mcnemar, pair_bootstrap
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.scores.schema import SIDES, BoolArray, IntArray
from unprior.studies.by_model import LEVEL
from unprior.studies.inputs import External
from unprior.studies.result import StudyResult, Test, format_repairs
from unprior.studies.rq2.significance import format_p_as_in_paper
from unprior.studies.rq4.external import MethodEffect, always_same, method_effect, only_answer
from unprior.studies.study import Study
from unprior.tables.format import format_list
from unprior.tables.model import Row, Section, Table

SIDE_NAMES = {"hallusionbench": {"cf": "Hard", "cs": "Easy"}, "popev2": {"cf": "Absent", "cs": "Present"}}
"""Benchmarks that have words of their own for the two sides of a pair."""
_MAX_CATEGORIES = 6


@dataclass(frozen=True, slots=True)
class Subset:
    """Some rows of a benchmark."""

    benchmark: str
    subset: str
    """Such as ``MC CF``, ``Hard`` or ``color CS``."""
    task: str
    side: str | None
    """None where images are not paired."""
    category: str | None
    """None in a subset of all categories."""


def subsets(benchmark: str, table: ScoreTable) -> dict[Subset, IntArray]:
    """Rows of the sides of every paired task, other tasks as a whole; then by category where there are two to six.

    >>> from unprior import synthesize
    >>> [each.subset for each in subsets("popev2", synthesize(seed=0).where(task="qa"))][:3]
    ['Absent', 'Present', 'Attribute Anomalies Absent']
    """
    tasks, found = group_rows(table, "task"), {}
    for category, within in ((None, np.ones(len(table), dtype=np.bool_)), *_categories(table)):
        for (task,), of_task in tasks.items():
            chosen = of_task[within[of_task]]
            for side in SIDES if table.is_paired[of_task].all() else (None,):
                rows = chosen if side is None else chosen[table.is_cf[chosen] == (side == "cf")]
                word = None if side is None else SIDE_NAMES.get(benchmark, {}).get(side, side.upper())
                words = [str(task).upper() if len(tasks) > 1 else None, category, word]
                name = " ".join(filter(None, words)) or "All"
                found[Subset(benchmark, name, str(task), side, category)] = rows
    return {subset: rows for subset, rows in found.items() if len(rows)}


def _categories(table: ScoreTable) -> list[tuple[str, BoolArray]]:
    """Categories, or the subcategories of a single one, if there are not too many."""
    for column in ("category", "subcategory"):
        values = np.array([str(value or "") for value in table.column(column)])
        names = sorted(set(values.tolist()) - {""})
        if len(names) > 1:
            return [(name, values == name) for name in names] if len(names) <= _MAX_CATEGORIES else []
    return []


@dataclass(frozen=True, slots=True)
class SubsetChange:
    """What SPC with one limit does to one subset."""

    epsilon: float
    effect: MethodEffect
    """Of SPC with its version and ε; accuracy first, F1 follows where it is reported."""
    low: float
    """Lower end of the bootstrap interval of Δ accuracy."""
    high: float
    """Upper end of it."""
    p: float
    """Of the exact two-sided McNemar test."""
    holm_p: float
    """Adjusted over the family."""
    family: int
    """Comparisons of this benchmark and limit: its sides or tasks, or else its categories."""


@dataclass(frozen=True, slots=True)
class TransferRow(Subset):
    """One subset of one benchmark with all limits."""

    changes: tuple[SubsetChange, ...]


@dataclass(frozen=True, slots=True)
class SubsetTransfer(StudyResult):
    """SPC with settings from its own development rows, on the subsets of other benchmarks.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> calibrator = SelectivePriorCalibrator().fit(synthesize(seed=0))
    >>> result = study_transfer([calibrator], {"other": External(synthesize(seed=1))}, resamples=100)
    >>> [row.subset for row in result.rows][:4]
    ['MC CF', 'MC CS', 'QA CF', 'QA CS']
    """

    rows: tuple[TransferRow, ...]
    only_answers: tuple[tuple[str, str | None], ...]
    """Benchmark and task, and the right answer of all its questions where it is always the same."""

    def records(self) -> list[dict[str, Any]]:
        """One record per subset and limit; F1 is None where it is not reported."""
        return [
            {
                "benchmark": row.benchmark, "subset": row.subset, "task": row.task, "side": row.side,
                "category": row.category, "epsilon": each.epsilon, **each.effect.counts(),
                "accuracy_before": accuracy.before, "accuracy_after": accuracy.after, "delta": accuracy.delta,
                "low": finite_or_none(each.low), "high": finite_or_none(each.high), "p": each.p,
                "holm_p": each.holm_p, "family": each.family, **each.effect.record("f1", "before", "after", "delta"),
            }
            for row in self.rows
            for each in row.changes
            for accuracy in each.effect.effects[:1]
        ]  # fmt: skip

    def tests(self) -> tuple[Test, ...]:
        """Every subset; a family is one benchmark and limit, its categories apart from the full benchmark."""
        return tuple(
            Test(f"{each.effect.label} on {where}{row.benchmark}", row.subset, each.p, each.holm_p)
            for row in self.rows
            for where in ["" if row.category is None else "categories of "]
            for each in row.changes
        )

    @property
    def table(self) -> Table:
        """Metric before and after, repairs and harms, and exact p with every limit, by benchmark."""
        first = self.rows[0].changes if self.rows else ()
        versions = [each.effect.label for each in first]
        sections: dict[str, list[Row]] = {}
        for row in self.rows:
            effects = [each.effect for each in row.changes]
            metrics = (_metric(effects[0], "before"), *(_metric(each, "after") for each in effects))
            counts = (
                *(format_repairs(each.change) for each in effects),
                *(format_p_as_in_paper(each.p) for each in row.changes),
            )
            sections.setdefault(row.benchmark, []).append(Row((row.subset, *metrics, *counts)))
        return Table(
            "Performance on the parts of other benchmarks",
            (
                "Subset",
                "Original",
                *versions,
                *(f"{what}, {name}" for what in ("Repairs/harms", "p") for name in versions),
            ),
            tuple(Section(name, tuple(rows)) for name, rows in sections.items()),
            "Accuracy, for unpaired yes/no questions accuracy/F1 (yes is positive). "
            f"{format_list(versions)}, selected on the run's own development pairs alone. "
            + " ".join(("Exact two-sided McNemar p.", *always_same(dict(self.only_answers)))),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is significant with every limit, and what the limits exchange."""
        full_benchmark = [row for row in self.rows if row.category is None]
        if not full_benchmark:
            return ("There are no other benchmarks.",)
        sentences = []
        for place, first in enumerate(self.rows[0].changes):
            kept = [row for row in full_benchmark if row.changes[place].holm_p <= LEVEL]
            signs = ["gain" if row.changes[place].effect.change.delta > 0 else "loss" for row in kept]
            names = [f"{row.benchmark} {row.subset} ({sign})" for row, sign in zip(kept, signs, strict=True)]
            sentences.append(
                f"With {first.effect.label}, {len(kept) or 'none'} of {len(full_benchmark)} changes "
                f"{'is' if len(kept) < 2 else 'are'} significant at {LEVEL:g} after adjustment within a benchmark"
                + (f": {format_list(names)}." if kept else ".")
            )
        for side, where in (("cf", "counterfactual sides"), ("cs", "commonsense sides"), (None, "unpaired tasks")):
            rows = [row for row in full_benchmark if row.side == side]
            totals = [
                f"{sum(each.effect.change.repairs for each in changes)}/"
                f"{sum(each.effect.change.harms for each in changes)} with {changes[0].effect.label}"
                for changes in zip(*(row.changes for row in rows), strict=True)
            ]
            if rows:
                sentences.append(f"Over all {where}, repairs/harms are {format_list(totals)}.")
        return (*sentences, *always_same(dict(self.only_answers)))


def _metric(effect: MethodEffect, part: str) -> str:
    values = [getattr(measured, part) for measured in effect.effects]
    return "/".join("–" if np.isnan(value) else f"{value:.3f}" for value in values)


def study_transfer(
    calibrators: Sequence[SelectivePriorCalibrator],
    others: Mapping[str, External],
    *,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> SubsetTransfer:
    """Apply fitted calibrators to other benchmarks, and report these by subset.

    Parameters
    ----------
    calibrators
        Fitted on development rows of another benchmark, with rising ε.
    others
        Benchmarks by name; all rows are judged.
    resamples, seed
        Of the bootstrap over pairs, or over questions where there are none.
    """
    rows: list[TransferRow] = []
    answers: list[tuple[str, str | None]] = []
    for benchmark, external in others.items():
        parts = subsets(benchmark, external.table)
        changes = [_changes(each, external.table, parts, resamples, seed) for each in calibrators]
        for part, of_part in zip(parts, zip(*changes, strict=True), strict=True):
            rows.append(TransferRow(**asdict(part), changes=of_part))
        for (task,), of_task in group_rows(external.table, "task").items():
            answers.append((f"{benchmark} {str(task).upper()}", only_answer(external.table.take(of_task))))
    return SubsetTransfer(tuple(rows), tuple(answers))


def _changes(
    calibrator: SelectivePriorCalibrator, table: ScoreTable, parts: Mapping[Subset, IntArray], resamples: int, seed: int
) -> list[SubsetChange]:
    """By part; those of all categories come first and are a family of their own."""
    decisions, changes = calibrator.predict(table), []
    for by_category in (False, True):
        family = [(table.take(rows), decisions.final_positions[rows]) for part, rows in parts.items()
                  if (part.category is not None) == by_category]  # fmt: skip
        effects = [method_effect(part, "spc", decisions.method, given) for part, given in family]
        raw = [mcnemar(effect.change.repairs, effect.change.harms).p_value for effect in effects]
        for each, effect, p, holm_p in zip(family, effects, raw, holm(raw).adjusted, strict=True):
            interval = _interval(*each, resamples, seed)
            changes.append(SubsetChange(calibrator.epsilon_cs, effect, *interval, p, holm_p, len(family)))
    return changes


def _interval(part: ScoreTable, answers: IntArray, resamples: int, seed: int) -> tuple[float, float]:
    """Of Δ accuracy; questions of a pair are drawn together."""
    gain = correct(part, answers).astype(np.float64) - correct(part, part.original_positions)
    pair, _ = part.codes("model", "benchmark", "pair_id")
    sums = np.stack([np.bincount(pair, weights=gain), np.bincount(pair)], axis=1)
    found = pair_bootstrap(sums, lambda totals: totals[:, :1] / totals[:, 1:], resamples=resamples, seed=seed)
    return found.low[0], found.high[0]


STUDY = Study(
    name="transfer",
    title="Parts of other benchmarks",
    asks="On which parts of other benchmarks does SPC gain or lose without retuning?",
    how="{method} and {wide_method} (the paper has the standard version), fitted and selected "
    "on the run's own development pairs, is applied to every other benchmark as it is. Paired benchmarks are reported "
    "by side, others by task, and both by category where there are two to six. Exact two-sided McNemar tests; Holm's "
    "adjustment over the sides or tasks of one benchmark and limit, and apart from these over its categories; "
    "intervals from resampled pairs.",
    label="tab:supp-transfer",
    needs=("scores", "external"),
    run=lambda inputs: study_transfer(
        [inputs.fitted(epsilon) for epsilon in (inputs.epsilon, inputs.wide_epsilon)],
        inputs.external,
        resamples=inputs.resamples,
        seed=inputs.seed,
    ),
)
