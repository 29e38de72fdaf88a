"""What a set of answers repairs and what it costs: the measure that the studies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from unprior.calibration import Decisions
from unprior.evaluation import Change, compare, utility
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import as_answers
from unprior.scores import ScoreTable


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Change of accuracy on both sides of one task, against the original answers."""

    task: str
    cf: Change
    """On counterfactual images: repair."""
    cs: Change
    """On commonsense images: retention."""

    @property
    def utility(self) -> float:
        """U_0.5 = ΔCF + 0.5 ΔCS."""
        return utility(self.cf.delta, self.cs.delta)

    def record(self) -> dict[str, Any]:
        """Plain numbers; accuracies are shares, not points."""
        record: dict[str, Any] = {"task": self.task}
        for side, change in (("cf", self.cf), ("cs", self.cs)):
            record |= {
                f"delta_{side}": change.delta,
                f"{side}_repairs": change.repairs,
                f"{side}_harms": change.harms,
                f"{side}_changed": change.changed,
                f"{side}_total": change.total,
            }
        return record | {"utility": self.utility}


def trade_offs(table: ScoreTable, answers: ArrayLike | Decisions) -> tuple[TradeOff, ...]:
    """Compare answers with the original ones, task by task.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> [(result.task, result.utility) for result in trade_offs(table, table.original)]
    [('mc', 0.0), ('qa', 0.0)]
    """
    given = as_answers(table, answers)
    results = []
    for (task,), rows in group_rows(table, "task").items():
        part = table.take(rows)
        sides = [compare(part, given[rows], side=side) for side in ("cf", "cs")]
        results.append(TradeOff(str(task), *sides))
    return tuple(results)
