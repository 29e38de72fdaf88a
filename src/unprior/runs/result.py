"""From a score table to a report: fit on the development rows, decide on the test rows, evaluate, write it all down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import replacing
from unprior.baselines.answers import read_answers, read_references
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.evaluation import Evaluation, evaluate
from unprior.progress import Progress, Report, silent
from unprior.runs.check import check_splits
from unprior.scores import ScoreTable, read_scores
from unprior.scores.pairs import PairCheck, sound_pairs, warnings_about
from unprior.studies import Studies, run_studies

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

FILES = ("scores.parquet", "calibrator.json", "decisions.jsonl", "report.html", "report.json")
"""What a run leaves in its folder."""


def _left_out(check: PairCheck) -> list[str]:
    """Pairs that lost a side, because an image of theirs could not be scored, tell nothing about the trade-off."""
    if not check.total:
        return []
    return [f"{check.total:,} pairs are left out, the first because of {check.problems[0]}"]


@dataclass(frozen=True)
class RunResult:
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
    def from_table(
        cls,
        table: ScoreTable,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        baselines: Path | None = None,
        report: Report = silent,
    ) -> RunResult:
        """Fit on the rows of split ``dev`` and judge on those of split ``test``.

        ``baselines`` is a file of answers of other methods to the test rows, which are then compared with SPC.

        >>> from unprior import synthesize
        >>> run = RunResult.from_table(synthesize(seed=0))
        >>> len(run.decisions), [task.task for task in run.evaluation.tasks]
        (920, ['mc', 'qa'])
        """
        report(Progress("Fitting, deciding and running the studies"))
        sound, check = sound_pairs(table)
        check_splits(sound.values_of("split"), sound.values_of("side"))
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


def refresh_report(folder: Path) -> None:
    """Write the files of a run folder again, with the answers of other methods that are there by now."""
    from unprior.baselines.suite import ANSWERS, fitting_answers

    table = read_scores(folder / "scores.parquet", require_answers=False)
    calibrator = SelectivePriorCalibrator.load(folder / "calibrator.json")
    RunResult.from_table(
        table,
        epsilon_cs=calibrator.epsilon_cs,
        uncertainty=calibrator.uncertainty,
        baselines=fitting_answers(folder / ANSWERS, table),
    ).write(folder)
