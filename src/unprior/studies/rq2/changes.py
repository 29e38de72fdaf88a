"""What methods change on a benchmark without pairs: accuracy before and after, repairs and harms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unprior.baselines.answers import Cost, MethodAnswers
from unprior.evaluation import Change, McNemarResult, Share, compare, mcnemar
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.scores import ScoreTable
from unprior.studies.result import format_repairs
from unprior.tables.format import format_p, format_points
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One method on one task."""

    method: str
    label: str
    """The name for people."""
    task: str
    before: Share
    """Right original answers."""
    after: Share
    """Right answers of the method."""
    change: Change
    test: McNemarResult
    matched: Change | None
    """Against the same decoder with its correction switched off."""
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class Changes:
    """Every method on every task, against the original answers.

    >>> from unprior import synthesize
    >>> study_changes(synthesize(seed=0), []).records()
    []
    """

    rows: tuple[ChangeRow, ...]

    @property
    def table(self) -> Table:
        """One row per method and task."""
        lines = [
            (row.task.upper(), row.label, f"{row.before.value:.3f}", f"{row.after.value:.3f}",
             format_points(row.change.delta), format_repairs(row.change), str(row.change.changed),
             format_p(row.test.p_value), format_points(getattr(row.matched, "delta", None)),
             *(("–", "–") if row.cost is None else (f"{row.cost.passes:.3g}", f"{row.cost.seconds:.3g}")))
            for row in self.rows
        ]  # fmt: skip
        return Table.plain(
            "Accuracy of original answers and of other methods",
            ("Task", "Method", "Before", "After", "Δ", "Repairs/harms", "Changed", "p", "Matched Δ", "Passes",
             "Seconds"),
            lines,
            "Accuracy before and after, Δ in points. p: exact two-sided McNemar tests, not adjusted. Matched: against "
            "the same decoder with its correction switched off. Passes and seconds of one example. Without pairs there "
            "is no CF and no CS side.",
            text_columns=2,
        )  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """One record per method and task."""
        return [
            {
                "method": row.method, "label": row.label, "task": row.task, "accuracy_before": row.before.value,
                "accuracy_after": row.after.value, "delta": row.change.delta, **asdict(row.change),
                "p": row.test.p_value,
                **{f"matched_{name}": getattr(row.matched, name, None) for name in ("delta", "repairs", "harms")},
                **{f"cost_{name}": getattr(row.cost, name, None) for name in ("images", "passes", "seconds")},
            }
            for row in self.rows
        ]  # fmt: skip


def study_changes(table: ScoreTable, methods: Sequence[MethodAnswers]) -> Changes:
    """Compare the answers of methods with the original ones, all images alike."""
    rows = []
    for (task,), chosen in group_rows(table, "task").items():
        part = table.take(chosen)
        before = Share(int(correct(part, part.original_positions).sum()), len(part))
        for method in methods:
            info, given, reference = method.info, method.answers[chosen], method.matched
            after, change = Share(int(correct(part, given).sum()), len(part)), compare(part, given, side=None)
            test = mcnemar(change.repairs, change.harms)
            matched = None if reference is None else compare(part, given, side=None, reference=reference[chosen])
            rows.append(ChangeRow(info.name, info.label, str(task), before, after, change, test, matched, info.cost))
    return Changes(tuple(rows))
