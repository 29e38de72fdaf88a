"""Our values for the tables about the parts of SPC and their alternatives."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import numpy as np

from unprior.baselines.controls import ControlResult, run_controls
from unprior.evaluation.comparison import group_rows
from unprior.reproduction.cells import Cells, OwnCell, delta_cells, evaluated, once, trade_off_cells
from unprior.reproduction.main_tables import changes
from unprior.reproduction.paper import MODELS
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq3.components import study_components
from unprior.studies.rq3.repairs import Repairs, study_repairs
from unprior.studies.rq3.stable_ranges import fitted_ranges

_COMPONENTS = {
    "no_subtraction": "No prior subtraction",
    "fixed": "Fixed correction strength",
    "ungated": "Ungated adaptive subtraction",
    "spc": "Full SPC",
}


def components(inputs: StudyInputs) -> Cells:
    """SPC taken apart."""
    for variant in study_components(inputs.decisions(0.04)).rows:
        yield from trade_off_cells(_COMPONENTS[variant.name], variant.tasks)


def summed(inputs: StudyInputs) -> Cells:
    """SPC on summed token scores, which is SPC itself."""
    for task in evaluated(inputs).tasks:
        yield from changes(f"{task.task.upper()} summed", task.cf.change, task.cs.change)


@once
def _repairs(inputs: StudyInputs) -> Repairs:
    return study_repairs(inputs.decisions(0.04))


def native(inputs: StudyInputs) -> Cells:
    """Original answers beside the winners of candidate scoring."""
    for task in _repairs(inputs).tasks:
        row = task.task.upper()
        yield OwnCell(row, "CF repairs", task.image_right.total, 1)
        for column, share in (
            ("CF agreement (%)", task.same_cf),
            ("CS agreement (%)", task.same_cs),
            ("image already correct (%)", task.image_right),
            ("all three the same (%)", task.all_wrong_alike),
        ):
            yield OwnCell(row, column, 100 * share.value, 100 / share.total if share.total else 0.0)


def native_sums(models: Mapping[str, StudyInputs]) -> Cells:
    """The repairs of both main models and both tasks together."""
    if not set(MODELS[:2]) <= set(models):
        return
    tasks = [task for model in MODELS[:2] for task in _repairs(models[model]).tasks]
    for name, value in (
        ("CF repairs", sum(task.image_right.total for task in tasks)),
        ("image already correct", sum(task.image_right.count for task in tasks)),
        ("all three the same", sum(task.all_wrong_alike.count for task in tasks)),
    ):
        yield OwnCell("repairs", name, value, 1, model="both")


_CONTROLS = {
    "ungated-adaptive": "Adaptive strength, always adopt",
    "fixed-strength": "Fixed λ = 0.8, always adopt",
    "selected-strength-gated": "Selected fixed strength, SPC rule",
    "learned-rule-fixed": "Fixed strength, learned rule",
    "learned-rule-direct": "Direct subtraction, learned rule",
}


@once
def _controls(inputs: StudyInputs) -> dict[str, ControlResult]:
    names = [*_CONTROLS, "cfg-score"]
    results = run_controls(inputs.development, inputs.test, calibrator=inputs.fitted(0.04), names=names)
    return {result.name: result for result in results}


def controls(inputs: StudyInputs) -> Cells:
    """Other ways to form and to accept a proposal."""
    for name, row in _CONTROLS.items():
        yield from delta_cells(row, inputs.test, _controls(inputs)[name].answers)


def guidance(inputs: StudyInputs) -> Cells:
    """CFG on scores: chosen scales and what they give."""
    result = _controls(inputs)["cfg-score"]
    for task, scale in result.settings["scale"].items():
        yield OwnCell("CFG", f"{task.upper()} γ", scale)
    yield from delta_cells("CFG", inputs.test, result.answers)


def learned_rules(inputs: StudyInputs) -> Cells:
    """What the learned revision rules chose."""
    for row in ("fixed", "direct"):
        result = _controls(inputs)[f"learned-rule-{row}"]
        for setting, column in (("scale", "scale"), ("penalty", "ℓ2"), ("threshold", "threshold")):
            yield OwnCell(row, column, math.nan if result.abstains else result.settings[setting])


def strengths(inputs: StudyInputs) -> Cells:
    """The middle half of the learned strengths, and how many reach the cap."""
    decisions = inputs.decisions(0.04)
    cap = math.nan if decisions.settings is None else decisions.settings.max_strength
    for (task,), rows in group_rows(inputs.test, "task").items():
        values, row = decisions.strength[rows], str(task).upper()
        low, high = np.quantile(values, [0.25, 0.75]).tolist()
        yield OwnCell(row, "lower quartile", low)
        yield OwnCell(row, "upper quartile", high)
        at_cap = math.nan if math.isnan(cap) else 100 * float((values >= cap).mean())
        yield OwnCell(row, "at the cap (%)", at_cap, 100 / len(values))


_stable_ranges = once(fitted_ranges)


def ranges(models: Mapping[str, StudyInputs]) -> Cells:
    """Strengths that keep a proposal: of every task, and over both main models and both tasks."""
    for model, inputs in models.items():
        for record in _stable_ranges(inputs).records():
            row, one, outside = record["task"].upper(), 100 / record["n"], record["share_fixed_strength_outside"]
            yield OwnCell(row, "λ_max inside (%)", 100 * record["share_max_strength_inside"], one, model)
            if outside is not None:
                yield OwnCell(row, "λ*", record["fixed_strength"], model=model)
                yield OwnCell(row, "λ* outside (%)", 100 * outside, one, model)
    if not set(MODELS[:2]) <= set(models):
        return
    tasks = [task for model in MODELS[:2] for task in _stable_ranges(models[model]).tasks]
    records = [task.record() for task in tasks]
    widths = [record["median_bounded_width"] for record in records if record["median_bounded_width"] is not None]
    unbounded = [100 * record["share_unbounded"] for record in records]
    for row, extreme in (("least of four", min), ("most of four", max)):
        for column, values in (("median width", widths), ("unbounded (%)", unbounded)):
            yield OwnCell(row, column, extreme(values, default=math.nan), model="both")
    for column in ("repaired", "harmed"):
        radii = [radius for task in tasks for radius in task.radius[getattr(task, column)].tolist()]
        yield OwnCell("median radius", column, statistics.median(radii) if radii else math.nan, model="both")
