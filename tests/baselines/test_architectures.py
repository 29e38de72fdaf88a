"""Every method on every architecture that the engine takes, on small random models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import tiny_models
from method_support import SCORED, method_support
from unprior.baselines.attention_edit import edited_attention, image_columns
from unprior.baselines.decoder import decoder_layers
from unprior.baselines.decoding import Question, decode, image_tokens, view_inputs
from unprior.baselines.method import IMAGE, TEXT, Method
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.revis.method import REVIS
from unprior.baselines.steering import recorded
from unprior.baselines.vcd import VCD
from unprior.engines.protocol import Query
from unprior.engines.support import known_architectures
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS

# Some processors make NumPy arrays of tensors in a way that NumPy will not take for ever.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

LEFT_OUT = {"mllama": {"pai": "sees its image by cross-attention"}}
"""What does not run, and a part of the reason."""
TOKENS = 3
CLEAR, NOISY = VCD().views


@pytest.fixture(scope="module", params=SCORED)
def name(request: pytest.FixtureRequest) -> str:
    architecture = str(request.param)
    if missing := tiny_models.REGISTRY[architecture].missing():
        pytest.skip(f"the processor of {architecture} needs {' and '.join(missing)}")
    return architecture


@pytest.fixture(scope="module")
def engine(name: str, deep_folder: Callable[[str], Path]) -> TransformersEngine:
    # Tests of the engine hold the way of scoring in the support matrix against the self-test.
    known = {each.name: each.level for each in known_architectures()}.get(name)
    loaded = TransformersEngine(deep_folder(name), device="cpu", self_test=known is None)
    loaded.level = next((level for level in LEVELS if level.name == known), loaded.level)
    loaded.max_new_tokens = TOKENS
    # A random model may write the placeholder of an image, which no model can read in its own answer.
    loaded.stop_tokens = set(image_tokens(loaded))
    return loaded


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    texts = ("Is it red?\nAnswer with yes or no.", "How many legs are there?")
    return [Question(_drawn(*size), text, text) for size, text in zip(((64, 64), (48, 80)), texts, strict=True)]


def _drawn(height: int, width: int) -> Image.Image:
    """Large forms, which noise changes also for models that see an image as a few symbols."""
    rows, columns = np.mgrid[:height, :width]
    forms = [(rows // 16 + columns // 24) % 2 * 255, rows * 3, columns * 2]
    return Image.fromarray(np.stack(forms, axis=-1).astype(np.uint8))


def test_a_method_runs_or_says_why_not(name: str, engine: TransformersEngine) -> None:
    reasons = {method: reason for method, reason in method_support(engine).items() if reason is not None}
    expected = LEFT_OUT.get(name, {})
    assert reasons.keys() == expected.keys(), reasons
    assert all(part in reasons[method] for method, part in expected.items())
    stored = {each.name: each.methods or {} for each in known_architectures()}.get(name)
    assert stored is None or {method for method, reason in stored.items() if reason} == set(expected)


def test_with_corrections_off_a_method_writes_the_original_answer(
    name: str, engine: TransformersEngine, questions: list[Question]
) -> None:
    prompts = [engine.encoder.encode(Query(question.image, question.text, ())) for question in questions]
    original = [engine.scorer.write(engine.level, prompt, engine.stop_tokens, TOKENS) for prompt in prompts]
    methods: tuple[Method, ...] = (VCD(), MFCD(), PAI(), REVIS.for_trial(engine), NoLan())
    for method in methods:
        if method.name not in LEFT_OUT.get(name, {}):
            matched = method.matched()
            assert matched is not None
            assert decode(engine, matched, questions) == original, method.name


def noisy_logits(engine: TransformersEngine, question: Question) -> torch.Tensor:
    return engine.reader.read(view_inputs(engine, NOISY, [question])).logits[0, -1]


def test_noise_belongs_to_the_image_alone(engine: TransformersEngine, questions: list[Question]) -> None:
    noisy, again = ([noisy_logits(engine, question) for question in questions] for _ in range(2))
    assert all(map(torch.equal, noisy, again))
    other = replace(questions[0], name="another")
    pixels = [view_inputs(engine, NOISY, [question])["pixel_values"] for question in (questions[0], other)]
    assert not torch.equal(*pixels)
    clear = engine.reader.read(view_inputs(engine, CLEAR, questions[:1])).logits[0, -1]
    # Models that see an image as a few symbols do not notice every noise.
    names = (replace(questions[0], name=f"name {number}") for number in range(20))
    assert any((noisy_logits(engine, each) - clear).abs().max() > 1e-3 for each in (questions[0], *names))
    if engine.level.batches:
        together = engine.reader.read(view_inputs(engine, NOISY, questions)).logits[:, -1]
        torch.testing.assert_close(together, torch.stack(noisy), atol=1e-3, rtol=0)
    assert decode(engine, VCD(), questions) == [decode(engine, VCD(), [each])[0] for each in questions]


def test_more_attention_to_the_image_changes_scores(
    name: str, engine: TransformersEngine, questions: list[Question]
) -> None:
    if "pai" in LEFT_OUT.get(name, {}):
        return
    inputs = view_inputs(engine, IMAGE, questions[:1])
    plain = engine.reader.read(inputs).logits
    with edited_attention(engine.model, weight=0.5) as edit:
        edit.columns = image_columns(engine, inputs["input_ids"])
        edited = engine.reader.read(inputs).logits
    assert (edited - plain).abs().max() > 1e-3


def test_hidden_states_can_be_read_with_and_without_an_image(
    engine: TransformersEngine, questions: list[Question]
) -> None:
    size = engine.model.config.get_text_config().hidden_size
    for view in (IMAGE, TEXT):
        with recorded(engine.model) as states:
            engine.reader.read(view_inputs(engine, view, questions[:1]))
        assert len(states) == len(decoder_layers(engine.model))
        assert all(state.shape == (1, size) and torch.isfinite(state).all() for state in states)
