"""Prints requirements for an environment with the oldest versions that pyproject.toml allows, for `make test-lowest`.

``uv pip install --resolution lowest-direct --requirement -`` takes the lower bound of each line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
EXTRAS = ("hf", "pandas", "serve")
TOOLS = (
    *("filelock", "hypothesis", "openai", "playwright", "pytest", "pytest-xdist"),
    *("scikit-learn", "statsmodels"),
)
"""What the tests import beside the package and these extras; their lower bounds are those of the extra ``dev``."""


def requirements(project: Mapping[str, Any], extras: Iterable[str] = EXTRAS, tools: Iterable[str] = TOOLS) -> list[str]:
    """The requirements of a project, of some of its extras, and of some tools of its extra ``dev``.

    >>> optional = {"fast": ["quick>=2"], "dev": ["pytest>=8.2", "ruff>=0.6"]}
    >>> requirements({"dependencies": ["numpy>=1.26"], "optional-dependencies": optional}, ["fast"], ["pytest"])
    ['numpy>=1.26', 'quick>=2', 'pytest>=8.2']
    """
    optional = project["optional-dependencies"]
    named = {re.split(r"[^\w.-]", line, maxsplit=1)[0]: line for line in optional["dev"]}
    return [
        *project["dependencies"],
        *(line for extra in extras for line in optional[extra]),
        *(named[tool] for tool in tools),
    ]


if __name__ == "__main__":
    print("\n".join(requirements(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"])))
