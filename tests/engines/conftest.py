"""Small random models of every supported architecture, built once per test session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import tiny_models
from unprior.engines.store import ScoreStore
from unprior.engines.transformers import TransformersEngine

torch.set_num_threads(1)  # tests run in several processes already


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    built: dict[str, Path] = {}

    def folder(architecture: str) -> Path:
        if architecture not in built:
            built[architecture] = tiny_models.build(architecture, tmp_path_factory.mktemp(architecture))
        return built[architecture]

    return folder


@pytest.fixture(scope="session", params=tiny_models.ARCHITECTURES)
def engine(request: pytest.FixtureRequest, model_folder: Callable[[str], Path]) -> TransformersEngine:
    return TransformersEngine(model_folder(request.param), device="cpu")


@pytest.fixture(scope="session")
def llava(model_folder: Callable[[str], Path]) -> TransformersEngine:
    return TransformersEngine(model_folder("llava"), device="cpu")


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    sizes = ((48, 48), (80, 40), (40, 90), (64, 64))
    return [Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in sizes]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "scores.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[ScoreStore]:
    with ScoreStore(path) as opened:
        yield opened
