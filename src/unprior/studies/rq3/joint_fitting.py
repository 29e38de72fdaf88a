"""RQ3: one SPC model for all tasks, or one for each?"""

from __future__ import annotations

from dataclasses import dataclass

from unprior.calibration import SelectivePriorCalibrator
from unprior.calibration.selection import Ties
from unprior.scores import ScoreTable
from unprior.studies.common.variants import Variants, more_or_less
from unprior.studies.study import Study
from unprior.tables.format import format_list


@dataclass(frozen=True, slots=True)
class JointFitting(Variants):
    """SPC fitted on all tasks together, then on every task alone; all are applied to every task.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_joint_fitting(table.where(split="dev"), table.where(split="test"))
    >>> result.of("mc").on("qa").cf.changed
    0
    """

    title = "Fitting one SPC model for all tasks"
    differ_in = "Fitting data"
    caption = "SPC does not change answers to questions with a number of candidates that it was not fitted on."

    @property
    def sentences(self) -> tuple[str, ...]:
        """What fitting on one task does to it and to the others."""
        joint, *alone = self.rows
        if not alone:
            (result,) = joint.tasks
            return (
                f"There is one task only ({joint.label}), so there is nothing to fit jointly.",
                f"Fitted on it, {self.method} changes its accuracy by {result.changes} points.",
            )
        sentences = []
        for each in alone:
            own, together = each.on(each.name), joint.on(each.name)
            others = [result for result in each.tasks if result.task != each.name]
            effects = [
                f"changes {result.cf.changed + result.cs.changed} of {result.cf.total + result.cs.total} "
                f"{result.task.upper()} answers"
                for result in others
            ]
            compared = more_or_less(own.cf.delta - together.cf.delta, "higher than", "lower than", "the same as")
            sentences.append(
                f"Fitted on {each.label}, ΔCF of {self.method} on {each.name.upper()} is {compared} with a joint fit "
                f"({own.changes} against {together.changes}), and SPC {format_list(effects)}."
            )
        return tuple(sentences)


def study_joint_fitting(
    development: ScoreTable, test: ScoreTable, *, epsilon: float = 0.04, ties: Ties = "first"
) -> JointFitting:
    """Fit and select on all development tasks, and on each of them alone."""
    tasks = sorted({str(task) for task in development.column("task")})
    joint = format_list([task.upper() for task in tasks])
    fits = [("joint", joint, development)]
    if len(tasks) > 1:
        fits += [(task, f"{task.upper()} only", development.where(task=task)) for task in tasks]
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon, ties=ties)
    return JointFitting.from_decisions(
        (name, label, calibrator.clone().fit(rows, split=None).predict(test)) for name, label, rows in fits
    )


STUDY = Study(
    name="joint-fitting",
    title="One model for MC and QA",
    asks="What does fitting one model for both answer formats give, and what does it cost?",
    how="Standard SPC is fitted and selected on all development tasks, and on one task alone (fitting on QA alone is "
    "an addition to the paper); ε = {epsilon} holds for the tasks that a fit sees. Every model is applied to all test "
    "rows.",
    run=lambda inputs: study_joint_fitting(inputs.development, inputs.test, epsilon=inputs.epsilon, ties=inputs.ties),
    label="tab:joint-task-fitting",
)
