"""Imports go one way, the core starts without heavy libraries, and CONTRIBUTING.md shows the package as it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.map import package_map, updated

ROOT = Path(__file__).parents[1]
CORE = ("scores", "calibration", "evaluation", "tables", "plots")
HEAVY = ("torch", "transformers", "vllm", "ray", "pandas", "matplotlib", "rich", "typer", "httpx", "jinja2")
IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1].split():
    package = importlib.import_module("unprior." + name)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "unprior.tables.terminal":  # which is there to make tables of rich
            importlib.import_module(module.name)
print(*(name for name in sys.argv[2].split() if name in sys.modules))
"""


def lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Check a copy of the package against the contracts of this repository."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    environment = os.environ | {"PYTHONPATH": str(source), "COLUMNS": "200"}
    return subprocess.run(
        [*command, *options], cwd=source, env=environment, capture_output=True, text=True, check=False
    )


def test_nothing_imports_upward() -> None:
    result = lint_imports(ROOT / "src")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("studies/study.py", "from unprior.report import page", "unprior.studies.study -> unprior.report"),
        ("scores/table.py", "from unprior.benchmarks import pope", "unprior.scores.table -> unprior.benchmarks.pope"),
        ("images.py", "from unprior import prompts", "unprior.images -> unprior.prompts"),
        ("tables/model.py", "import torch", "unprior.tables.model -> torch"),
        ("engines/precision.py", "import unprior", "unprior.engines.precision -> unprior"),
        ("benchmarks/card.py", "from unprior.benchmarks import registry", r"could be made acyclic"),
        ("studies/study.py", "from unprior.studies import registry", r"could be made acyclic"),
        ("calibration/gate.py", "from unprior.calibration import calibrator", r"could be made acyclic"),
        ("novelty.py", "pass", "novelty"),
    ],
)
def test_a_contract_finds_an_import_inside_a_function(tmp_path: Path, module: str, line: str, broken: str) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    with (tmp_path / "src" / "unprior" / module).open("a") as stream:
        stream.write(f"\n\ndef _late() -> None:\n    {line}\n")
    result = lint_imports(tmp_path / "src")
    assert result.returncode == 1
    assert re.search(rf"{broken}\b", result.stdout), result.stdout


def test_the_core_starts_without_heavy_libraries() -> None:
    command = [sys.executable, "-c", IMPORT_ALL, " ".join(CORE), " ".join(HEAVY)]
    result = subprocess.run(command, cwd=ROOT / "src", capture_output=True, text=True, check=True)
    assert result.stdout == "\n"


def test_the_map_is_up_to_date() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert page == updated(page), "run `make map`"


def test_every_file_can_be_read_at_once() -> None:
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = [ROOT / name for name in tracked.stdout.split()] or sorted((ROOT / "src").rglob("*.py"))
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths if path.exists()}
    assert lengths
    assert {str(path): length for path, length in lengths.items() if length > 450} == {}


def test_contributing_lists_the_layers_of_the_contract() -> None:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        contracts = tomllib.load(stream)["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["id"] == "layers"]
    shown = "\n".join(layer.replace(" | ", ", ") for layer in layers)
    assert f"```\n{shown}\n```" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_map_shows_folders_before_files_and_first_lines_only(tmp_path: Path) -> None:
    package = tmp_path / "thing"
    (package / "parts" / "data").mkdir(parents=True)
    (package / "__init__.py").write_text('"""A thing."""\n')
    (package / "about.py").write_text('"""About it.\n\nMore.\n"""\n')
    (package / "parts" / "__init__.py").write_text('"""Its parts."""\n')
    (package / "parts" / "first.py").write_text('"""The first."""\n')
    (package / "parts" / "data" / "table.csv").write_text("a,b\n")
    assert package_map(package) == (
        "src/thing/    A thing\n  parts/      Its parts\n    first.py  The first\n  about.py    About it\n"
    )


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="no place for the map"):
        updated("no markers")
