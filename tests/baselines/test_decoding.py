"""The shared loop on real models of every architecture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from engine_fixtures import generate
from unprior.baselines.decoding import Question, decode, view_inputs
from unprior.baselines.method import Method
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.plain import Plain
from unprior.baselines.revis.directions import LayerChoice
from unprior.baselines.revis.method import REVIS
from unprior.baselines.revis.vectors import RevisVectors
from unprior.baselines.vcd import VCD
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS

TEXTS = (
    "How many fingers does the hand have?\nA. five\nB. six\nAnswer with a single letter (A or B).",
    "Is it red?\nAnswer with yes or no.",
    "Look at the image and count the legs of the animal. How many legs are there?\nAnswer with one number.",
)
METHODS: tuple[Method, ...] = (VCD(), MFCD(), PAI(first_layer=1), NoLan())


@pytest.fixture
def questions(images: list[Image.Image]) -> list[Question]:
    return [
        Question(image, text, f"example-{number}")
        for number, (image, text) in enumerate(zip(images, TEXTS, strict=False))
    ]


@pytest.fixture(autouse=True)
def _short_answers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "engine" in request.fixturenames:
        monkeypatch.setattr(request.getfixturevalue("engine"), "max_new_tokens", 12)


@pytest.mark.parametrize("method", [Plain(), *METHODS], ids=lambda method: method.name)
def test_with_corrections_off_the_loop_writes_what_generate_writes(
    engine: TransformersEngine, questions: list[Question], method: Method
) -> None:
    matched = method.matched()
    assert matched is not None
    expected = [generate(engine, question.image, question.text, 12) for question in questions]
    assert decode(engine, matched, questions) == expected


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_correction_changes_what_is_written_but_batch_and_order_do_not(
    engine: TransformersEngine, questions: list[Question], method: Method
) -> None:
    together = decode(engine, method, questions)
    assert together != decode(engine, Plain(), questions)
    assert decode(engine, method, questions[::-1]) == together[::-1]
    assert [decode(engine, method, [question])[0] for question in questions] == together


def _by_full_passes(engine: TransformersEngine, method: Method, question: Question, most: int) -> list[int]:
    """The same rule without any cache: every stream reads everything anew for every token."""
    written: list[int] = []
    while len(written) < most:
        streams = []
        for view in method.views:
            inputs = view_inputs(engine, view, [question])
            tail = torch.tensor([written], dtype=torch.long)
            for name in ("input_ids", "attention_mask", "mm_token_type_ids"):
                if name in inputs:
                    added = tail if name == "input_ids" else torch.full_like(tail, name == "attention_mask")
                    inputs[name] = torch.cat([inputs[name], added], dim=1)
            streams.append(engine.reader.read(inputs).logits[:, -1])
        scores, allowed = method.combine(streams), method.plausible(streams[0])
        if allowed is not None:
            scores = torch.where(allowed, scores, -torch.inf)
        token = int(scores.argmax())
        if token in engine.stop_tokens:
            break
        written.append(token)
    return written


@pytest.mark.parametrize("method", [VCD(), MFCD(), NoLan()], ids=lambda method: method.name)
def test_streams_with_their_own_caches_equal_full_passes(
    engine: TransformersEngine, questions: list[Question], method: Method
) -> None:
    expected = [_by_full_passes(engine, method, question, 6) for question in questions[:2]]
    engine.max_new_tokens = 6  # put back by the fixture
    assert decode(engine, method, questions[:2]) == expected


def test_a_model_without_a_trusted_cache_writes_the_same(
    engine: TransformersEngine, questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = decode(engine, NoLan(), questions[:2])
    before = engine.reader.passes
    monkeypatch.setattr(engine, "level", LEVELS[-1])
    monkeypatch.setattr(engine.reader, "follow", None)  # would fail if it were used
    assert decode(engine, NoLan(), questions[:2]) == expected
    assert engine.reader.passes > before


def test_rows_that_stop_early_do_not_disturb_the_others(
    engine: TransformersEngine, questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = decode(engine, NoLan(), questions)
    stop = whole[0][2]
    monkeypatch.setattr(engine, "stop_tokens", {stop})
    cut = [tokens[: tokens.index(stop)] if stop in tokens else tokens for tokens in whole]
    assert len({len(tokens) for tokens in cut}) > 1
    assert decode(engine, NoLan(), questions) == cut


def test_the_text_stream_sees_no_image(engine: TransformersEngine, questions: list[Question]) -> None:
    before = engine.encoded_images
    decode(engine, NoLan(), questions)
    assert engine.encoded_images - before == len(questions)
    decode(engine, MFCD(), questions)
    assert engine.encoded_images - before == 4 * len(questions)


def test_revis_without_strength_writes_what_generate_writes_and_with_it_something_else(
    deep_engine: TransformersEngine, questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deep_engine, "max_new_tokens", 8)
    width = deep_engine.model.get_decoder().layers[0].input_layernorm.weight.shape[0]
    direction = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    choice = LayerChoice(2, -1.0, None, (0.0,) * 4, (0.0,) * 4)  # every position is at risk
    method = REVIS(RevisVectors(direction, direction, (0.5,) * 4, choice, 4.0, {}, {}))
    expected = [generate(deep_engine, question.image, question.text, 8) for question in questions]
    matched = method.matched()
    assert decode(deep_engine, matched, questions) == expected
    assert decode(deep_engine, method, questions) != expected
    assert decode(deep_engine, Plain(), questions) == expected  # nothing of the steering is left


@pytest.mark.parametrize("method", [PAI(), VCD(), MFCD()], ids=lambda method: method.name)
def test_reading_everything_anew_gives_the_same_as_a_cache(
    deep_engine: TransformersEngine, questions: list[Question], method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deep_engine, "max_new_tokens", 6)
    # A random model may write the placeholder of an image, which could not be read again as text.
    monkeypatch.setattr(deep_engine, "stop_tokens", {*deep_engine.stop_tokens, deep_engine.encoder.placeholder})
    expected = decode(deep_engine, method, questions)
    monkeypatch.setattr(deep_engine, "level", LEVELS[-1])
    assert decode(deep_engine, method, questions) == expected
