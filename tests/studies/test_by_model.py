"""Studies of several models: blocks of rows, columns of the figure, and families of tests over all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from made_up_methods import made_up
from small_tables import synthetic
from unprior import UnpriorError, holm
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.report.section import make_section
from unprior.studies.by_model import ByModel
from unprior.studies.finished import name_runs, run_studies
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.model import Table

SIDES = ("cf", "cs")
NAMES = ("org/first-model", "org/second-model")


@cache
def inputs(seed: int) -> StudyInputs:
    given = StudyInputs(synthetic(seed=seed), resamples=20)
    given.baselines = tuple(made_up(given.test))
    return given


RUNS = [inputs(0), inputs(1)]


@cache
def together(study: str) -> ByModel:
    return ByModel({name: STUDIES[study].run(inputs(seed)) for seed, name in enumerate(NAMES)})


@pytest.mark.parametrize(
    "name", [study.name for study in choose_studies(["rq1", "rq2"]) if study.name != "revis-direction"]
)
def test_every_model_has_its_blocks_records_and_sentences(name: str) -> None:
    result = together(name)
    for model, own in result.results.items():
        heading, rows = "", []
        for section in result.table.sections:
            heading = section.heading or heading  # a section without one belongs to the last
            rows += [row.cells for row in section.rows if heading.startswith(model)]
        assert rows == [row.cells for row in own.table.rows]
        assert [
            {field: value for field, value in record.items() if not field.endswith("_all_models")}
            for record in result.records()
            if record["model"] == model
        ] == [{"model": model} | record for record in own.records()]
        assert [f"{model}: {sentence}" for sentence in own.sentences] == [
            sentence for sentence in result.sentences if sentence.startswith(f"{model}: ")
        ]


@pytest.mark.parametrize("name", ["significance", "methods"])
def test_tests_are_adjusted_over_all_models(name: str) -> None:
    result = together(name)
    adjusted = result.adjusted()
    assert len(adjusted) == sum(len(own.tests()) for own in result.results.values())
    for family in {test.family for _, test in adjusted}:
        members = {each: p for each, p in adjusted.items() if each[1].family == family}
        assert {model for model, _ in members} == set(NAMES)
        assert list(members.values()) == list(holm([test.p for _, test in members]).adjusted)
    assert any(p > test.holm_p for (_, test), p in adjusted.items()), "more tests cost more"
    table = result.further_tables[-1]
    assert table.title == "Tests adjusted per model and over all models"
    assert len(table.rows) == len(adjusted)
    assert {test.name.rsplit(" ", 2)[0] for test in result.tests()} == set(NAMES)


@pytest.mark.parametrize("name", ["significance", "main-comparison", "methods"])
def test_records_have_what_is_adjusted_over_all_models(name: str) -> None:
    result = together(name)
    fields = [field for field in result.records()[0] if field.endswith("holm_p_all_models")]
    assert fields == (["holm_p_all_models"] if name == "significance" else [f"{s}_holm_p_all_models" for s in SIDES])
    expected = [result.adjusted()[model, test] for model, own in result.results.items() for test in own.tests()]
    assert [record[field] for record in result.records() for field in fields] == expected
    raw, own_adjusted = (
        [getattr(test, field) for own in result.results.values() for test in own.tests()] for field in ("p", "holm_p")
    )
    for field, expected in (("p", raw), ("holm_p", own_adjusted)):
        names = [each.replace("holm_p_all_models", field) for each in fields]
        if name != "methods" or field == "p":  # the records of methods adjust over all methods
            assert [record[each] for record in result.records() for each in names] == expected
    assert {record["family_all_models"] for record in result.records()} == {8}


def test_captions_say_where_the_tests_are() -> None:
    main, methods, exact = (
        each.result for each in run_studies(choose_studies(["main-comparison", "methods", "significance"]), RUNS)
    )
    assert isinstance(main, ByModel)
    assert isinstance(methods, ByModel)
    assert isinstance(exact, ByModel)
    how = "adjusted per model and over all models"
    own = "SPC (standard, ε = 0.04)"
    assert exact.table.caption.endswith(
        f" Adjusted p in this table are those of one model. The last table has the tests, {how}."
    )
    assert main.table.caption.endswith(f" “Exact tests” has the tests of {own}, {how}.")
    assert methods.table.caption.endswith(f" The last table has the other tests, {how}.")
    for caption in (main.table.caption, methods.table.caption):
        assert "Adjusted p in this table" not in caption, "it has none"


def test_the_same_tests_are_shown_once() -> None:
    finished = run_studies(choose_studies(["main-comparison", "methods", "significance"]), RUNS)
    headings = [section.heading for each in finished for table in each.further_tables for section in table.sections]
    assert len(headings) == len(set(headings))
    assert sum(str(heading).startswith("SPC (standard, ε = 0.04)") for heading in headings) == 1
    sections = [make_section(each, files=True) for each in finished]
    assert [[study.name for study in section.tests_in] for section in sections] == [["significance"]] * 2 + [[]]
    (alone,) = run_studies(choose_studies(["main-comparison"]), RUNS)
    assert len(alone.further_tables) == 1, "no other study of the page has them"


def test_the_last_sentence_counts_what_is_left_in_every_family() -> None:
    last = together("significance").sentences[-1]
    assert last.startswith(
        "Changes that are significant at 0.05 after Holm's adjustment over all models in the table: "
    )
    assert last.count(" of 8 with SPC (") == 3
    last = together("methods").sentences[-1]
    assert last.endswith(" of 96 in 12 other families."), "many families are not all named"
    assert last.count(" of 8 with SPC (") == 3
    assert together("attraction").adjusted() == {}
    assert "Holm" not in together("attraction").sentences[-1]


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("name", "panels"), [("attraction", 2), ("methods", 4)])
def test_the_figure_has_a_column_for_every_model_and_nothing_overlaps(
    name: str, panels: int, style: FigureStyle
) -> None:
    figure = together(name).figure(style)
    assert figure is not None
    assert len(figure.axes) == panels
    assert [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes[:2]] == list(NAMES)
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [legend.get_window_extent() for legend in figure.legends]
    for number, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1 + 1
        assert not any(box.overlaps(other) for other in boxes[:number])


def test_given_axes_are_drawn_on_model_after_model() -> None:
    axes = list(Figure().subplots(1, 4))
    assert together("methods").plot(axes) == axes
    first, second = NAMES
    titles = [each.get_title(loc="left").split("\n") for each in axes]
    assert titles == [[name, task] for name in (first, second) for task in ("Multiple choice", "Yes/no questions")]


def test_without_figures_there_is_none() -> None:
    assert together("settings").figure() is together("settings").panels() is None
    with pytest.raises(UnpriorError, match=r"^“Settings selected on the development pairs” has no figure"):
        together("settings").plot()
    (finished,) = run_studies(choose_studies(["settings"]), [inputs(0)])
    with pytest.raises(UnpriorError, match=r"^the study settings has no figure"):
        finished.plot()


def test_a_finished_study_shows_what_its_result_shows() -> None:
    (finished,) = run_studies(choose_studies(["attraction"]), [inputs(0)])
    result = finished.result
    assert result is not None
    assert {"table", "plot", "to_pandas", "figure", "records"} <= set(dir(finished))
    assert (finished.table, finished.sentences, finished.records()) == (
        result.table,
        result.sentences,
        result.records(),
    )
    axes = Figure().subplots()
    assert finished.plot(ax=axes) == [axes]
    absent = replace(finished, result=None, lacks="attraction needs more.")
    with pytest.raises(UnpriorError, match=r"^attraction needs more\.$"):
        absent.to_pandas()


@dataclass(frozen=True)
class Plain(StudyResult):
    given: Table

    @property
    def table(self) -> Table:
        return self.given

    @property
    def sentences(self) -> tuple[str, ...]:
        return ("Something was found.",)

    def records(self) -> list[dict[str, Any]]:
        return [{"cells": len(self.given.rows)}]


def test_columns_and_captions_that_only_some_models_have() -> None:
    one = Table.plain("Found", ("Task", "U", "p"), [("MC", "+1.0", "0.1")], "In points. † abstains. U: utility.")
    two = Table.plain("Found", ("Task", "U", "Matched"), [("MC", "+2.0", "+0.5")], "In points. U: utility.")
    two = replace(two, sections=(replace(two.sections[0], rows=(replace(two.rows[0], bold_cells=(2,)),)),))
    table = ByModel({"a": Plain(one), "b": Plain(two)}).table
    assert table.columns == ("Task", "U", "p", "Matched")
    assert [row.cells for row in table.rows] == [("MC", "+1.0", "0.1", "–"), ("MC", "+2.0", "–", "+0.5")]
    assert [row.bold_cells for row in table.rows] == [(), (3,)]
    assert table.caption == "In points. U: utility. a: † abstains."


def test_runs_of_one_model_are_told_apart_by_their_folders() -> None:
    runs = [replace(inputs(0), folder=Path(name)) for name in ("here/run", "there/run")]
    (finished,) = run_studies(choose_studies(["attraction"]), runs)
    assert isinstance(finished.result, ByModel)
    (model,) = {run.model or "?" for run in runs}
    assert list(finished.result.results) == [f"{model} (here/run)", f"{model} (there/run)"]


def test_what_one_of_several_runs_lacks_is_said_and_the_others_are_shown() -> None:
    bare = StudyInputs(synthetic(seed=1), resamples=20, folder=Path("bare"))
    cost, methods = run_studies(choose_studies(["cost", "methods"])[::-1], [inputs(0), bare])
    assert isinstance(cost.result, ByModel)
    assert len(cost.result.results) == 1
    assert cost.lacks == (
        "synthetic (bare): The study cost needs answers of other methods (baselines). "
        "To compute it: `unprior study cost --run bare --prepare`."
    )
    assert isinstance(methods.result, ByModel)
    assert len(methods.result.results) == 2
    assert methods.lacks is not None
    assert methods.lacks.startswith("synthetic (bare): The study methods can also show answers of other methods (base")


def test_a_study_that_fails_for_one_model_names_it() -> None:
    def run(given: StudyInputs) -> StudyResult:
        if given is inputs(1):
            raise UnpriorError("nothing to count")
        return STUDIES["attraction"].run(given)

    study = Study("counting", "Counting", "How many?", "Counted.", run)
    (finished,) = run_studies([study], [inputs(0), inputs(1)])
    assert finished.lacks == "synthetic (2): counting: nothing to count"
    (alone,) = run_studies([study], [inputs(1)])
    assert (alone.result, alone.lacks) == (None, "counting: nothing to count")


def test_a_model_that_is_called_like_another_run_keeps_its_own_rows() -> None:
    runs = [
        StudyInputs(synthetic(seed=seed).with_columns(model=model), folder=Path(folder))
        for seed, (model, folder) in enumerate([("X", "one"), ("X", "two"), ("X (one)", "three")])
    ]
    names = name_runs(runs)
    assert names == ["X (one), run 1", "X (two), run 2", "X (one), run 3"]
    (finished,) = run_studies(choose_studies(["attraction"]), runs)
    assert isinstance(finished.result, ByModel)
    assert list(finished.result.results) == names
