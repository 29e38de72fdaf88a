"""Shared synthetic score tables, made once."""

from __future__ import annotations

import pytest
from hypothesis import settings

from unprior import ScoreTable, synthesize

settings.register_profile("unprior", deadline=None, print_blob=True)
settings.load_profile("unprior")


@pytest.fixture(scope="session")
def table() -> ScoreTable:
    return synthesize(seed=11)


@pytest.fixture(scope="session")
def development(table: ScoreTable) -> ScoreTable:
    return table.where(split="dev")
