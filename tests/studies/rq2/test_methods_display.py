from __future__ import annotations

import dataclasses

import pytest
from matplotlib.text import Annotation

from made_up_methods import made_up
from unprior import ScoreTable
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq2.methods import Methods, study_methods


@pytest.fixture(scope="module")
def methods(table: ScoreTable) -> Methods:
    inputs = StudyInputs(table)
    return study_methods(
        inputs.decisions(), inputs.fitted(), inputs.development, made_up(inputs.test), resamples=20
    )  # fmt: skip


@pytest.mark.parametrize("style", [LIGHT, DARK])
@pytest.mark.parametrize("task", ["mc", "qa"])
def test_every_method_is_a_numbered_point(methods: Methods, task: str, style: FigureStyle) -> None:
    index, points = methods.tasks.index(task), methods.points(task)
    axes = methods.plot(style=style)[index]
    for point, row in zip(points, methods.rows, strict=True):
        change = row.tasks[index]
        assert (point.cs, point.cf) == pytest.approx((100 * change.cs.change.delta, 100 * change.cf.change.delta))
    legend = axes.get_legend_handles_labels()[1]
    outside = {point.number for point in points if point.outside}
    assert len(legend) == len(methods.rows)
    note = axes.get_title(loc="right")
    assert note == (f"not shown: {', '.join(map(str, sorted(outside)))}" if outside else "")
    shown = {point.number for point in points if point.kind != "spc"} - outside
    numbers = [text.get_text() for text in axes.texts if not text.get_text().startswith("U ")]
    assert {int(number) for text in numbers if text for number in text.split(", ")} == shown


def test_answers_at_random_lose_too_much_to_be_shown(methods: Methods) -> None:
    points = methods.points("mc")
    assert [point.label for point in points if point.outside] == ["Focus on Vision"]
    left, _ = methods.plot()[0].get_xlim()
    assert left > min(point.cs for point in points)


def test_lines_of_equal_utility_pass_where_they_say(methods: Methods) -> None:
    axes = methods.plot()[0]
    labels = [text for text in axes.texts if isinstance(text, Annotation) and text.get_text().startswith("U ")]
    assert len(labels) >= 3
    for label in labels:
        cs, cf = label.xy
        assert float(label.get_text()[2:].replace("−", "-")) == pytest.approx(cf + 0.5 * cs)


def test_labels_stay_inside_the_figure_and_the_axis_is_named(methods: Methods) -> None:
    figure = methods.figure()
    assert figure is not None
    figure.draw_without_rendering()
    for task, axes in zip(methods.tasks, figure.axes, strict=True):
        for artist in (axes.yaxis.label, *axes.texts):
            if artist.get_text():
                box = artist.get_window_extent()
                assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, (task, artist.get_text())


def test_methods_at_the_same_place_share_a_label(methods: Methods) -> None:
    twin = dataclasses.replace(methods.rows[2], name="twin", label="Twin")
    both = dataclasses.replace(methods, rows=(*methods.rows[2:4], twin, methods.rows[-1]))
    assert "1, 3" in [text.get_text() for text in both.plot()[1].texts]
