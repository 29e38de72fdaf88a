"""The engine of docs/how-to/extend.md is complete: the doctor finds no fault, and a benchmark can be scored with it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from PIL import Image

import unprior
from extend_page import block_with, module_with
from unprior.engines.protocol import Engine, Query, QueryFailure


def test_the_example_is_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module_with("class BrightnessEngine:", tmp_path)
    engine = made.BrightnessEngine()
    assert isinstance(engine, Engine)
    bright, dark = (Image.new("RGB", (8, 8), colour) for colour in ("white", "black"))
    assert engine.score_candidates(bright, "?", [" A"]) != engine.score_candidates(dark, "?", [" A"])
    every_character = engine.score_candidates(bright, "?", [chr(code) for code in range(32, 127)])
    assert math.isclose(every_character.mass, 1.0)
    failed, scored = engine.score_batch([Query(None, "?", ("",)), Query(None, "?", (" A",))])
    assert isinstance(failed, QueryFailure)
    assert scored == engine.score_candidates(None, "?", [" A"])

    monkeypatch.chdir(tmp_path)
    names = {"BrightnessEngine": made.BrightnessEngine}
    with pytest.warns(unprior.UnpriorWarning, match="the candidates hold only"):  # a toy says anything
        exec(compile(block_with("examine(engine)"), "extend.md", "exec"), names)
    assert not names["examine"](engine).failed
    assert len(names["table"]) == 8
