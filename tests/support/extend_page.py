"""The code blocks of docs/how-to/extend.md, as modules."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "extend.md"


def block_with(text: str) -> str:
    """The one Python block that holds a text."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if text in block]
    return code


def module_with(text: str, folder: Path) -> ModuleType:
    """The one Python block that holds a text, imported from a file in a folder."""
    path = folder / "block.py"
    path.write_text(block_with(text), encoding="utf-8")
    name = "block_" + re.sub(r"\W", "_", text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
