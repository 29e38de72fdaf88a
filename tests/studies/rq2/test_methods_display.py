from __future__ import annotations

import dataclasses

import pytest
from matplotlib.text import Annotation

from made_up_methods import made_up
from unprior import ScoreTable
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq2.methods import Methods, MethodsDisplay, study_methods


@pytest.fixture(scope="module")
def methods(table: ScoreTable) -> Methods:
    inputs = StudyInputs(table)
    return study_methods(
        inputs.decisions(), inputs.fitted(), inputs.development, made_up(inputs.test), resamples=20
    )  # fmt: skip


@pytest.mark.parametrize("style", [LIGHT, DARK])
@pytest.mark.parametrize("task", ["mc", "qa"])
def test_every_method_is_a_numbered_point(methods: Methods, task: str, style: FigureStyle) -> None:
    display = MethodsDisplay.from_results(methods, task=task, style=style)
    index = methods.tasks.index(task)
    for point, row in zip(display.points, methods.rows, strict=True):
        change = row.tasks[index]
        assert (point.cs, point.cf) == pytest.approx((100 * change.cs.change.delta, 100 * change.cf.change.delta))
    legend = [text.get_text() for text in display.axes_.get_legend().get_texts()]  # type: ignore[union-attr]
    outside = {point.number for point in display.outside}
    assert len(legend) == len(methods.rows)
    note = display.axes_.get_title(loc="right")
    assert note == (f"not shown: {', '.join(map(str, sorted(outside)))}" if outside else "")
    shown = {point.number for point in display.points if point.kind != "spc"} - outside
    numbers = [text.get_text() for text in display.axes_.texts if not text.get_text().startswith("U ")]
    assert {int(number) for text in numbers if text for number in text.split(", ")} == shown


def test_answers_at_random_lose_too_much_to_be_shown(methods: Methods) -> None:
    display = MethodsDisplay.from_results(methods, task="mc")
    assert [point.label for point in display.outside] == ["Focus on Vision"]
    left, _ = display.axes_.get_xlim()
    assert left > min(point.cs for point in display.points)


def test_lines_of_equal_utility_pass_where_they_say(methods: Methods) -> None:
    axes = MethodsDisplay.from_results(methods, task="mc").axes_
    labels = [text for text in axes.texts if isinstance(text, Annotation) and text.get_text().startswith("U ")]
    assert len(labels) >= 3
    for label in labels:
        cs, cf = label.xy
        assert float(label.get_text()[2:].replace("−", "-")) == pytest.approx(cf + 0.5 * cs)


def test_labels_stay_inside_the_figure_and_the_axis_is_named(methods: Methods) -> None:
    for task in methods.tasks:
        display = MethodsDisplay.from_results(methods, task=task)
        display.figure_.draw_without_rendering()
        whole = display.figure_.bbox
        for artist in (display.axes_.yaxis.label, *display.axes_.texts):
            if artist.get_text():
                box = artist.get_window_extent()
                assert whole.x0 <= box.x0 < box.x1 <= whole.x1, (task, artist.get_text())


def test_methods_at_the_same_place_share_a_label(methods: Methods) -> None:
    twin = dataclasses.replace(methods.rows[2], name="twin", label="Twin")
    both = dataclasses.replace(methods, rows=(*methods.rows[2:4], twin, methods.rows[-1]))
    display = MethodsDisplay.from_results(both, task="qa")
    assert "1, 3" in [text.get_text() for text in display.axes_.texts]
