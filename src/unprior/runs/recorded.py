"""A finished run as its folder holds it: decisions, evaluation and questions, for programs that it is passed on to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unprior._files import is_file
from unprior.benchmarks.schema import Example
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError, warn
from unprior.evaluation import Evaluation, evaluate
from unprior.evaluation.answers import read_final_answers, read_origin
from unprior.progress import Progress, Report, silent
from unprior.prompts import PromptLayout
from unprior.runs.folder import find_config
from unprior.runs.questions import load_questions
from unprior.runs.result import check_one_source
from unprior.scores import ScoreTable, read_scores
from unprior.scores.pairs import sound_pairs
from unprior.scores.schema import IntArray

SCORES, CALIBRATOR, DECISIONS = FILES = ("scores.parquet", "calibrator.json", "decisions.jsonl")
"""What a run folder must hold to be passed on."""


@dataclass(frozen=True)
class RecordedRun:
    """Decisions of a run with the evaluation that belongs to them, and what was asked."""

    decisions: Decisions
    """About the rows that were asked for."""
    evaluation: Evaluation
    """Of the test rows; where they were not asked for, of the rows that were."""
    evaluated: int
    """How many rows the evaluation is about."""
    split: str | None
    """The rows that were asked for; None for all."""
    abstains: bool
    """Whether the calibrator leaves every answer as it is."""
    examples: Mapping[str, Example]
    """What was asked, by the name of the example; empty where the benchmark is not at hand."""
    layout: PromptLayout
    """The wording around the questions."""
    digest: str
    """Of the files of the run; the same run has the same digest wherever it lies."""

    @classmethod
    def from_folder(cls, folder: Path, *, split: str | None = "test", report: Report = silent) -> RecordedRun:
        """Read a run folder; decisions that do not belong to its scores and its calibrator are refused.

        Parameters
        ----------
        folder
            The folder of a finished run of one model, also one of version 0.1.0.
        split
            Rows to take, ``test`` or ``dev``; None for all.
        report
            Told how far it is.
        """
        for name in FILES:
            if not is_file(folder / name):
                raise UnpriorError(f"{folder}: there is no {name}; `unprior run --out {folder}` makes it")
        report(Progress(f"Reading {folder}"))
        table, check = sound_pairs(read_scores(folder / SCORES))
        check_one_source(table)
        if check.total:
            warn(f"{check.total:,} pairs of {folder / SCORES} are left out, the first because of {check.problems[0]}")
        calibrator = SelectivePriorCalibrator.load(folder / CALIBRATOR)
        of_test = table.mask(split="test")
        test = table.take(of_test)
        decided = calibrator.predict(test)
        final = read_final_answers(folder / DECISIONS, table, of_test.nonzero()[0])
        _refuse_other_calibrator(folder, decided, final)
        decisions = decided if split == "test" else calibrator.predict(table.where(split=split))
        judged = decided if split in ("test", None) else decisions
        examples, layout = _questions(folder, table, report)
        return cls(
            decisions=decisions,
            evaluation=evaluate(judged.table, judged),
            evaluated=len(judged),
            split=split,
            abstains=calibrator.state_.abstains,
            examples=examples,
            layout=layout,
            digest=_digest(folder),
        )


def _refuse_other_calibrator(folder: Path, decided: Decisions, final: IntArray) -> None:
    """What the calibrator decides must be what the run decided."""
    method = read_origin(folder / DECISIONS).method  # None in files of version 0.1.0
    others = int((final != decided.final_positions).sum())
    told = ""
    if method not in (None, decided.method):
        told = f"{CALIBRATOR} is {decided.method}, the answers in {DECISIONS} are of {method}"
    elif others:
        told = f"{CALIBRATOR} decides {others:,} of {len(final):,} test rows otherwise than {DECISIONS}"
    if told:
        raise UnpriorError(
            f"{folder}: {told}, so one of them is of another run; `unprior run --out {folder}` makes both again"
        )


def _questions(folder: Path, table: ScoreTable, report: Report) -> tuple[Mapping[str, Example], PromptLayout]:
    """What was asked, by the names of the examples, and in which wording; what is not at hand is warned about."""
    layout = PromptLayout()
    try:
        config = find_config(folder)
        if config is None:
            raise UnpriorError("the folder does not say which benchmark was asked")
        noted = config.prompt.layout
        noted.check()
        layout = noted
        benchmark = load_questions(config, report)
        asked = {record.questions for record in table.provenance} - {None}
        if asked and benchmark.digest() not in asked:
            raise UnpriorError(f"{config.benchmark.name} holds other questions than those that were scored")
    except UnpriorError as error:
        warn(f"{folder}: questions and images are left out, because they are not at hand: {error}")
        return {}, layout
    return {example.example_id: example for example in benchmark}, layout


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in FILES:
        with (folder / name).open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
