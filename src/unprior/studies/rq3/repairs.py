"""RQ3: are the image scores alone already right where SPC repairs an answer?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unprior.baselines.controls.proposals import fixed_strength_answers
from unprior.calibration import Decisions
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import Share, correct, prior_winners
from unprior.scores.files import finite_or_none
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_extremes, format_percent
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class TaskRepairs:
    """One task: original against image-scored answers, and the counterfactual repairs of SPC."""

    task: str
    same_cf: Share
    """Counterfactual examples whose original answer is the image scores' winner."""
    same_cs: Share
    """The same on commonsense examples."""
    image_right: Share
    """Counterfactual repairs whose image scores were right before any correction."""
    all_wrong_alike: Share
    """Counterfactual repairs where original, image and prior named the same wrong answer."""

    def record(self) -> dict[str, Any]:
        """Plain numbers; what is undefined is None."""
        record: dict[str, Any] = {"task": self.task, "cf_repairs": self.image_right.total}
        for name in ("same_cf", "same_cs", "image_right", "all_wrong_alike"):
            share: Share = getattr(self, name)
            record |= {name: finite_or_none(share.value), f"{name}_count": share.count, f"{name}_total": share.total}
        return record


@dataclass(frozen=True, slots=True)
class Repairs(StudyResult):
    """Agreement between original and image-scored answers, and where repairs came from.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_repairs(SelectivePriorCalibrator().fit(table).predict(table.where(split="test")))
    >>> [task.task for task in result.tasks]
    ['mc', 'qa']
    """

    tasks: tuple[TaskRepairs, ...]
    method: str
    """SPC with its version and ε."""

    def records(self) -> list[dict[str, Any]]:
        """One record per task."""
        return [task.record() for task in self.tasks]

    @property
    def table(self) -> Table:
        """One row per task."""
        rows = [
            (
                each.task.upper(),
                f"{format_percent(each.same_cf.value)}/{format_percent(each.same_cs.value)}",
                str(each.image_right.total),
                format_percent(each.image_right.value),
                format_percent(each.all_wrong_alike.value),
            )
            for each in self.tasks
        ]
        return Table.plain(
            "Original predictions and candidate scoring",
            ("Task", "Original = image-scored CF/CS (%)", "CF repairs", "Image already right (%)",
             "All three the same wrong answer (%)"),
            rows,
            f"The last two columns are shares of the CF repairs of {self.method}, before any correction.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many repairs scoring alone would have made."""
        right = sum(task.image_right.count for task in self.tasks)
        alike = sum(task.all_wrong_alike.count for task in self.tasks)
        total = sum(task.image_right.total for task in self.tasks)
        shares = {
            f"{each.task.upper()} {side} images": share.value
            for each in self.tasks
            for side, share in (("CF", each.same_cf), ("CS", each.same_cs))
            if share.total
        }
        agreement = f"Agreement of original and image-scored answers {format_extremes(shares)}."
        if not total:
            return (f"{self.method} makes no CF repair.", agreement)
        return (
            f"The image scores were already right in {right} of {total} CF "
            f"{'repair' if total == 1 else 'repairs'} of {self.method}; in {alike} the original answer, the image "
            f"scores and the prior scores named the same wrong answer.",
            agreement,
        )


def study_repairs(decisions: Decisions) -> Repairs:
    """Compare original answers with the image scores' winners, and look at the counterfactual repairs.

    An original answer that could not be parsed agrees with nothing.
    """
    table = decisions.table
    image, prior = fixed_strength_answers(table, 0.0), prior_winners(table)
    same = table.original_positions == image
    repaired = table.is_cf & ~correct(table, table.original_positions) & correct(table, decisions.final_positions)
    tasks = []
    for (task,), rows in group_rows(table, "task").items():
        cf, cs, found = rows[table.is_cf[rows]], rows[~table.is_cf[rows]], rows[repaired[rows]]
        facts = ((same, cf), (same, cs), (table.is_right(image), found), (same & (image == prior), found))
        tasks.append(TaskRepairs(str(task), *(Share(int(fact[among].sum()), len(among)) for fact, among in facts)))
    return Repairs(tuple(tasks), decisions.method)


STUDY = Study(
    name="repairs",
    title="Original predictions and candidate scoring",
    asks="Does SPC only adopt answers that the image scores already had right?",
    how="Standard SPC, ε = {epsilon}, on the test rows: how often the original answer is the winner of the image "
    "scores, and among SPC's CF repairs the shares whose image scores were already right, and where original answer, "
    "image scores and text-only scores named the same wrong answer.",
    run=lambda inputs: study_repairs(inputs.decisions(uncertainty=False)),
    label="tab:native-score-agreement",
)
