"""Noise belongs to an image alone: no batch, order or padding changes it, and it is drawn in normalised space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import Gemma4ImageProcessorPil

import tiny_models
from unprior import UnpriorError
from unprior.baselines import decoding
from unprior.baselines.decoding import Question, decode, view_inputs
from unprior.baselines.method import Tensor
from unprior.baselines.pixels import InseparableError, placed, still_frames, with_noise
from unprior.baselines.vcd import VCD
from unprior.engines.transformers.engine import TransformersEngine

TEXTS = ("Is it red?\nAnswer with yes or no.", "How many legs are there?", "What is in the image?")
CLEAR, NOISY = VCD().views


@pytest.fixture(scope="module", params=[*tiny_models.ARCHITECTURES, *tiny_models.OTHER_PIXELS])
def engine(request: pytest.FixtureRequest, model_folder: Callable[[str], Path]) -> TransformersEngine:
    loaded = TransformersEngine(model_folder(request.param), device="cpu")
    assert loaded.shares_prefix
    loaded.max_new_tokens = 8
    return loaded


@pytest.fixture
def questions(images: list[Image.Image]) -> list[Question]:
    return [Question(image, text, f"example-{text}") for image, text in zip(images, TEXTS, strict=False)]


def parts(batch: Tensor, alone: list[Tensor]) -> list[Tensor]:
    """What a batch holds of each image, by the size that it has alone."""
    if len(batch) == len(alone):
        return [row[None][tuple(map(slice, one.shape))] for row, one in zip(batch, alone, strict=True)]
    return list(batch.split([len(one) for one in alone]))


def pixels(engine: TransformersEngine, view: Any, questions: list[Question]) -> Tensor:
    return view_inputs(engine, view, questions)["pixel_values"]


def test_pixels_are_the_same_alone_and_in_any_batch(engine: TransformersEngine, questions: list[Question]) -> None:
    alone = [pixels(engine, NOISY, [question]) for question in questions]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2], [2, 0]):
        chosen = [questions[place] for place in order]
        expected = [alone[place] for place in order]
        batch, clear = pixels(engine, NOISY, chosen), pixels(engine, CLEAR, chosen)
        for part, own in zip(parts(batch, expected), expected, strict=True):
            assert torch.equal(part, own)
        # Padding of some architectures is exactly zero, and stays so.
        assert torch.equal(batch == 0.0, clear == 0.0)


def test_answers_are_the_same_alone_and_in_any_batch(engine: TransformersEngine, questions: list[Question]) -> None:
    together = decode(engine, VCD(), questions)
    assert decode(engine, VCD(), questions[::-1]) == together[::-1]
    assert [decode(engine, VCD(), [question])[0] for question in questions] == together


def test_noise_depends_on_name_and_seed_alone(engine: TransformersEngine, questions: list[Question]) -> None:
    own = pixels(engine, NOISY, questions[:1])
    assert torch.equal(pixels(engine, NOISY, questions[:1]), own)
    assert not torch.equal(pixels(engine, CLEAR, questions[:1]), own)
    assert not torch.equal(pixels(engine, NOISY, [replace(questions[0], name="another")]), own)
    assert not torch.equal(pixels(engine, VCD(seed=7).views[1], questions[:1]), own)


def test_noise_is_mixed_with_the_normalised_pixels(engine: TransformersEngine, questions: list[Question]) -> None:
    clear, noisy = (pixels(engine, view, questions[:1]) for view in (CLEAR, NOISY))
    noise = (noisy - 0.86302 * clear) / 0.50517
    assert noise.mean().item() == pytest.approx(0.0, abs=0.05)
    assert noise.std().item() == pytest.approx(1.0, abs=0.05)


def test_copies_of_a_still_image_get_the_same_noise(engine: TransformersEngine, questions: list[Question]) -> None:
    inputs = view_inputs(engine, NOISY, questions[:1])
    copies = still_frames(engine, inputs, inputs["pixel_values"])
    assert (len(copies) == 2) == str(engine.model_type).startswith("qwen")


def test_a_batch_that_cannot_be_told_apart_is_read_one_at_a_time(
    model_folder: Callable[[str], Path], questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TransformersEngine(model_folder("llava"), device="cpu")
    engine.max_new_tokens = 8
    expected = decode(engine, VCD(), questions)
    rows: list[int] = []
    work = decoding.with_noise

    def inseparable(engine: Any, view: Any, names: Any, batch: Any, alone: Any) -> Any:
        rows.append(len(names))
        if len(names) > 1:
            raise InseparableError("mixed up")
        return work(engine, view, names, batch, alone)

    monkeypatch.setattr(decoding, "with_noise", inseparable)
    assert decode(engine, VCD(), questions) == expected
    assert rows == [3, 1, 1, 1]


def test_a_batch_that_the_processor_cannot_make_is_read_one_at_a_time(
    model_folder: Callable[[str], Path], questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TransformersEngine(model_folder("llava"), device="cpu")
    engine.max_new_tokens = 3
    expected = decode(engine, VCD(), questions)
    work = engine.original_inputs

    def one_only(prompts: list[Any]) -> Any:
        if len(prompts) > 1:
            raise RuntimeError("Sizes of tensors must match")
        return work(prompts)

    monkeypatch.setattr(engine, "original_inputs", one_only)
    assert decode(engine, VCD(), questions) == expected
    with pytest.raises(InseparableError, match="one batch: Sizes of tensors must match"):
        view_inputs(engine, CLEAR, questions)


def test_padding_of_a_batch_keeps_its_zeros() -> None:
    clear = [torch.rand(1, 3, 4, 6) + 1, torch.rand(1, 3, 8, 2) + 1]
    batch = torch.zeros(2, 3, 8, 6)
    batch[0, :, :4, :6], batch[1, :, :8, :2] = clear[0][0], clear[1][0]
    result = placed(batch, clear, [-image for image in clear])
    assert torch.equal(result, -batch)
    assert int((result == 0).sum()) == 3 * (4 * 6 + 8 * 4)


def test_tiles_of_all_images_stay_with_their_image() -> None:
    clear = [torch.rand(tiles, 3, 4, 4) for tiles in (3, 1, 2)]
    assert torch.equal(placed(torch.cat(clear), clear, [image + 5 for image in clear]), torch.cat(clear) + 5)


def test_images_in_one_strip_stay_in_their_place() -> None:
    clear = [torch.rand(1, 3, 4, width) for width in (6, 2)]
    strip = torch.cat(clear, dim=-1)
    assert torch.equal(placed(strip, clear, [image + 5 for image in clear]), strip + 5)


def test_an_image_that_has_no_tiles_beside_others_that_have() -> None:
    engine = stand_in(SimpleNamespace(do_normalize=True))
    alone = [{"pixel_values": torch.rand(1, 3, 4, 4)} for _ in range(2)]
    alone[1]["pixel_values_local"] = torch.rand(2, 3, 4, 4)
    batch = {"pixel_values": torch.cat([inputs["pixel_values"] for inputs in alone])}
    batch["pixel_values_local"] = alone[1]["pixel_values_local"]
    together = with_noise(engine, NOISY, ["a", "b"], batch, alone)
    first, second = (with_noise(engine, NOISY, [name], own, [own]) for name, own in zip("ab", alone, strict=True))
    assert torch.equal(together["pixel_values"], torch.cat([first["pixel_values"], second["pixel_values"]]))
    assert torch.equal(together["pixel_values_local"], second["pixel_values_local"])
    assert "pixel_values_local" not in first


@pytest.mark.parametrize(
    ("pixels", "mask"), [((2, 3, 4, 4), (2, 4, 4)), ((1, 2, 3, 4, 4), (1, 2, 4, 4)), ((2, 9, 5), (2, 9))]
)
def test_pixels_behind_a_mask_stay_as_they_are(pixels: tuple[int, ...], mask: tuple[int, ...]) -> None:
    engine = stand_in(SimpleNamespace(do_normalize=True))
    visible = torch.ones(mask, dtype=torch.long)
    visible[..., -1] = 0
    inputs = {"pixel_values": torch.rand(pixels) + 1, "pixel_attention_mask": visible}
    noisy = with_noise(engine, NOISY, ["a"], inputs, [inputs])["pixel_values"]
    kept = noisy == inputs["pixel_values"]
    expected = (visible == 0).unsqueeze(-1 if len(pixels) == 3 else -3).expand(pixels)
    assert torch.equal(kept, expected)


@pytest.mark.parametrize("change", [lambda batch: batch[:1], lambda batch: batch.flip(0), lambda batch: batch[0]])
def test_pixels_in_another_place_are_noticed(change: Callable[[Tensor], Tensor]) -> None:
    clear = [torch.rand(1, 3, 4, 4), torch.rand(1, 3, 4, 4)]
    with pytest.raises(InseparableError):
        placed(change(torch.cat(clear)), clear, clear)


def stand_in(image_processor: Any) -> Any:
    """What noise needs to know of an engine, around a real image processor whose model is too large to build here."""
    processor = SimpleNamespace(image_processor=image_processor)
    model = SimpleNamespace(config=SimpleNamespace(vision_config=SimpleNamespace(patch_size=16)))
    return SimpleNamespace(encoder=SimpleNamespace(processor=processor), model=model, model_type="gemma4")


@pytest.mark.parametrize("rescaled", [True, False])
def test_pixels_that_the_model_itself_normalises_are_normalised_for_the_noise(
    images: list[Image.Image], rescaled: bool
) -> None:
    image_processor = Gemma4ImageProcessorPil(max_soft_tokens=70, do_rescale=rescaled)
    alone = [dict(image_processor([image], return_tensors="pt")) for image in images[1:3]]
    batch = dict(image_processor(images[1:3], return_tensors="pt"))
    for inputs in (*alone, batch):
        inputs["pixel_values"] = inputs["pixel_values"].float()
    engine = stand_in(image_processor)
    noisy = with_noise(engine, NOISY, ["a", "b"], batch, alone)["pixel_values"]
    padding = batch["image_position_ids"][..., 0] < 0
    assert padding.any()
    assert torch.equal(noisy[padding], torch.zeros_like(noisy[padding]))
    top = 1.0 if rescaled else 255.0
    clear, changed = (2 * (values / top - 0.5) for values in (batch["pixel_values"], noisy))  # as the model does
    noise = ((changed - 0.86302 * clear) / 0.50517)[~padding]
    assert noise.mean().item() == pytest.approx(0.0, abs=0.02)
    assert noise.std().item() == pytest.approx(1.0, abs=0.02)
    for place, name in enumerate("ab"):
        single = with_noise(engine, NOISY, [name], alone[place], alone[place : place + 1])["pixel_values"]
        assert torch.equal(single[0], noisy[place])


def test_a_model_without_pixel_values_is_refused(questions: list[Question]) -> None:
    inputs = {"input_ids": torch.zeros(1, 4, dtype=torch.long), "images": torch.zeros(1, 3, 4, 4)}
    with pytest.raises(UnpriorError, match="gemma4 has no pixel values"):
        with_noise(stand_in(None), NOISY, ["a"], inputs, [inputs])


def test_half_precision_pixels_can_have_noise() -> None:
    engine = stand_in(SimpleNamespace(do_normalize=True))
    inputs = {"pixel_values": torch.ones(1, 3, 4, 4, dtype=torch.bfloat16)}
    noisy = with_noise(engine, NOISY, ["a"], inputs, [inputs])["pixel_values"]
    assert noisy.dtype == torch.bfloat16
    assert np.isfinite(noisy.float().numpy()).all()
