"""RQ5: does SPC help in both yes/no directions of the original questions?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from unprior.calibration import Decisions
from unprior.errors import UnpriorError
from unprior.evaluation import Change, compare
from unprior.evaluation.comparison import group_rows
from unprior.studies.common.versions import spc_versions
from unprior.studies.result import StudyResult, format_repairs
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_points
from unprior.tables.model import Row, Section, Table


@dataclass(frozen=True, slots=True)
class DirectionRow:
    """Yes/no questions of one side with the same right answer, for one version of SPC."""

    version: str
    side: str
    answer: str
    change: Change


@dataclass(frozen=True, slots=True)
class AnswerDirections(StudyResult):
    """Change of accuracy by side and right answer.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> [(row.side, row.answer, row.change.total) for row in study_answer_directions({"SPC": decisions}).rows]
    [('cf', 'no', 217), ('cf', 'yes', 13), ('cs', 'no', 13), ('cs', 'yes', 217)]
    """

    rows: tuple[DirectionRow, ...]

    @property
    def table(self) -> Table:
        """One section per version."""
        sections = tuple(
            Section(version, tuple(
                Row((row.side.upper(), row.answer, str(row.change.total), format_points(row.change.delta),
                     format_repairs(row.change)))
                for row in rows
            ))
            for version, rows in self._versions()
        )  # fmt: skip
        return Table(
            "QA accuracy by right answer",
            ("Images", "Right answer", "Examples", "Δ", "Repairs/harms"),
            sections,
            "Original question form; changes against the original answers in points.",
            text_columns=2,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """How unequal the directions are, and what SPC does in each."""
        most_often = []
        for side, group in groupby(self._versions()[0][1], lambda row: row.side):
            totals = {row.answer: row.change.total for row in group}
            most = max(totals, key=totals.__getitem__)
            most_often.append(f"{most} for {totals[most]} of {sum(totals.values())} {side.upper()} examples")
        sentences = [f"The right answer is {format_list(most_often)}."]
        for version, rows in self._versions():
            gains = [f"{row.side.upper()} {row.answer} {format_points(row.change.delta)}" for row in rows]
            lost = sum(row.change.delta < 0 for row in rows)
            sentences.append(f"{version} loses accuracy in {lost} of {len(rows)} groups ({', '.join(gains)} points).")
        return tuple(sentences)

    def _versions(self) -> list[tuple[str, list[DirectionRow]]]:
        return [(version, list(rows)) for version, rows in groupby(self.rows, lambda row: row.version)]

    def records(self) -> list[dict[str, Any]]:
        """One record per version, side and right answer."""
        return [
            {
                "version": row.version, "side": row.side, "answer": row.answer, "total": row.change.total,
                "delta": row.change.delta, "repairs": row.change.repairs, "harms": row.change.harms,
                "changed": row.change.changed,
            }
            for row in self.rows
        ]  # fmt: skip


def study_answer_directions(versions: Mapping[str, Decisions]) -> AnswerDirections:
    """Group the yes/no questions that were decided about by side and right answer."""
    rows = []
    for name, decisions in versions.items():
        table = decisions.table
        if "qa" not in table.column("task"):
            raise UnpriorError("the test rows have no yes/no questions (task qa), whose directions this study compares")
        for (task, side, answer), chosen in group_rows(table, "task", "side", "answer").items():
            if task == "qa":
                change = compare(table.take(chosen), decisions.final_positions[chosen], side=None)
                rows.append(DirectionRow(name, str(side), str(answer), change))
    return AnswerDirections(tuple(rows))


STUDY = Study(
    name="answer-directions",
    title="Unequal yes/no answers in the original questions",
    asks="Does SPC help where the right answer is yes as well as where it is no?",
    how="Yes/no questions of the test pairs by side and right answer: {versions}. The paper has the "
    "numbers of the uncertainty-aware version at the wider limit.",
    run=lambda inputs: study_answer_directions(spc_versions(inputs)),
)
