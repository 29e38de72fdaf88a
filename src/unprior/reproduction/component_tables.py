"""Our values for the tables about the parts of SPC and their alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from unprior.baselines.controls import fixed_strength_answers, run_controls
from unprior.evaluation import prior_winners
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.reproduction.cells import Cells, OwnCell, change_cells, delta_cells, evaluated, spc
from unprior.reproduction.main_tables import changes
from unprior.reproduction.paper import MODELS
from unprior.scores.schema import BoolArray
from unprior.studies.components import study_components
from unprior.studies.inputs import StudyInputs

_COMPONENTS = {
    "no_subtraction": "No prior subtraction",
    "fixed": "Fixed correction strength",
    "ungated": "Ungated adaptive subtraction",
    "spc": "Full SPC",
}


def components(inputs: StudyInputs) -> Cells:
    """SPC taken apart."""
    for variant in study_components(inputs.decisions(0.04)).rows:
        for result in variant.tasks:
            for side, change in (("CF", result.cf), ("CS", result.cs)):
                yield from change_cells(_COMPONENTS[variant.variant], change, f"{result.task.upper()} Δ{side}")


def no_subtraction(inputs: StudyInputs) -> Cells:
    """Image scores alone."""
    return delta_cells("No prior subtraction", inputs.test, fixed_strength_answers(inputs.test, 0.0))


def paired(inputs: StudyInputs) -> Cells:
    """Fitting and selection on both sides, which is SPC itself."""
    row = "Fit and select on CF and CS"
    yield from spc(row, 0.04)(inputs)
    for task in evaluated(inputs).tasks:
        yield OwnCell(row, f"{task.task.upper()} CF repairs", task.cf.change.repairs, 1)
        yield OwnCell(row, f"{task.task.upper()} CF harms", task.cf.change.harms, 1)


def summed(inputs: StudyInputs) -> Cells:
    """SPC on summed token scores, which is SPC itself."""
    for task in evaluated(inputs).tasks:
        yield from changes(f"{task.task.upper()} summed", task.cf.change, task.cs.change)


def _originals_and_scores(inputs: StudyInputs) -> Iterator[tuple[str, dict[str, BoolArray], BoolArray]]:
    """By task: do original and image-scored answer agree on each side; and of every CF repair, was the image's winner
    already right, and did original, image and prior all say the same?
    """
    test, final = inputs.test, inputs.decisions(0.04).final
    image, prior = fixed_strength_answers(test, 0.0), prior_winners(test)
    agree, same = test.original == image, (test.original == image) & (image == prior)
    repaired = test.is_cf & correct(test, final) & ~correct(test, test.original)
    for (task,), rows in group_rows(test, "task").items():
        sides = {"CF": agree[rows[test.is_cf[rows]]], "CS": agree[rows[~test.is_cf[rows]]]}
        chosen = rows[repaired[rows]]
        yield str(task), sides, np.stack([correct(test, image)[chosen], same[chosen]], axis=1)


def native(inputs: StudyInputs) -> Cells:
    """Original answers beside the winners of candidate scoring."""
    for task, sides, repairs in _originals_and_scores(inputs):
        row, total = task.upper(), len(repairs)
        for side, agree in sides.items():
            yield OwnCell(row, f"{side} agreement (%)", 100 * float(agree.mean()), 100 / len(agree))
        yield OwnCell(row, "CF repairs", total, 1)
        for column, name in enumerate(("image already correct (%)", "all three the same (%)")):
            share = 100 * float(repairs[:, column].mean()) if total else math.nan
            yield OwnCell(row, name, share, 100 / total if total else 0.0)


def native_sums(models: Mapping[str, StudyInputs]) -> Cells:
    """The repairs of both main models and both tasks together."""
    if not set(MODELS[:2]) <= set(models):
        return
    parts = [repairs for model in MODELS[:2] for _, _, repairs in _originals_and_scores(models[model])]
    repairs = np.concatenate(parts)
    for name, value in (
        ("CF repairs", len(repairs)),
        ("image already correct", int(repairs[:, 0].sum())),
        ("all three the same", int(repairs[:, 1].sum())),
    ):
        yield OwnCell("repairs", name, value, 1, model="both")


_CONTROLS = {
    "ungated-adaptive": "Adaptive strength, always adopt",
    "fixed-strength": "Fixed λ = 0.8, always adopt",
    "selected-strength-gated": "Selected fixed strength, SPC rule",
    "learned-rule-fixed": "Fixed strength, learned rule",
    "learned-rule-direct": "Direct subtraction, learned rule",
}


def controls(inputs: StudyInputs) -> Cells:
    """Other ways to form and to accept a proposal."""
    fitted = inputs.fitted(0.04)
    for result in run_controls(inputs.development, inputs.test, calibrator=fitted, names=list(_CONTROLS)):
        yield from delta_cells(_CONTROLS[result.name], inputs.test, result.answers)


def guidance(inputs: StudyInputs) -> Cells:
    """CFG on scores: chosen scales and what they give."""
    fitted = inputs.fitted(0.04)
    (result,) = run_controls(inputs.development, inputs.test, calibrator=fitted, names=["cfg-score"])
    for task, scale in result.settings["scale"].items():
        yield OwnCell("CFG", f"{task.upper()} γ", scale)
    yield from delta_cells("CFG", inputs.test, result.answers)


def learned_rules(inputs: StudyInputs) -> Cells:
    """What the learned revision rules chose."""
    names = ["learned-rule-fixed", "learned-rule-direct"]
    for result in run_controls(inputs.development, inputs.test, calibrator=inputs.fitted(0.04), names=names):
        for setting, column in (("scale", "scale"), ("penalty", "ℓ2"), ("threshold", "threshold")):
            value = math.nan if result.abstains else result.settings[setting]
            yield OwnCell(result.name.removeprefix("learned-rule-"), column, value)


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


def all_development_pairs(inputs: StudyInputs) -> Cells:
    """With all pairs there is nothing to draw, so that nothing varies."""
    for cell in spc("70 pairs", 0.10, uncertainty=True)(inputs):
        yield cell
        yield OwnCell(cell.row, f"{cell.column} std", 0.0)
