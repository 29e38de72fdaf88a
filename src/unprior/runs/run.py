"""From a score table to a report: fit on the development rows, decide on the test rows, evaluate, write it all down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import replacing
from unprior.baselines.answers import read_answers, read_references
from unprior.benchmarks.pairs import development_pairs, refuse_unsound_questions
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Evaluation, evaluate
from unprior.scores import ScoreTable
from unprior.scores.pairs import PairCheck, few_pairs, sound_pairs, warnings_about
from unprior.studies.suite import Studies, run_studies

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

FILES = ("scores.parquet", "calibrator.json", "decisions.jsonl", "report.html", "report.json")
"""What a run leaves in its folder."""


def check_benchmark(benchmark: Benchmark, epsilon_cs: float | None = None) -> list[str]:
    """Refuse a benchmark that cannot be calibrated and judged, before anything is computed; returns what to mind."""
    _check({example.split for example in benchmark}, {example.side for example in benchmark})
    refuse_unsound_questions(benchmark)
    pairs = development_pairs(benchmark)
    return [sentence for task, count in pairs.items() for sentence in few_pairs(task, count, epsilon_cs)]


def _left_out(check: PairCheck) -> list[str]:
    """Pairs that lost a side, because an image of theirs could not be scored, tell nothing about the trade-off."""
    if not check.total:
        return []
    return [f"{check.total:,} pairs are left out, the first because of {check.problems[0]}"]


def _check(splits: set[str | None], sides: set[str | None]) -> None:
    for split, purpose in (("dev", "to fit on"), ("test", "to judge on")):
        if split not in splits:
            raise UnpriorError(
                f"no example has split {split!r}, so there is nothing {purpose}; mark pairs of the benchmark as dev "
                f"and test (`unprior score` alone needs no splits)"
            )
    if None in sides:
        raise UnpriorError(
            "the benchmark has examples that belong to no pair of a cf and a cs image; repair and retention are judged "
            "on pairs (`unprior score` alone needs none)"
        )


@dataclass(frozen=True)
class Run:
    """Everything that came out of a run."""

    table: ScoreTable
    calibrator: SelectivePriorCalibrator
    decisions: Decisions
    """About the test rows."""
    evaluation: Evaluation
    studies: Studies
    cautions: tuple[str, ...] = ()
    """What a reader should know before relying on the numbers, in sentences."""

    @classmethod
    def of(
        cls,
        table: ScoreTable,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        baselines: Path | None = None,
    ) -> Run:
        """Fit on the rows of split ``dev`` and judge on those of split ``test``.

        ``baselines`` is a file of answers of other methods to the test rows, which are then compared with SPC.

        >>> from unprior import synthesize
        >>> run = Run.of(synthesize(seed=0))
        >>> len(run.decisions), [task.task for task in run.evaluation.tasks]
        (920, ['mc', 'qa'])
        """
        sound, check = sound_pairs(table)
        _check(sound.values_of("split"), sound.values_of("side"))
        development, test = sound.where(split="dev"), sound.where(split="test")
        calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon_cs, uncertainty=uncertainty)
        calibrator.fit(development, split=None)
        decisions = calibrator.predict(test)
        evaluation = evaluate(test, decisions.final_positions)
        others = [] if baselines is None else read_answers(baselines, test)
        costs = None if baselines is None else read_references(baselines)
        studies = run_studies(decisions, calibrator, development, others, references=costs)
        cautions = (*_left_out(check), *warnings_about(development, epsilon_cs))
        return cls(table, calibrator, decisions, evaluation, studies, cautions)

    @property
    def beyond_permitted_loss(self) -> str | None:
        """A sentence for the reader when commonsense accuracy fell by more than ε on the test pairs."""
        epsilon = self.calibrator.epsilon_cs
        lost = [
            f"{100 * -task.cs.change.delta:.1f} points on {task.task.upper()}"
            for task in self.evaluation.tasks
            if task.cs.change.delta < -epsilon
        ]
        if not lost:
            return None
        return (
            f"Commonsense accuracy fell by {' and '.join(lost)}, more than ε = {100 * epsilon:g}: ε bounds the loss on "
            f"the development pairs, and the test pairs may lose more."
        )

    def write(self, folder: Path, benchmark: Benchmark | None = None, *, note: str | None = None) -> None:
        """Write score table, calibrator, explained decisions and the report; each file whole or not at all."""
        from unprior.report import report_record, write_report

        folder.mkdir(parents=True, exist_ok=True)
        self.table.write(folder / "scores.parquet")
        self.calibrator.save(folder / "calibrator.json")
        self.decisions.write(folder / "decisions.jsonl", explanations=True)
        parts: dict[str, Any] = {
            "table": self.table,
            "calibrator": self.calibrator,
            "decisions": self.decisions,
            "evaluation": self.evaluation,
            "studies": self.studies,
        }
        record = report_record(**parts)
        with replacing(folder / "report.json") as temporary:
            temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
        write_report(folder / "report.html", benchmark=benchmark, note=note, **parts)
