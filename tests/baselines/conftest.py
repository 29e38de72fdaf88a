"""Small random models of every supported architecture, shallow ones and ones deep enough to be edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_models
from engine_fixtures import engine, images, llava, model_folder  # noqa: F401
from unprior.engines.transformers.engine import TransformersEngine


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
