"""Panels beside each other."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes

from unprior.plots.style import LIGHT
from unprior.report.figures import side_by_side


def drawn(top: float, name: str = "found", row: str = "SPC") -> Callable[[Axes], object]:
    def draw(axes: Axes) -> None:
        axes.plot([0, top], [0, 0], label=name)
        axes.set_xlim(0, top)
        axes.set_yticks([0], [row])
        axes.legend()

    return draw


def rows_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels() if label.get_text()]


def test_panels_share_a_legend_names_and_scale() -> None:
    figure = side_by_side([drawn(1.0), drawn(2.0)], 3, 2, LIGHT, same_scale=True)
    assert [axes.get_legend() for axes in figure.axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["found"]
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], []]
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 2.0)] * 2


def test_what_differs_stays_with_its_panel() -> None:
    figure = side_by_side([drawn(1.0), drawn(2.0, "other", "CFG")], 3, 2, LIGHT)
    assert not figure.legends
    assert all(axes.get_legend() is not None for axes in figure.axes)
    assert [rows_of(axes) for axes in figure.axes] == [["SPC"], ["CFG"]]
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 1.0), (0.0, 2.0)]
