"""Rows to learn from: what a score table must hold before anything is fitted on it."""

from __future__ import annotations

from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.checked import require_table
from unprior.scores.pairs import refuse_unsound
from unprior.scores.schema import SIDES


def development_rows(table: ScoreTable, split: str | None) -> ScoreTable:
    """Rows to fit on; refuses what cannot support the ΔCF/ΔCS trade-off."""
    require_table(table)
    rows = table.mask(split=split)
    chosen = table.take(rows)
    refuse_unfit(chosen)
    refuse_unsound(table, rows)
    return chosen


def refuse_unfit(chosen: ScoreTable) -> None:
    """Refuse rows of several models, without answers or sides, or with one side of a task only."""
    models = sorted(str(model) for model in chosen.values_of("model"))
    if len(models) > 1:
        raise UnpriorError(
            f"the rows come from {len(models)} models ({', '.join(models)}); a calibrator belongs to one model. "
            f"Choose it with table.where(model=...) (command line: --model NAME)."
        )
    if not chosen.is_labelled.all():
        raise UnpriorError("some rows have no answer; fitting needs the correct answer of every row")
    if not chosen.is_paired.all():
        raise UnpriorError(
            f"{int((~chosen.is_paired).sum())} of {len(chosen)} rows do not say their side (cf or cs); calibration "
            f"weighs repair on cf against retention on cs and needs it in every row"
        )
    tasks = {task: chosen.mask(task=task) for task in sorted(chosen.values_of("task"))}
    present = {
        (task, side) for task, rows in tasks.items() for side in SIDES if (chosen.is_cf[rows] == (side == "cf")).any()
    }
    for task in tasks:
        for side, name in (("cf", "counterfactual"), ("cs", "commonsense")):
            if (task, side) not in present:
                remedy = "score both images of each pair" if chosen.is_matched.all() else "label more decisions"
                raise UnpriorError(
                    f"task {task} has no {name} ({side}) row among the {len(chosen)} rows to fit on. Calibration "
                    f"weighs repair on cf against retention on cs: {remedy}."
                )
