"""The result in one sentence, and in four numbers, for every model of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unprior.embedded import NAME
from unprior.evaluation import Evaluation, SideResult, TaskResult
from unprior.plots.display import task_name
from unprior.studies.by_model import ByModel
from unprior.studies.finished import FinishedStudy
from unprior.studies.rq2.main_comparison import MainComparison
from unprior.tables.format import format_limit, format_list, format_p

EMBEDDED_WARNING = (
    "The embedded model is only for trying the method: it was trained on drawings to rely on its prior. These numbers "
    "say nothing about other models."
)
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


@dataclass(frozen=True, slots=True)
class Summary:
    """The main result of one model."""

    model: str | None
    """Its name where the page has several."""
    method: str
    """With version and ε."""
    sentence: str
    tiles: list[Tile]
    level: str
    """Of the intervals."""
    note: str | None = None
    """What the reader should know of it."""

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, method: str, *, abstains: bool = False, **more: str | None
    ) -> Summary:
        """The main result from an evaluation of the method that is named; ``more`` are ``model`` and ``note``."""
        sentence, level = headline(evaluation, method, abstains=abstains), f"{100 * evaluation.level:g} %"
        return cls(method=method, sentence=sentence, tiles=tiles(evaluation), level=level, **{"model": None} | more)


def summaries(finished: Sequence[FinishedStudy]) -> list[Summary]:
    """The main result of every model, as far as the main comparison is among the studies.

    >>> from unprior import synthesize
    >>> from unprior.studies import StudyInputs, run_studies
    >>> from unprior.studies.registry import STUDIES
    >>> done = run_studies(list(STUDIES.values())[:3], [StudyInputs(synthesize(seed=seed)) for seed in (0, 1)])
    >>> [summary.model for summary in summaries(done)]
    ['synthetic (1)', 'synthetic (2)']
    """
    found = []
    for each in finished:
        results = each.result.results if isinstance(each.result, ByModel) else {None: each.result}
        for model, result in results.items():
            if isinstance(result, MainComparison):
                note = loss_note(result.evaluation, each.limits[0])
                found.append(Summary.from_evaluation(result.evaluation, each.method, model=model, note=note))
    return found


def loss_note(evaluation: Evaluation, epsilon: float) -> str | None:
    """A sentence for the reader when commonsense accuracy fell by more than ε on the test pairs."""
    lost = [
        f"{100 * -task.cs.change.delta:.1f} points on {task.task.upper()}"
        for task in evaluation.tasks
        if task.cs.change.delta < -epsilon
    ]
    if not lost:
        return None
    return (
        f"Commonsense accuracy fell by {format_list(lost)}, more than ε = {format_limit(epsilon)} permits: ε bounds "
        f"the loss on the development pairs, and the test pairs may lose more."
    )


def is_embedded(model: str | None) -> bool:
    """Whether a name, perhaps with a number behind it, is that of the model that comes with the package.

    >>> is_embedded("embedded (2)"), is_embedded("my-embedded-vlm")
    (True, False)
    """
    return model is not None and model.split(" (")[0] == NAME


def headline(evaluation: Evaluation, method: str = "SPC", *, abstains: bool = False) -> str:
    """Say what the method did to accuracy on both kinds of images, in one sentence.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> print(headline(evaluate(decisions.table, decisions), decisions.method))
    On counterfactual images SPC (standard, ε = 0.04) raises accuracy from 51.7 % to 76.1 % (multiple choice) and from \
57.8 % to 91.3 % (yes/no questions), at −2.6 and −4.3 points on commonsense images.
    """
    if abstains:
        return (
            f"{method}: no setting was feasible on the development data. The calibrator abstains, and every answer "
            f"stays as the model gave it."
        )
    if not any(side.change.changed for task in evaluation.tasks for side in (task.cf, task.cs)):
        return f"{method} changes no answer."
    gains = [task.cf.change.delta for task in evaluation.tasks]
    verb = "raises" if min(gains) > 0 else "lowers" if max(gains) < 0 else "changes"
    spans = [
        f"from {_percent(task.original.cf.value)} to {_percent(task.method.cf.value)} ({task_name(task.task).lower()})"
        for task in evaluation.tasks
    ]
    costs = format_list([_points(task.cs.change.delta) for task in evaluation.tasks])
    return (
        f"On counterfactual images {method} {verb} accuracy {format_list(spans)}, at {costs} points on commonsense "
        f"images."
    )


def tiles(evaluation: Evaluation) -> list[Tile]:
    """The changes of all tasks on both sides.

    >>> from unprior import evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> [tile.delta for tile in tiles(evaluate(table, table.original))]
    ['0.0', '0.0', '0.0', '0.0']
    """
    return [_tile(task, side) for task in evaluation.tasks for side in _SIDES]


def _tile(task: TaskResult, side: str) -> Tile:
    result: SideResult = getattr(task, side)
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
