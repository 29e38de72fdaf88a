from __future__ import annotations

import subprocess
import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

from unprior.plots.style import DARK, LIGHT, FigureStyle, as_svg, readable_on


def test_svg_is_well_formed_and_repeatable() -> None:
    drawn = []
    for _ in range(2):
        with LIGHT.applied():
            axes = LIGHT.new_axes(3, 2)
            axes.plot([0, 1], [1, 0])
            axes.set_title("λ < 1")
        drawn.append(as_svg(axes.figure))  # type: ignore[arg-type]
    assert drawn[0] == drawn[1]
    assert ElementTree.fromstring(drawn[0]).tag.endswith("svg")
    assert "λ &lt; 1" in drawn[0], "text stays text"
    assert "DejaVu" not in drawn[0], "the reader's own font is used"
    assert "http://" not in drawn[0].replace("http://www.w3.org/", "")


def test_a_dollar_sign_in_a_name_is_no_formula() -> None:
    with LIGHT.applied():
        axes = LIGHT.new_axes(3, 2)
        axes.set_title(r"costs $\nonsense{$ and <b>")
    assert r"costs $\nonsense{$ and &lt;b&gt;" in as_svg(axes.figure)  # type: ignore[arg-type]


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_every_role_has_its_own_colour(style: object) -> None:
    groups = [("cf", "cs"), ("repaired", "harmed", "quiet"), ("method", "control", "quiet"), ("ink", "paper")]
    for names in groups:
        assert len({getattr(style, name) for name in names}) == len(names)


def test_a_control_character_leaves_svg_well_formed() -> None:
    with LIGHT.applied():
        axes = LIGHT.new_axes(3, 2)
        axes.set_title("a\x1b[31m")
        figure = axes.figure
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the font has no such character
            svg = as_svg(figure)  # type: ignore[arg-type]
    assert r"a\x1b[31m" in svg
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_importing_the_report_does_not_load_matplotlib() -> None:
    command = "import sys, unprior.report; sys.exit('matplotlib' in sys.modules or 'jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_words_on_every_shade_can_be_read(style: FigureStyle) -> None:
    """Contrast of at least 4.5 between the colour of a cell and the words on it (WCAG AA)."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    def contrast(*colours: tuple[float, ...]) -> float:
        """Of two colours, the darker first or last."""
        linear = [[part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
                  for colour in colours]  # fmt: skip
        dark, bright = sorted(np.dot(linear, [0.2126, 0.7152, 0.0722]))
        return float((bright + 0.05) / (dark + 0.05))

    for words in (style.ink, style.quiet):
        for ground in (style.paper, style.grid):
            assert contrast(to_rgb(words), to_rgb(ground)) >= 4.5
    ramp = LinearSegmentedColormap.from_list("shades", style.ramp)
    for share in np.linspace(0, 1, 101).tolist():
        assert contrast(ramp(share), to_rgb(readable_on(ramp(share)))) >= 4.5
