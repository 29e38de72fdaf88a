"""The examples of the documentation: they have titles, use public names, and run as scripts without a warning."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import unprior

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted([*DOCS.glob("tutorial/plot_*.py"), *DOCS.glob("gallery/plot_*.py")])
WIDE = 88
"""Characters of code that fit into the column of a page."""
LONG = 400
"""Seconds that the slowest script may take: the first one scores the drawn world."""


def _named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem.removeprefix('plot_')}"


@pytest.fixture(params=SCRIPTS, ids=_named)
def script(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def _tree(script: Path) -> ast.Module:
    return ast.parse(script.read_text(encoding="utf-8"), filename=str(script))


def test_enough_examples() -> None:
    assert len([each for each in SCRIPTS if each.parent.name == "gallery"]) >= 8
    assert [each.name for each in SCRIPTS if each.parent.name == "tutorial"] == ["plot_ten_minutes.py"]


@pytest.mark.parametrize("folder", ["tutorial", "gallery"])
def test_header(folder: str) -> None:
    title, underline = (DOCS / folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()[:2]
    assert title
    assert underline == "=" * len(title)


def test_title(script: Path) -> None:
    """Sphinx-gallery takes the page's title from the docstring, and the summary from the paragraph below it."""
    documented = ast.get_docstring(_tree(script))
    assert documented
    title, underline, empty, summary, *_ = documented.splitlines()
    assert underline == "=" * len(title)
    assert empty == ""
    assert summary


def test_titled_figures(script: Path) -> None:
    """The titles of a figure become its alternative text."""
    compile(_tree(script), str(script), "exec")
    text = script.read_text(encoding="utf-8")
    assert "plt.subplots(" in text
    titles = ("set_title(", "suptitle(", "title=", "trade_off_panels(")
    for block in text.split("with LIGHT.applied():")[1:]:
        assert any(each in block.split("# %%")[0] for each in titles)


def test_lines_fit_the_page(script: Path) -> None:
    """Text is filled again on the page; code is not."""
    for node in _tree(script).body[1:]:
        for line in script.read_text(encoding="utf-8").splitlines()[node.lineno - 1 : node.end_lineno]:
            assert len(line) <= WIDE, line


def test_public_names(script: Path) -> None:
    for node in ast.walk(_tree(script)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "unprior":
            module = import_module(node.module or "")
            assert not any(part.startswith("_") for part in (node.module or "").split("."))
            for alias in node.names:
                assert not alias.name.startswith("_")
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), f"line {node.lineno}: {node.attr} is private"
            if isinstance(node.value, ast.Name) and node.value.id == "unprior":
                assert node.attr in unprior.__all__, f"line {node.lineno}: unprior.{node.attr} is not public"


def test_tutorial_needs_nothing_but_the_package() -> None:
    """The tutorial calls the package's own names; only the style of figures comes from a module."""
    (tutorial,) = (each for each in SCRIPTS if each.parent.name == "tutorial")
    modules = {node.module for node in ast.walk(_tree(tutorial)) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name and name.startswith("unprior")} == {"unprior.plots.style"}


@pytest.fixture(scope="session")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all scripts keep the scores that they share."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.slow
def test_runs(script: Path, temporary: Path, tmp_path: Path) -> None:
    surroundings = os.environ | {
        "MPLBACKEND": "Agg",
        "TMPDIR": str(temporary),
        "UNPRIOR_GALLERY": str(temporary / "gallery"),
        "PYTHONWARNINGS": "error",
        "HF_HUB_OFFLINE": "1",
    }
    before = set(script.parent.iterdir())
    done = subprocess.run(
        [sys.executable, "-B", str(script)], cwd=tmp_path, env=surroundings, capture_output=True, text=True,
        timeout=LONG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert set(script.parent.iterdir()) == before
    assert not list(tmp_path.iterdir())
