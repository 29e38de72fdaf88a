"""Panels beside each other, and words on colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from unprior.plots.display import readable_on
from unprior.plots.panels import Draw, Panels
from unprior.plots.style import DARK, LIGHT, FigureStyle


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


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_words_on_every_shade_can_be_read(style: FigureStyle) -> None:
    """Contrast of at least 4.5 between the colour of a cell and the words on it (WCAG AA)."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    def luminance(colour: tuple[float, ...]) -> float:
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    ramp = LinearSegmentedColormap.from_list("shades", style.ramp)
    for share in np.linspace(0, 1, 101).tolist():
        pair = sorted([luminance(ramp(share)), luminance(to_rgb(readable_on(ramp(share))))])
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5
