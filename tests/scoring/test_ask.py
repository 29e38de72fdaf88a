"""Asking from Python: what is refused, and how a calibrator may be given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unprior import UnpriorError
from unprior.benchmarks.registry import load_benchmark
from unprior.engines.load import load_engine
from unprior.engines.protocol import Engine
from unprior.scoring.ask import ask


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load_engine("embedded")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    return tmp_path / "red.png"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": None}, "image: give the path of an image file; ask_about takes an image, not None"),
        (
            {"image": np.zeros((4, 4, 3))},
            "image: give the path of an image file; .*, not a ndarray",
        ),
        ({"question": None}, "question: give a text, not None"),
        ({"options": "five|six"}, r"options='five|six' \(command line: --options '.*'\): give 2 to 26"),
        ({"options": {"A": "five", "B": "six"}}, "give 2 to 26 different answers"),
        ({"options": ["five", "five"]}, "give 2 to 26 different answers"),
        ({"options": ["six", "six\u200b"]}, "give 2 to 26 different answers"),
        ({"options": ["a", "", "b"]}, "give 2 to 26 different answers"),
        ({"question": "\u200b"}, "question: give a text"),
        ({"resize": -5}, r"resize=-5 \(command line: --resize -5\): give a whole number from 0 to 8192"),
        ({"resize": 1.5}, "give a whole number from 0 to 8192"),
        ({"calibrator": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_mistakes_are_named(engine: Engine, image: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        ask(engine, **({"image": image, "question": "Is it red?"} | given))


@pytest.mark.usefixtures("_small_drawings")
def test_a_folder_may_be_text(tmp_path: Path) -> None:
    assert len(load_benchmark("microworld-presence", str(tmp_path))) > 0


@pytest.mark.parametrize("seed", ["a", -1, 1000, 1.5, True])
def test_a_seed_is_a_whole_number(tmp_path: Path, seed: Any) -> None:
    with pytest.raises(UnpriorError, match="give a whole number from 0 to 999"):
        load_benchmark("microworld", tmp_path, seed)


def test_an_answer_has_at_least_one_token() -> None:
    with pytest.raises(UnpriorError, match=r"max_new_tokens=0 \(command line: --max-new-tokens 0\)"):
        load_engine("embedded", max_new_tokens=0)
