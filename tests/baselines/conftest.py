"""Small random models of every supported architecture, deep enough to be edited, built once per test session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import tiny_models
from unprior.engines.transformers import TransformersEngine

torch.set_num_threads(1)  # tests run in several processes already


@pytest.fixture(scope="session")
def deep_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    built: dict[str, Path] = {}

    def folder(architecture: str) -> Path:
        if architecture not in built:
            built[architecture] = tiny_models.build(architecture, tmp_path_factory.mktemp(architecture), size="deep")
        return built[architecture]

    return folder


@pytest.fixture(scope="session", params=tiny_models.ARCHITECTURES)
def deep_engine(request: pytest.FixtureRequest, deep_folder: Callable[[str], Path]) -> TransformersEngine:
    return TransformersEngine(deep_folder(request.param), device="cpu")


@pytest.fixture(scope="session")
def deep_llava(deep_folder: Callable[[str], Path]) -> TransformersEngine:
    return TransformersEngine(deep_folder("llava"), device="cpu")


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    sizes = ((48, 48), (80, 40), (40, 90))
    return [Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in sizes]
