"""Beyond the paper: what SPC repairs where no candidates are given, and which parts of the recipe matter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unprior.benchmarks.variants import GIVEN
from unprior.calibration import Decisions, OpenAnswers, SelectivePriorCalibrator
from unprior.engines.load import CANDIDATES
from unprior.evaluation import Share, TaskResult, evaluate
from unprior.evaluation.metrics import open_coverage
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES
from unprior.studies.common.open_tables import (
    first_token_scores,
    has_first_tokens,
    has_sources,
    has_token_counts,
    limit_candidates,
    mean_scores,
)
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult, Test, format_repairs
from unprior.studies.rq2.methods import MethodRow, Methods
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_list, format_p, format_points
from unprior.tables.model import Row, Section, Table

SPC = "spc"
CERTIFIED = "spc-certified"
COUNTS = (2, 3, 4, 5, 6)
"""Numbers of candidates that are compared."""
CLIPS = (3.0, 5.0, 7.0, math.inf)


@dataclass(frozen=True, slots=True)
class OpenOutcome:
    """One way to answer the open test questions, against the original answers."""

    name: str
    label: str
    kind: str
    """``method`` (SPC and decoders), or what an ablation changes."""
    result: TaskResult
    chosen: str = ""
    """What was fitted or chosen on the development pairs."""

    @property
    def utility(self) -> float:
        """U_0.5 = ΔCF + 0.5 ΔCS."""
        return self.result.utility

    def record(self) -> dict[str, Any]:
        """Plain numbers; accuracies are shares, not points."""
        record: dict[str, Any] = {"name": self.name, "label": self.label, "kind": self.kind, "chosen": self.chosen}
        for side, part, before, after in (
            ("cf", self.result.cf, self.result.original.cf, self.result.method.cf),
            ("cs", self.result.cs, self.result.original.cs, self.result.method.cs),
        ):
            change = part.change
            record |= {
                f"{side}_before": before.value,
                f"{side}_after": after.value,
                f"delta_{side}": change.delta,
                f"{side}_low": part.low,
                f"{side}_high": part.high,
                f"{side}_repairs": change.repairs,
                f"{side}_harms": change.harms,
                f"{side}_changed": change.changed,
                f"{side}_p": part.test.p_value,
            }
        return record | {"utility": self.utility, "in_family": self.name == SPC}


@dataclass(frozen=True, slots=True)
class OpenAnswersResult(StudyResult):
    """SPC without given candidates beside other decoders, and its ablations."""

    outcomes: tuple[OpenOutcome, ...]
    covered: dict[str, Share]
    """Share of the test rows whose candidates hold a right answer, by side."""
    count: int
    """K, the number of candidates."""
    epsilon: float

    def of(self, kind: str) -> tuple[OpenOutcome, ...]:
        """The outcomes of one kind."""
        return tuple(each for each in self.outcomes if each.kind == kind)

    @property
    def spc(self) -> OpenOutcome:
        """The recipe itself."""
        return next(each for each in self.outcomes if each.name == SPC)

    @property
    def table(self) -> Table:
        """SPC and the decoders."""
        methods = self.of("method")
        best = max(each.utility for each in methods if each.name != GIVEN)
        rows = [_row(each, bold=each.utility >= best and each.name != GIVEN) for each in methods]
        original = self.spc.result.original
        shares = format_list(
            [f"{100 * share.value:.1f} % of the {side.upper()}" for side, share in self.covered.items()]
        )
        return Table(
            "Open answers: SPC and other decoders",
            ("Method", "ΔCF", "Repairs/harms", "p", "ΔCS", "Repairs/harms", "p", "U"),
            (Section(None, tuple(rows)),),
            f"Exact match after normalisation, against greedy decoding: original answers {original.cf.value:.3f} on CF "
            f"and {original.cs.value:.3f} on CS. Points with 95 % intervals over pairs, exact McNemar tests. The "
            f"{self.count} candidates hold a right answer in {shares} test rows. Bold: highest U = ΔCF + "
            f"0.5 ΔCS without given options, which nobody has in practice.",
        )

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """What each part of the recipe contributes."""
        kinds = [kind for kind in dict.fromkeys(each.kind for each in self.outcomes) if kind != "method"]
        sections = []
        for kind in kinds:
            group = self.of(kind)
            best = max(each.utility for each in group)
            rows = [
                Row(
                    (
                        each.label,
                        format_changes(each.result.cf.change.delta, each.result.cs.change.delta),
                        format_repairs(each.result.cf.change),
                        format_repairs(each.result.cs.change),
                        format_points(each.utility),
                        each.chosen,
                    ),
                    bold=each.utility >= best,
                )
                for each in group
            ]
            sections.append(Section(kind, tuple(rows)))
        return (
            Table(
                "Open answers: what each part contributes",
                ("Variant", "ΔCF/ΔCS", "CF repairs/harms", "CS repairs/harms", "U", "Chosen on development"),
                tuple(sections),
                "Every variant is fitted and selected anew on the development pairs with the same ε. T: both scores "
                "are divided by it; τ: the prior is clipped so many nats below its top. A carried-over strength keeps "
                "answers with a number of candidates that closed questions do not have. Bold: highest U of its group.",
                text_columns=1,
            ),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What SPC repairs and costs, and whether a decoder does better."""
        spc = self.spc
        cf, cs = spc.result.cf, spc.result.cs
        words = [
            f"Without given options {spc.label} changes CF accuracy by {format_points(cf.change.delta)} points "
            f"[{format_points(cf.low)}, {format_points(cf.high)}] and CS accuracy by {format_points(cs.change.delta)} "
            f"[{format_points(cs.low)}, {format_points(cs.high)}]."
        ]
        others = [each for each in self.of("method") if each.name not in (SPC, CERTIFIED, GIVEN)]
        if others:
            best = max(others, key=lambda each: each.utility)
            relation = "higher" if spc.utility > best.utility else "not higher"
            words.append(
                f"Its U of {format_points(spc.utility)} is {relation} than that of the best other decoder, "
                f"{best.label} ({format_points(best.utility)})."
            )
        lost = [
            f"{share.total - share.count} of {share.total} on {side.upper()}" for side, share in self.covered.items()
        ]
        words.append(f"The right answer is missing from the candidates of {format_list(lost)} test rows.")
        return tuple(words)

    def records(self) -> list[dict[str, Any]]:
        """One record per method and variant."""
        shares = {f"coverage_{side}": share.value for side, share in self.covered.items()}
        return [each.record() | shares | {"candidates": self.count} for each in self.outcomes]

    def tests(self) -> tuple[Test, ...]:
        """Both sides of SPC."""
        return Test.from_tasks("open answers", [self.spc.result])

    def panels(self) -> Panels | None:
        """Repair against retention of every method."""
        kinds = {SPC: "spc", CERTIFIED: "spc", GIVEN: "control"}
        rows = tuple(
            MethodRow(each.name, each.label, kinds.get(each.name, "decoder"), None, {}, (each.result,), None, None)
            for each in self.of("method")
        )
        return Methods(rows, None, 0.95, 0, 0).panels()


def _row(each: OpenOutcome, *, bold: bool) -> Row:
    cells = [each.label]
    for side in (each.result.cf, each.result.cs):
        interval = f"{format_points(side.change.delta)} [{format_points(side.low)}, {format_points(side.high)}]"
        cells += [interval, format_repairs(side.change), format_p(side.test.p_value)]
    return Row((*cells, format_points(each.utility)), bold=bold)


def study_open_answers(inputs: StudyInputs) -> OpenAnswersResult:
    """Fit the recipe and its ablations on the open development rows, and judge all on the open test rows."""
    assert inputs.open is not None
    everything = inputs.open.table
    count = _candidates(inputs)
    table = limit_candidates(everything, count)
    test = table.where(split="test")
    outcomes = [_spc(inputs, table, SPC, None, "method"), _certified(inputs, table)]
    outcomes += list(_decoders(inputs))
    if GIVEN in inputs.variants:
        outcomes.append(_spc(inputs, inputs.variants[GIVEN], GIVEN, "SPC with given options", "method"))
    outcomes += _ablations(inputs, everything, table, count)
    covered = open_coverage(test)
    return OpenAnswersResult(
        tuple(outcomes), {side: covered[side] for side in SIDES if side in covered}, count, inputs.epsilon
    )


def _candidates(inputs: StudyInputs) -> int:
    """K of the run's own open questions, or the usual one where it has none."""
    own = inputs.table.candidate_counts[inputs.table.is_open]
    return int(own.max()) if len(own) else CANDIDATES


def _ablations(inputs: StudyInputs, everything: ScoreTable, table: ScoreTable, kept: int) -> Iterator[OpenOutcome]:
    kind, raw = "Score", OpenAnswers(temperature=1.0)
    yield _spc(inputs, table, "sum", "sum", kind, raw)
    if has_token_counts(table):
        yield _spc(inputs, mean_scores(table), "mean", "mean over tokens", kind, raw)
    yield _spc(inputs, table, "sum-t", "sum / T", kind)
    if has_first_tokens(table):
        yield _spc(inputs, first_token_scores(table), "first-token", "first token", kind, raw)
    for clip in CLIPS:
        label = "no clip" if math.isinf(clip) else f"τ = {clip:g}"
        yield _spc(inputs, table, f"clip-{clip:g}", label, "Clip of the prior", OpenAnswers(clips=(clip,)))
    alone = [(False, "image beams alone")] if has_sources(everything) else []
    for from_text, label in ((True, "image beams + text-only answer"), *alone):
        other = limit_candidates(everything, kept, from_text=from_text)
        yield _spc(inputs, other, f"from-text-{from_text}".lower(), label, "Candidates")
    for count in COUNTS:
        yield _spc(inputs, limit_candidates(everything, count), f"k-{count}", f"K = {count}", "Number of candidates")
    yield _spc(inputs, table, "own-strength", "fitted on open answers", "Strength")
    yield from _carried_over(inputs, table)


def _spc(
    inputs: StudyInputs, table: ScoreTable, name: str, label: str | None, kind: str, rule: OpenAnswers | None = None
) -> OpenOutcome:
    """Fitted on the development rows of a table and judged on its test rows; the recipe itself has no label."""
    calibrator = _calibrator(inputs).clone(open_answers=rule or OpenAnswers())
    return _outcome(inputs, calibrator, table, name, label, kind)


def _certified(inputs: StudyInputs, table: ScoreTable) -> OpenOutcome:
    """The same recipe under a limit that holds on new pairs."""
    calibrator = SelectivePriorCalibrator(epsilon_cs=inputs.epsilon, retention="certified", **inputs.promise)
    return _outcome(inputs, calibrator, table, CERTIFIED, None, "method")


def _outcome(
    inputs: StudyInputs,
    calibrator: SelectivePriorCalibrator,
    table: ScoreTable,
    name: str,
    label: str | None,
    kind: str,
) -> OpenOutcome:
    decisions = calibrator.fit(table).predict(table.where(split="test"))
    judged = _judged(inputs, decisions.table, decisions)
    return OpenOutcome(name, label or decisions.method, kind, judged, _chosen(calibrator))


def _calibrator(inputs: StudyInputs) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator(epsilon_cs=inputs.epsilon, uncertainty=inputs.uncertainty, ties=inputs.ties)


def _chosen(calibrator: SelectivePriorCalibrator) -> str:
    fitted = calibrator.open_.state_.scale
    assert fitted is not None
    clip = "no clip" if math.isinf(fitted.clip) else f"τ = {fitted.clip:g}"
    return f"T = {fitted.temperature:.2f}, {clip}" + (", abstains" if calibrator.settings_ is None else "")


def _judged(inputs: StudyInputs, table: ScoreTable, answers: ArrayLike | Decisions) -> TaskResult:
    return evaluate(table, answers, resamples=inputs.resamples, seed=inputs.seed).tasks[0]


def _decoders(inputs: StudyInputs) -> Iterator[OpenOutcome]:
    """Answers of other methods, which need not be among the candidates."""
    assert inputs.open is not None
    test = inputs.open.table.where(split="test")
    for method in inputs.open.baselines:
        yield OpenOutcome(method.info.name, method.info.label, "method", _judged(inputs, test, method.answers))


def _carried_over(inputs: StudyInputs, table: ScoreTable) -> Iterator[OpenOutcome]:
    """Strength and settings of the closed tasks on open answers, with the fitted T and τ."""
    closed = inputs.table.take(~inputs.table.is_open)
    if not len(closed) or not np.isin(table.candidate_counts, closed.candidate_counts).any():
        return
    fitted, own = _calibrator(inputs).fit(closed), _calibrator(inputs).fit(table).open_.state_.scale
    assert own is not None
    test = table.where(split="test")
    scaled = own.apply(test)
    decided = [
        fitted.decide(*each, task="mc").final if len(each[0]) > 1 else each[3]
        for each in zip(
            test.column("candidates"), scaled.column("image_scores"), scaled.column("prior_scores"),
            test.column("original"), strict=True,
        )
    ]  # fmt: skip
    yield OpenOutcome(
        "carried-over", "carried over from closed questions", "Strength",
        _judged(inputs, test, np.array(decided, dtype=object)),
    )  # fmt: skip


STUDY = Study(
    name="open-answers",
    title="Open answers",
    asks="What does SPC repair where no candidates are given, and which parts of the recipe matter?",
    how="The model proposes the candidates itself: the best beams with the image, its answer without the image, and "
    "its original answer; forms of one answer are merged. Both scores include the end token, the prior is clipped τ "
    "nats below its top, and both are divided by T; T, τ, strength and settings come from the open development rows, "
    "with the ε of {method}. Answers are right if they match the right one, or an alias, after normalisation.",
    run=study_open_answers,
    needs=("scores", "open"),
    wants=("open-methods", "given"),
    takes_open=True,
)
