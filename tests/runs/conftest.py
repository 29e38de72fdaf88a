"""Models are tested once for all runs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _known_models(_tested_once: None) -> None:
    """Tests of the engine see to the self-test."""
