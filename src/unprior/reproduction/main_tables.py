"""Our values for the main tables: attraction, metrics, settings, exact tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, replace

from unprior.evaluation import PAPER_FAMILIES, Change, compare, holm_over_models
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import measure
from unprior.reproduction.cells import Cells, OneModel, OwnCell, change_cells, count_cells, evaluated, metric_cells
from unprior.reproduction.paper import MODELS
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq1.attraction import study_attraction
from unprior.studies.rq5.answer_directions import study_answer_directions

_SETTINGS = ("ρ", "λ_max", "m_min", "τ_D", "τ_A", "d_max")


def attraction(inputs: StudyInputs) -> Cells:
    """Where wrong counterfactual answers go."""
    for cell in study_attraction(inputs.test).overall:
        row, errors = cell.task.upper(), cell.attracted.total
        ordinary = cell.ordinary_among_errors.count
        one = 100 / errors if errors else 0.0
        yield OwnCell(row, "rate (%)", 100 * cell.attracted.value, one)
        yield OwnCell(row, "errors", errors, 1)
        yield OwnCell(row, "attracted", cell.attracted.count, 1)
        yield OwnCell(row, "prior is CS answer", ordinary, 1)
        yield OwnCell(row, "prior is CS answer (%)", 100 * ordinary / errors if errors else math.nan, one)


def main(inputs: StudyInputs) -> Cells:
    """The main table: metrics, changes and intervals on multiple choice."""
    for task in evaluated(inputs).tasks:
        if task.task == "mc":
            yield from metric_cells("Original", task.original)
            yield from metric_cells("SPC", task.method)
            yield from changes("SPC", task.cf.change, task.cs.change)
            for name, side in (("ΔCF", task.cf), ("ΔCS", task.cs)):
                for end, value in (("low", side.low), ("high", side.high)):
                    yield OwnCell("95 % interval", f"{name} {end}", 100 * value, 100 / side.change.total)


def changes(row: str, cf: Change, cs: Change) -> Cells:
    """Both Δ in points, repairs and harms on counterfactual images."""
    yield from change_cells(row, cf, "ΔCF")
    yield from change_cells(row, cs, "ΔCS")
    yield from count_cells(row, cf)


def official(inputs: StudyInputs) -> Cells:
    """Metrics of both tasks before and after."""
    for task in evaluated(inputs).tasks:
        yield from metric_cells(f"{task.task.upper()} Original", task.original)
        yield from metric_cells(f"{task.task.upper()} SPC", task.method)


def tests(models: Mapping[str, StudyInputs]) -> Cells:
    """Raw p-values of every model; adjusted ones only when the paper's whole family is there."""
    raw = [
        OwnCell(f"{task.task.upper()} {name}", "raw p", side.test.p_value, model=model)
        for model, inputs in models.items()
        for task in evaluated(inputs).tasks
        if task.task == "mc" or model != MODELS[2]
        for name, side in (("CF", task.cf), ("CS", task.cs))
    ]
    yield from raw
    if set(models) == set(MODELS) and len(raw) == PAPER_FAMILIES["primary"]:
        by_model = {model: {cell.row: cell.value for cell in raw if cell.model == model} for model in models}
        adjusted = holm_over_models(by_model, size=PAPER_FAMILIES["primary"])
        yield from (replace(cell, column="Holm p", value=adjusted[cell.model][cell.row]) for cell in raw)


def settings(row: str, epsilon: float, *, uncertainty: bool = False) -> OneModel:
    """What selection chose."""

    def compute(inputs: StudyInputs) -> Cells:
        settings = inputs.fitted(epsilon, uncertainty=uncertainty).settings_
        values = [math.nan] * len(_SETTINGS) if settings is None else astuple(settings)[: len(_SETTINGS)]
        named = zip(_SETTINGS, values, strict=True)
        yield from (OwnCell(row, name, value) for name, value in named if value is not None)

    return compute


def third_model(inputs: StudyInputs) -> Cells:
    """SPC on multiple choice, as the text gives it for the additional model."""
    return (cell for cell in main(inputs) if cell.row == "SPC")


def frontier(epsilon: float) -> OneModel:
    """Multiple choice under one ε, uncertainty-aware."""

    def compute(inputs: StudyInputs) -> Cells:
        part = inputs.test.where(task="mc")
        answers = inputs.fitted(epsilon, uncertainty=True).predict(part)
        for side in ("cf", "cs"):
            yield from change_cells(f"ε = {epsilon:.2f}", compare(part, answers, side=side), f"Δ{side.upper()}")

    return compute


def original_order(inputs: StudyInputs) -> Cells:
    """The options as they stand, before any reordering."""
    part = inputs.test.where(task="mc")
    answers = inputs.fitted(0.10, uncertainty=True).predict(part)
    for name, given in (("original", part.original_positions), ("SPC", answers.final_positions)):
        metrics = measure(part, given)
        yield OwnCell("Original", f"{name} CF-Acc", metrics.cf.value, 1 / metrics.cf.total)
        yield OwnCell("Original", f"{name} CS-Acc", metrics.cs.value, 1 / metrics.cs.total)
    for side in ("cf", "cs"):
        yield from change_cells("Original", compare(part, answers, side=side), f"Δ{side.upper()}")


def spectrum(epsilon: float) -> OneModel:
    """CDH-Bench among the other benchmarks: both sides counted together."""

    def compute(inputs: StudyInputs) -> Cells:
        decisions = inputs.decisions(epsilon)
        for (task,), rows in group_rows(inputs.test, "task").items():
            part, given = inputs.test.take(rows), decisions.final_positions[rows]
            row, change = f"CDH-Bench {task.upper()}, SPC ε = .{100 * epsilon:02.0f}", compare(part, given, side=None)
            yield OwnCell(row, "instances", change.total, 1)
            yield OwnCell(row, "changed", change.changed, 1)
            yield from count_cells(row, change)
            for side in ("cf", "cs"):
                yield from change_cells(row, compare(part, given, side=side), f"Δ{side.upper()}")

    return compute


def answer_groups(inputs: StudyInputs) -> Cells:
    """Yes/no questions by side and right answer."""
    for group in study_answer_directions({"SPC": inputs.decisions(0.10, uncertainty=True)}).rows:
        column = f"{group.side.upper()} {group.answer.casefold()}"
        yield from change_cells("Δ", group.change, column)
        yield OwnCell("examples", column, group.change.total, 1)
