"""What the examples in docstrings run with; no part of the package."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _small_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a microworld in a moment: examples tell how many images there are, not what they show."""
    monkeypatch.setattr("unprior.benchmarks.microworld.benchmark.IMAGE_SIZE", 48)
