"""Our values for the tables that fit SPC again: on other pairs, or with other prior scores."""

from __future__ import annotations

import numpy as np

from unprior.errors import UnpriorError
from unprior.reproduction.cells import Cells, OwnCell, change_cells, count_cells, once, trade_off_cells
from unprior.scores import ScoreTable
from unprior.studies.common.spread import Spread
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq3.development_size import study_development_size
from unprior.studies.rq3.joint_fitting import study_joint_fitting
from unprior.studies.rq3.less_or_shifted import METHODS, study_less_or_shifted
from unprior.studies.rq3.paired_fitting import PairedFitting, study_paired_fitting
from unprior.studies.rq3.prior_controls import study_prior_controls
from unprior.studies.rq3.support_conditions import AGAIN, study_support_conditions
from unprior.studies.rq4.held_out import HeldOut, study_held_out
from unprior.studies.rq4.repeated_splits import study_repeated_splits

_PRIORS = {
    "none": "No prior subtraction",
    "image": "Image-conditioned scores as prior",
    "mean": "Mean development prior",
    "other": "Prior of another question",
    "shuffled": "Shuffled prior",
    "spc": "SPC",
}
_FITTING_DATA = {
    "both": "Fit and select on CF and CS",
    "select_cf": "Fit on CF and CS, select on CF",
    "cf": "Fit and select on CF",
}
_CATEGORIES = ("Attribute", "Counting", "Relation")


def _rows(inputs: StudyInputs, column: str) -> ScoreTable:
    """Both splits; every row must have the column by which pairs are drawn or held out."""
    if None in inputs.table.column(column):
        raise UnpriorError(f"needs the {column} of every row")
    return inputs.table


def _spread_cells(row: str, column: str, spread: Spread, total: int) -> Cells:
    yield OwnCell(row, column, 100 * spread.mean, 100 / total)
    yield OwnCell(row, f"{column} std", 100 * spread.deviation)


def prior_controls(inputs: StudyInputs) -> Cells:
    """Other scores in the place of the prior."""
    # One resample, since the table has none of the study's intervals.
    for control in study_prior_controls(
        inputs.development, inputs.test, epsilons=(0.10,), resamples=1, ties=inputs.ties
    ).rows:
        total = len(inputs.test.where(task=control.task, side="cf"))
        for side, values in (("CF", control.cf), ("CS", control.cs)):
            yield from _spread_cells(
                _PRIORS[control.name], f"{control.task.upper()} Δ{side}", Spread.from_values(values), total
            )


@once
def _paired(inputs: StudyInputs) -> PairedFitting:
    return study_paired_fitting(inputs.development, inputs.test, epsilon=0.04, ties=inputs.ties)


def paired(inputs: StudyInputs) -> Cells:
    """Fitting and selection on both sides, and on the counterfactual one."""
    for variant in _paired(inputs).rows:
        row = _FITTING_DATA[variant.name]
        yield from trade_off_cells(row, variant.tasks)
        for result in variant.tasks:
            yield from count_cells(row, result.cf, f"{result.task.upper()} CF ")


def fitted_on_one_side(inputs: StudyInputs) -> Cells:
    """Commonsense answers when neither fitting nor selection saw any."""
    for result in _paired(inputs).of("cf").tasks:
        yield from count_cells(result.task.upper(), result.cs, "CS ")


def joint(inputs: StudyInputs) -> Cells:
    """One model for both tasks, and one for each."""
    for variant in study_joint_fitting(inputs.development, inputs.test, epsilon=0.04, ties=inputs.ties).rows:
        yield from trade_off_cells(variant.label, variant.tasks)


def support_conditions(inputs: StudyInputs) -> Cells:
    """What is lost without a condition, and what the other alone repairs."""
    study = study_support_conditions(inputs.development, inputs.test, epsilon=0.10, ties=inputs.ties)
    full, absorption, conflict = (study.of(name, AGAIN) for name in ("full", "absorption", "conflict"))
    for lost, kept in zip(absorption.tasks, full.tasks, strict=True):
        loss = 100 * (lost.cs.delta - kept.cs.delta)
        yield OwnCell("Without conflict", f"{lost.task.upper()} ΔCS minus SPC's", loss, 100 / lost.cs.total)
    most = max((result.cf for result in conflict.tasks), key=lambda change: change.delta)
    yield from change_cells("Only conflict", most, "larger ΔCF of MC and QA")


def sizes(inputs: StudyInputs) -> Cells:
    """Nested development sets."""
    study = study_development_size(_rows(inputs, "subcategory"), epsilon=0.10)
    totals = {result.task: result.cf.total for result in study.runs[0].tasks}
    for size, tasks in study.summary.items():
        for each in tasks:
            for side, spread in (("CF", each.cf), ("CS", each.cs)):
                yield from _spread_cells(f"{size} pairs", f"{each.task.upper()} Δ{side}", spread, totals[each.task])


def less_or_shifted(inputs: StudyInputs) -> Cells:
    """Utility without the tested category, and with few pairs."""
    study = study_less_or_shifted(_rows(inputs, "subcategory"), epsilon=0.04)
    one = 100 / sum(result.cf.total for result in study.runs[0].tasks)
    for condition in study.conditions:
        for method, column in METHODS.items():
            yield OwnCell(condition, column, 100 * study.utility(condition, method), one)


@once
def _categories(inputs: StudyInputs) -> HeldOut:
    return study_held_out(_rows(inputs, "category"), by="category", epsilon=0.04)


def folds(inputs: StudyInputs) -> Cells:
    """Every category without development pairs of its own."""
    for fold in _categories(inputs).folds:
        row = _category(fold.name)
        yield from trade_off_cells(row, fold.tasks)
        for result in fold.tasks:
            for side, change in (("CF", result.cf), ("CS", result.cs)):
                yield from count_cells(row, change, f"{result.task.upper()} {side} ")


def _category(name: str) -> str:
    """As the paper's tables call it: ``Relational Anomalies`` is Relation."""
    return next((each for each in _CATEGORIES if name.casefold().startswith(each.casefold())), name)


def pooled(inputs: StudyInputs) -> Cells:
    """Answers of all folds together, and the sign of every subcategory's change."""
    yield from trade_off_cells("categories", _categories(inputs).pooled)
    subcategories = study_held_out(_rows(inputs, "subcategory"), by="subcategory", epsilon=0.04)
    yield from trade_off_cells("subcategories", subcategories.pooled)
    for task in subcategories.tasks:
        signs = np.sign([result.cf.delta for result in subcategories.of(task)])
        for sign, name in ((1, "improved"), (0, "unchanged"), (-1, "declined")):
            yield OwnCell("subcategories by sign", f"{task.upper()} {name}", int((signs == sign).sum()), 1)


def repeated_splits(inputs: StudyInputs) -> Cells:
    """Ten draws of the development pairs."""
    for each in study_repeated_splits(_rows(inputs, "subcategory"), epsilon=0.04).summary:
        for name, spread in (("ΔCF", each.cf), ("ΔCS", each.cs)):
            for column, value in (
                ("mean", spread.mean), ("std", spread.deviation), ("low", spread.low), ("high", spread.high)
            ):  # fmt: skip
                yield OwnCell(each.task.upper(), f"{name} {column}", 100 * value)
