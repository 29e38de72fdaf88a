"""What a run gives: calibrator, decisions, evaluation and studies, in Python, in a notebook and as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import replacing
from unprior.baselines.answers import read_answers, read_left_out, read_references
from unprior.baselines.suite import ANSWERS, fitting_answers
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Evaluation, evaluate
from unprior.progress import Progress, Report, silent
from unprior.runs.questions import check_splits
from unprior.scores import ScoreTable, read_scores
from unprior.scores.checked import require_table
from unprior.scores.pairs import sound_pairs
from unprior.studies.finished import FinishedStudy, find_study, run_studies
from unprior.studies.inputs import StudyInputs, wide_limit
from unprior.studies.registry import studies_of_run
from unprior.studies.result import StudyResult
from unprior.studies.rq2.main_comparison import MainComparison
from unprior.tables.format import as_sentence

if TYPE_CHECKING:
    import pandas as pd

    from unprior.benchmarks.schema import Benchmark
    from unprior.scoring.run import Summary

FILES = ("scores.parquet", "calibrator.json", "decisions.jsonl", "report.html", "report.json")
"""What a run leaves in its folder."""
_LEFT_OUT = "left out of the comparison: "
_LOST = re.compile(r"[\d,]+ answers of other methods are missing, so none is compared\. ?")


@dataclass(frozen=True, repr=False)
class RunResult:
    """Everything that came out of a run; in a notebook it shows the main result.

    >>> from unprior import synthesize
    >>> result = RunResult.from_table(synthesize(seed=0))
    >>> len(result.decisions), [task.task for task in result.evaluation.tasks]
    (920, ['mc', 'qa'])
    >>> result.study("attraction").table.title
    'Prior attraction of wrong CF answers (%)'
    """

    table: ScoreTable
    calibrator: SelectivePriorCalibrator
    decisions: Decisions
    """About the test rows."""
    evaluation: Evaluation
    studies: tuple[FinishedStudy, ...]
    """Those of the preset ``run``, with or without a result; see :meth:`study`."""
    cautions: tuple[str, ...] = ()
    """What a reader should know before relying on the numbers, in sentences."""

    @classmethod
    def from_table(
        cls,
        table: ScoreTable,
        calibrator: SelectivePriorCalibrator | None = None,
        *,
        baselines: Path | None = None,
        left_out: Mapping[str, str] | None = None,
        folder: Path | None = None,
        report: Report = silent,
    ) -> RunResult:
        """Fit on the rows of split ``dev``, decide about and evaluate those of split ``test``, run the studies.

        Parameters
        ----------
        table
            Scores of one model on one benchmark, with both splits and both sides of every pair.
        calibrator
            What to fit, with its parameters; by default the paper's. Studies of the paper use the paper's rule and
            prior with the same ε, whatever is asked for here.
        baselines
            A file of answers of other methods to the test rows, which are then compared with SPC.
        left_out
            Methods that were asked for and are not compared, with the reasons.
        folder
            The run folder, for the commands that make what a study lacks.
        report
            Is told which study is running.
        """
        require_table(table)
        given = SelectivePriorCalibrator() if calibrator is None else calibrator
        given.check_parameters()
        report(Progress("Fitting and deciding"))
        check_one_source(table)
        sound, check = sound_pairs(table)
        check_splits(sound.values_of("split"), sound.values_of("side"))
        test = sound.where(split="test")
        inputs = StudyInputs(
            sound,
            baselines=() if baselines is None else tuple(read_answers(baselines, test)),
            costs={} if baselines is None else read_references(baselines),
            epsilon=given.epsilon_cs,
            wide_epsilon=wide_limit(given.epsilon_cs),
            uncertainty=given.uncertainty,
            promise=given.promise_parameters,
            folder=folder,
        )
        is_papers = given.retention == "paper" and given.prior == "plain"
        calibrator = inputs.fitted() if is_papers else given.clone().fit(inputs.development, split=None)
        decisions = calibrator.predict(test)
        if sound.is_open.any():
            inputs.find_open()
        studies = run_studies(studies_of_run(sound), [inputs], report=report)
        cautions = inputs.cautions
        if check.total:  # pairs that lost a side, because an image of theirs could not be scored
            cautions = (f"{check.total:,} pairs are left out, the first because of {check.problems[0]}", *cautions)
        cautions += tuple(f"{_LEFT_OUT}{name} ({reason})" for name, reason in (left_out or {}).items())
        main = [each.result.evaluation for each in studies if isinstance(each.result, MainComparison)]
        evaluation = main[0] if main and is_papers else evaluate(test, decisions)
        return cls(table, calibrator, decisions, evaluation, tuple(studies), cautions)

    def study(self, name: str) -> StudyResult:
        """The result of a study of the run by its name."""
        return find_study(self.studies, name).given

    @property
    def headline(self) -> str:
        """The main result in one sentence, with the version of SPC and ε."""
        from unprior.report.headline import headline

        return headline(self.evaluation, self.decisions.method, abstains=self.calibrator.state_.abstains)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the numbers should see first."""
        from unprior.report.headline import EMBEDDED_WARNING, is_embedded, loss_note

        embedded = any(is_embedded(task.model) for task in self.evaluation.tasks)
        certificate = self.calibrator.certificate_
        loss = loss_note(self.evaluation, self.calibrator.epsilon_cs)
        paper = {each.method for each in self.studies} - {self.decisions.method}
        rule = [
            f"The experiments of the paper use its own rule, {method}. The calibrator of this run is "
            f"{self.decisions.method}; its results are in the first sentence and in the table of promises."
            for method in paper
        ]
        told = (
            loss if certificate is None else certificate.sentence,
            *rule,
            EMBEDDED_WARNING if embedded else None,
        )
        return (*filter(None, told), *map(as_sentence, self.cautions))

    def __repr__(self) -> str:
        """Model, benchmark and main result."""
        from unprior.report.page import default_title

        return f"RunResult({default_title(self.table)}: {self.headline})"

    def to_pandas(self) -> pd.DataFrame:
        """The evaluation as a data frame, a row for every task."""
        return MainComparison(self.evaluation).to_pandas()

    def _repr_html_(self) -> str:
        """Headline, main table and notes, for notebooks."""
        from html import escape

        from unprior.tables.html import as_html

        words = [f"<p>{escape(sentence)}</p>" for sentence in (self.headline, *self.notes)]
        return words[0] + as_html(MainComparison(self.evaluation).table) + "".join(words[1:])

    def write(self, folder: Path, benchmark: Benchmark | None = None, *, note: str | None = None) -> None:
        """Write score table, calibrator, explained decisions and the report; each file whole or not at all.

        ``note`` tells how the scores were made, see :func:`scoring_notes`; the result's own notes follow it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.table.write(folder / "scores.parquet")
        self.calibrator.save(folder / "calibrator.json")
        self.decisions.write(folder / "decisions.jsonl", explanations=True)
        self.write_report(folder, benchmark, note=note)

    def write_report(self, folder: Path, benchmark: Benchmark | None = None, *, note: str | None = None) -> None:
        """Write the report alone, as a page and as a record."""
        from unprior.report import report_record, write_report

        parts: dict[str, Any] = {
            "calibrator": self.calibrator,
            "decisions": self.decisions,
            "evaluation": self.evaluation,
            "studies": self.studies,
            "notes": ([note] if note else []) + [own for own in self.notes if own not in (note or "")],
        }
        record = report_record(table=self.table, **parts)
        with replacing(folder / "report.json") as temporary:
            temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
        write_report(folder / "report.html", benchmark=benchmark, **parts)


def scoring_notes(summary: Summary, table: ScoreTable, lost_answers: int = 0) -> list[str]:
    """What a reader should know about how the scores and the answers of other methods were made, in sentences."""
    told = {
        f"{len(summary.failures):,} of {summary.examples:,} examples could not be scored.": bool(summary.failures),
        f"{summary.cut_off:,} answers were cut off while the model was thinking.": bool(summary.cut_off),
        f"{summary.censored:,} examples have scores that are only bounds.": bool(table.is_bounded.any()),
        f"{lost_answers:,} answers of other methods are missing, so none is compared.": bool(lost_answers),
    }
    return [note for note, holds in told.items() if holds]


def refresh_report(folder: Path, benchmark: Benchmark | None = None, *, report: Report = silent) -> RunResult:
    """Write the report of a run folder again from its files, e.g. when answers of other methods were added.

    Parameters
    ----------
    folder
        The folder of a finished run; scores, calibrator and answers are read and stay as they are.
    benchmark
        What was asked, for the images of the gallery.
    report
        Is told which study is running.
    """
    for name in ("scores.parquet", "calibrator.json"):
        if not (folder / name).exists():
            raise UnpriorError(f"{folder}: there is no {name}; `unprior run --out {folder}` makes it")
    table = read_scores(folder / "scores.parquet")
    calibrator = SelectivePriorCalibrator.load(folder / "calibrator.json")
    baselines = fitting_answers(folder / ANSWERS, table)
    result = RunResult.from_table(
        table,
        calibrator,
        baselines=baselines,
        left_out=None if baselines is None else read_left_out(baselines),
        folder=folder,
        report=report,
    )
    earlier = [
        note for note in _earlier_notes(folder)
        if note not in result.notes and not note.startswith(_LEFT_OUT.capitalize())
    ]  # fmt: skip
    result.write_report(folder, benchmark, note=_LOST.sub("", " ".join(earlier)).strip() or None)
    return result


def check_one_source(table: ScoreTable) -> None:
    """A run is about one model on one benchmark; a mixture would hide both."""
    _, labels = table.codes("model", "benchmark")
    if len(labels) > 1:
        named = "; ".join(f"{model or '?'} on {benchmark or '?'}" for model, benchmark in labels)
        raise UnpriorError(
            f"the scores are of several models or benchmarks ({named}); choose one with "
            f"table.where(model=..., benchmark=...) and make one report for each"
        )


def _earlier_notes(folder: Path) -> list[str]:
    """Notes of the report that is there; none of a report of version 0.1.0, or of a broken one."""
    try:
        record = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        return [str(note) for note in record["notes"]]
    except (OSError, ValueError, LookupError, TypeError):
        return []
