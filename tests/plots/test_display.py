"""Panels beside each other."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from unprior.plots.panels import Draw, Panels
from unprior.plots.style import FigureStyle


def drawn(top: float, name: str = "found", row: str = "SPC") -> Draw:
    def draw(axes: Axes, style: FigureStyle) -> None:
        axes.plot([0, top], [0, 0], label=name)
        axes.set_xlim(0, top)
        axes.set_yticks([0], [row])
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


def test_what_differs_stays_with_its_panel() -> None:
    figure = Panels((drawn(1.0), drawn(2.0, "other", "CFG")), 3, 2).figure()
    assert not figure.legends
    assert all(axes.get_legend() is not None for axes in figure.axes)
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], ["CFG"]]
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 1.0), (0.0, 2.0)]


def test_a_panel_for_every_task() -> None:
    def draw(result: dict[str, float], *, task: str, ax: Axes, style: FigureStyle) -> Any:
        return drawn(result[task], task)(ax, style)

    panels = Panels.per_task(draw, {"mc": 1.0, "qa": 2.0}, ("mc", "qa"), 3, 2)
    assert panels is not None
    assert [axes.get_xlim() for axes in panels.figure().axes] == [(0.0, 1.0), (0.0, 2.0)]
    assert Panels.per_task(draw, {}, (), 3, 2) is None
