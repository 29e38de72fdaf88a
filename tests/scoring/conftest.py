"""Models and stores to test with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_fixtures import engine, images, llava, model_folder  # noqa: F401
from unprior.scoring.store import ScoreStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "scores.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[ScoreStore]:
    with ScoreStore(path) as opened:
        yield opened
