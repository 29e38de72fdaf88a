from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from unprior.plots.style import DARK, LIGHT, as_svg


def test_svg_is_well_formed_and_repeatable() -> None:
    pictures = []
    for _ in range(2):
        with LIGHT.applied():
            axes = LIGHT.new_axes(3, 2)
            axes.plot([0, 1], [1, 0])
            axes.set_title("λ < 1")
        pictures.append(as_svg(axes.figure))  # type: ignore[arg-type]
    assert pictures[0] == pictures[1]
    assert ElementTree.fromstring(pictures[0]).tag.endswith("svg")
    assert "λ &lt; 1" in pictures[0], "text stays text"
    assert "DejaVu" not in pictures[0], "the reader's own font is used"
    assert "http://" not in pictures[0].replace("http://www.w3.org/", "")


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


def test_importing_the_report_does_not_load_matplotlib() -> None:
    command = "import sys, unprior.report; sys.exit('matplotlib' in sys.modules or 'jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
