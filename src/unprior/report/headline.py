"""The result in one sentence, and in four numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unprior.evaluation import Evaluation, SideResult, TaskResult
from unprior.report.figures import task_name
from unprior.tables.format import format_p

_SIDES = {"cf": "counterfactual images", "cs": "commonsense images"}


@dataclass(frozen=True, slots=True)
class Tile:
    """One change of accuracy, to be read at a glance."""

    task: str
    side: str
    where: str
    """Kind of images, for people."""
    delta: str
    before: str
    after: str
    interval: str | None
    repairs: int
    harms: int
    p: str
    """With its sign of comparison."""


def headline(evaluation: Evaluation, *, abstains: bool = False) -> str:
    """Say what the method did to accuracy on both kinds of images, in one sentence.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> print(headline(evaluate(decisions.table, decisions)))
    On counterfactual images SPC raises accuracy from 51.7 % to 76.1 % (multiple choice) and from 57.8 % to 91.3 % \
(yes/no questions), at −2.6 and −4.3 points on commonsense images.
    """
    if abstains:
        return (
            "No setting was feasible on the development data: the calibrator abstains, and every answer stays as the "
            "model gave it."
        )
    gains = [task.cf.change.delta for task in evaluation.tasks]
    verb = "raises" if min(gains) > 0 else "lowers" if max(gains) < 0 else "changes"
    spans = [
        f"from {_percent(task.original.cf.value)} to {_percent(task.method.cf.value)} ({task_name(task.task).lower()})"
        for task in evaluation.tasks
    ]
    costs = " and ".join(_points(task.cs.change.delta) for task in evaluation.tasks)
    return (
        f"On counterfactual images SPC {verb} accuracy {' and '.join(spans)}, at {costs} points on commonsense images."
    )


def tiles(evaluation: Evaluation) -> list[Tile]:
    """The changes of all tasks on both sides.

    >>> from unprior import evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> [tile.delta for tile in tiles(evaluate(table, table.original))]
    ['0.0', '0.0', '0.0', '0.0']
    """
    return [
        _tile(task, side, result) for task in evaluation.tasks for side, result in (("cf", task.cf), ("cs", task.cs))
    ]


def _tile(task: TaskResult, side: str, result: SideResult) -> Tile:
    before, after = (getattr(metrics, side).value for metrics in (task.original, task.method))
    defined = not math.isnan(result.low)
    p = format_p(result.test.p_value)
    return Tile(
        task=task_name(task.task),
        side=side,
        where=_SIDES[side],
        delta=_points(result.change.delta),
        before=_percent(before),
        after=_percent(after),
        interval=f"{_points(result.low)} to {_points(result.high)}" if defined else None,
        repairs=result.change.repairs,
        harms=result.change.harms,
        p=f"= {p}" if p[0].isdigit() else f"{p[0]} {p[1:]}",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(delta: float) -> str:
    """Points with a true minus sign; nothing lost and nothing won has none."""
    text = f"{100 * delta:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
