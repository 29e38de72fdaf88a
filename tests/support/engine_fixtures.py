"""Small random models of every supported architecture, built once per test session, and the library's own recipes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import tiny_models
from unprior.engines.transformers.engine import TransformersEngine

torch.set_num_threads(1)  # tests run in several processes already
BRIEF = 12
"""Longest answer of the shared models: random ones never end by themselves."""


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
    return TransformersEngine(model_folder(request.param), device="cpu", max_new_tokens=BRIEF)


@pytest.fixture(scope="session")
def llava(model_folder: Callable[[str], Path]) -> TransformersEngine:
    return TransformersEngine(model_folder("llava"), device="cpu", max_new_tokens=BRIEF)


@pytest.fixture(scope="session")
def images() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    sizes = ((48, 48), (80, 40), (40, 90), (64, 64))
    return [Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in sizes]


def official_inputs(engine: TransformersEngine, image: Image.Image | None, text: str) -> dict[str, Any]:
    """Model inputs the way the library's documentation makes them."""
    content: list[dict[str, Any]] = [] if image is None else [{"type": "image", "image": image}]
    content.append({"type": "text", "text": text})
    processor = engine.encoder.processor
    return dict(
        processor.apply_chat_template(
            [{"role": "user", "content": content}],
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            add_generation_prompt=True,
        )
    )


def generate(engine: TransformersEngine, image: Image.Image | None, text: str, most: int = 64) -> list[int]:
    """Tokens that the library's own greedy generation writes, without those that end it."""
    inputs = official_inputs(engine, image, text)
    if hasattr(engine.model.model, "rope_deltas"):
        engine.model.model.rope_deltas = None
    written = engine.model.generate(**inputs, max_new_tokens=most, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    return [token for token in written.tolist() if token not in engine.stop_tokens]
