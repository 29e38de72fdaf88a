"""The method of docs/how-to/extend.md is complete: it answers, and switched off it is plain greedy decoding."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from extend_page import block_with, module_with
from unprior.baselines.controls import CONTROLS, run_controls
from unprior.baselines.controls.control import Control
from unprior.baselines.controls.subtraction import fixed_strength
from unprior.baselines.decoding import Question, decode_texts
from unprior.baselines.plain import Plain
from unprior.engines.transformers.engine import TransformersEngine
from unprior.scores import ScoreTable


def test_the_example_decodes(llava: TransformersEngine, images: list[Image.Image], tmp_path: Path) -> None:
    method = module_with("class FixedSubtraction(Method)", tmp_path).FixedSubtraction()
    questions = [Question(image, "How many fingers?", str(place)) for place, image in enumerate(images)]
    assert decode_texts(llava, method.matched(), questions) == decode_texts(llava, Plain(), questions)
    assert decode_texts(llava, method, questions) != decode_texts(llava, Plain(), questions)
    image, prior = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 3.0]])
    assert method.combine([image, prior]).tolist() == [[1.0, 0.5]]


def test_the_line_of_a_control_is_all_it_needs(
    table: ScoreTable, development: ScoreTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, label, run = eval(block_with("half-strength"), {"fixed_strength": fixed_strength})
    monkeypatch.setitem(CONTROLS, name, Control(name, label, run))
    (result,) = run_controls(development, table.where(split="test"), names=[name])
    assert result.settings == {"strength": 0.5}
    assert result.label == "Fixed λ = 0.5"
