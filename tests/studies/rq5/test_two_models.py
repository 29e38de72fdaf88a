"""Every study of generalisation and scope for two models side by side."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from small_tables import few_pairs
from study_inputs import every_input
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.by_model import ByModel
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies

MODELS = ("org/first-model", "org/second-model")
CHOSEN = [study.name for study in choose_studies(["rq4", "rq5"])]
PANELS = {
    "held-out-categories": 2, "held-out-subcategories": 2, "repeated-splits": 2, "option-orders": 1, "claim-order": 2,
    "question-forms": 2, "prior-favours-ordinary": 2,
}  # fmt: skip


@cache
def inputs(seed: int) -> StudyInputs:
    return replace(every_input(few_pairs(development=2, test=2, seed=seed)), resamples=20)


@cache
def together(name: str) -> ByModel:
    return ByModel({model: STUDIES[name].run(inputs(seed)) for seed, model in enumerate(MODELS)})


@pytest.mark.parametrize("name", CHOSEN)
def test_every_model_has_its_block_and_its_sentences(name: str) -> None:
    both = together(name)
    assert len(set(both.table.columns)) == len(both.table.columns)
    for model, own in both.results.items():
        blocks = [section for section in both.table.sections if str(section.heading).startswith(model)]
        assert [row.cells for block in blocks for row in block.rows] == [row.cells for row in own.table.rows]
        assert {f"{model}: {sentence}" for sentence in own.sentences} <= set(both.sentences)
    assert len(both.records()) == sum(len(own.records()) for own in both.results.values())


@pytest.mark.parametrize("name", [name for name in CHOSEN if name != "prior-direction"])
def test_tables_and_sentences_name_the_limit(name: str) -> None:
    result = together(name).results[MODELS[0]]
    names = [str(section.heading) for section in result.table.sections] + [row.cells[0] for row in result.table.rows]
    assert "ε = 0." in " ".join([result.table.title, result.table.caption, *names])
    assert any("ε = 0." in sentence for sentence in result.sentences)


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", CHOSEN)
def test_figures_have_a_column_for_every_model_with_nothing_cut_off(name: str, style: FigureStyle) -> None:
    both = together(name)
    for result, columns in ((both.results[MODELS[0]], 1), (both, len(MODELS))):
        figure = result.figure(style)
        assert (0 if figure is None else len(figure.axes)) == columns * PANELS.get(name, 0)
        if figure is None:
            continue
        figure.draw_without_rendering()
        boxes = [axes.get_tightbbox() for axes in figure.axes] + [each.get_window_extent() for each in figure.legends]
        for number, box in enumerate(boxes):
            assert figure.bbox.x0 - 1 <= box.x0 < box.x1 <= figure.bbox.x1 + 1
            assert figure.bbox.y0 - 1 <= box.y0 < box.y1 <= figure.bbox.y1 + 1
            assert not any(box.overlaps(other) for other in boxes[:number])
