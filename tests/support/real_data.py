"""The published annotation files, where they lie beside the repository; tests that need them say so and skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "UNPRIOR_TEST_DATA"
_BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def real_data(name: str) -> Path:
    """Folder of a benchmark's real files; skips the test when it is not there."""
    base = Path(os.environ.get(VARIABLE) or _BESIDE)
    if not (base / name).is_dir():
        pytest.skip(f"no real files of {name}: put them into {base / name}, or name another folder by {VARIABLE}")
    return base / name
