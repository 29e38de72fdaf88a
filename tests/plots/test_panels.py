"""Panels of one result beside each other, and of several models in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unprior.plots.panels import Draw, Panels, by_model
from unprior.plots.style import DARK, LIGHT, FigureStyle


def drawn(top: float, names: Sequence[str] = ("found",), row: str = "SPC", title: str = "") -> Draw:
    def draw(axes: Axes, style: FigureStyle) -> None:
        for name in names:
            axes.plot([0, top], [0, 0], color=style.method, label=name)
        axes.set_xlim(0, top)
        axes.set_yticks([0], [row])
        axes.set_title(title)
        axes.legend()

    return draw


def rows_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels() if label.get_text()]


def test_panels_share_a_legend_names_and_scale() -> None:
    figure = Panels((drawn(1.0), drawn(2.0)), 3, 2, same_scale=True).figure()
    assert [axes.get_legend() for axes in figure.axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["found"]
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], []]
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 2.0)] * 2
    assert tuple(figure.get_size_inches()) == (6.0, 2.0)


def test_what_differs_stays_with_its_panel() -> None:
    figure = Panels((drawn(1.0), drawn(2.0, ["other"], "CFG")), 3, 2).figure()
    assert not figure.legends
    assert all(axes.get_legend() is not None for axes in figure.axes)
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], ["CFG"]]
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 1.0), (0.0, 2.0)]


def test_a_long_legend_stays_inside_the_figure_and_takes_no_room_of_the_panels() -> None:
    names = [f"{number}  a method with a rather long name" for number in range(21)]
    long = Panels((drawn(1.0, names), drawn(1.0, names)), 4, 3).figure()
    short = Panels((drawn(1.0), drawn(1.0)), 4, 3).figure()
    for figure in (long, short):
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0
        assert all(axes.get_tightbbox().y0 >= box.y1 for axes in figure.axes)  # type: ignore[union-attr]
    heights = [figure.axes[0].get_window_extent().height for figure in (long, short)]
    assert heights[0] == pytest.approx(heights[1], rel=0.15)


def test_models_stand_in_columns_under_their_names() -> None:
    panels = {
        name: Panels((drawn(1.0, title="MC"), drawn(2.0, title="QA")), 3, 2) for name in ("one", "org/" + 9 * "model-")
    }
    figure = by_model(panels, DARK)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["one\nMC", "org/model-model-\nmode…-model-model-model-\nMC", "QA", "QA"]
    assert {axes.get_title() for axes in figure.axes} == {""}
    assert tuple(figure.get_size_inches()) == (6.0, 4.0 + 2 * 0.19), "names of models take no room of the panels"
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], [], ["SPC"], []]


def test_more_than_two_models_stand_below() -> None:
    figure = by_model({name: Panels((drawn(1.0), drawn(2.0)), 3, 2) for name in "abc"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b", "", "", "c", ""]
    assert tuple(figure.get_size_inches()) == (6.0, 8.0)
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], [], ["SPC"], [], ["SPC"], ["SPC"]]


def test_different_legends_take_no_room_of_the_panels_and_stand_once_a_model() -> None:
    names = [[f"{model} {number}" for number in range(20)] for model in "ab"]
    models = {each[0]: Panels((drawn(1.0, each), drawn(1.0, each)), 3, 2) for each in names}
    figure = by_model(models)
    assert [axes.get_legend() is not None for axes in figure.axes] == [False, False, True, True]
    figure.draw_without_rendering()
    assert min(axes.get_window_extent().height for axes in figure.axes) > 0.9 * figure.dpi


def test_a_narrow_figure_has_its_panels_under_each_other() -> None:
    row = "A rather long name with ε = 0.04/and more"
    panels = Panels((drawn(1.0, row=row), drawn(2.0, row=row)), 5, 2, same_scale=True)
    figure = panels.figure(narrow=True)
    assert [rows_of(axes) for axes in figure.axes] == [["A rather long name\nwith ε = 0.04/and\nmore"]] * 2
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 2.0)] * 2
    width, height = figure.get_size_inches()
    assert width == 3.8
    assert height > 4.0, "names of several lines need more room"
    assert len(figure.legends) == 1


def test_a_narrow_legend_keeps_below_a_label_of_two_lines() -> None:
    def panel(name: str) -> Draw:
        def draw(axes: Axes, style: FigureStyle) -> None:
            for side in ("counterfactual", "commonsense"):
                axes.plot([0, 1], label=f"{side} images ({name})")
            axes.set_xlabel("strength λ, SPC (uncertainty-aware, ε = 0.04)")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)

        return draw

    figure = Panels((panel("MC"), panel("QA")), 5.4, 3.1).figure(narrow=True)
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert box.y1 <= axes.xaxis.label.get_window_extent().y0 + 1


def test_given_axes_are_drawn_on() -> None:
    panels = Panels((drawn(1.0), drawn(2.0)), 3, 2)
    axes = Figure().subplots(1, 2)
    assert panels.plot(axes, LIGHT) == list(axes)
    assert [each.get_xlim() for each in axes] == [(0.0, 1.0), (0.0, 2.0)]
    with pytest.raises(ValueError, match="2 panels; give as many axes, not 1"):
        panels.plot(axes[0])


def test_a_panel_for_every_task() -> None:
    def draw(result: dict[str, float], *, task: str, ax: Axes, style: FigureStyle) -> Any:
        return drawn(result[task], [task])(ax, style)

    panels = Panels.per_task(draw, {"mc": 1.0, "qa": 2.0}, ("mc", "qa"), 3, 2)
    assert panels is not None
    assert [axes.get_xlim() for axes in panels.figure().axes] == [(0.0, 1.0), (0.0, 2.0)]
    assert Panels.per_task(draw, {}, (), 3, 2) is None
