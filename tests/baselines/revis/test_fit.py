"""REVIS from images to vectors: a planted direction is found, and the embedded model is read as it answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from unprior import UnpriorError
from unprior.baselines.revis.data import CaptionExample, PresenceExample, RevisData, loaded_image, microworld_data
from unprior.baselines.revis.directions import cosine, risk
from unprior.baselines.revis.fit import fit_revis
from unprior.baselines.revis.vectors import RevisVectors
from unprior.embedded import FOLDER
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS
from unprior.prompts import YES_NO, parse_answer


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", self_test=False, name="embedded")


@pytest.fixture(scope="module")
def small() -> RevisData:
    return microworld_data(captions=12, questions=60)


@pytest.fixture(scope="module")
def vectors(embedded: TransformersEngine, small: RevisData) -> RevisVectors:
    return fit_revis(embedded, small)


@pytest.fixture
def about_images(images: list[Image.Image]) -> RevisData:
    """A little data for random models."""
    captions = ("a cat", "a hand with six fingers", "three lines")
    return RevisData(
        tuple(
            CaptionExample(image, text, "a dog with four legs") for image, text in zip(images, captions, strict=False)
        ),
        tuple(PresenceExample(image, "Is there a dog in the image?", "no") for image in images[:3]),
        "images",
    )


def test_a_direction_planted_where_an_image_is_seen_is_recovered(
    deep_folder: Callable[[str], Path], about_images: RevisData
) -> None:
    engine = TransformersEngine(deep_folder("llava"), device="cpu", self_test=False)
    planted = torch.nn.functional.normalize(torch.randn(64, generator=torch.Generator().manual_seed(1)), dim=0)
    sees = False

    def look(_module: Any, _args: Any, options: dict[str, Any]) -> None:
        nonlocal sees
        sees = "pixel_values" in options

    def plant(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        return output + 100.0 * planted if sees else output

    engine.model.register_forward_pre_hook(look, with_kwargs=True)
    engine.model.get_decoder().layers[2].register_forward_hook(plant)
    found = fit_revis(engine, about_images)
    assert found.visual.shape == found.prior.shape == (4, 64)
    assert cosine(found.visual[2], planted.numpy()) > 0.95
    assert np.linalg.norm(found.visual[2]) == pytest.approx(100, rel=0.1)
    assert abs(cosine(found.visual[1], planted.numpy())) < 0.5  # before the place there is nothing of it


def test_every_architecture_can_be_fitted_whatever_the_batches(
    deep_engine: TransformersEngine, about_images: RevisData
) -> None:
    steps: list[tuple[int, int]] = []
    together = fit_revis(deep_engine, about_images, report=lambda *step: steps.append(step))
    assert steps[-1] == (16, 16)  # four readings of three captions, “no image is given”, three questions
    alone = fit_revis(deep_engine, about_images, batch_size=1)
    np.testing.assert_allclose(together.visual, alone.visual, atol=2e-3)
    np.testing.assert_allclose(np.abs(together.prior), np.abs(alone.prior), atol=2e-3)
    assert together.strength == (1.6 if str(deep_engine.model_type).startswith("qwen") else 1.1)
    assert together.counts["captions"] == together.counts["questions"] == 3


def state_by_hand(engine: TransformersEngine, image: Image.Image | None, caption: str) -> np.ndarray:
    """After the second layer, at the end of a caption: one plain pass through the library, nothing padded."""
    content = [{"type": "image"}] if image else []
    messages = [{"role": "user", "content": [*content, {"type": "text", "text": "Describe the image."}]}]
    processor = engine.encoder.processor
    text = processor.apply_chat_template(messages, add_generation_prompt=True) + " " + caption
    inputs = processor(text=text, images=image, return_tensors="pt")
    with torch.inference_mode():
        states = engine.model(**inputs, output_hidden_states=True).hidden_states
    return np.asarray(states[2][0, -1])  # the first are embeddings


def test_directions_are_those_of_plain_passes_over_the_captions(
    embedded: TransformersEngine, small: RevisData, vectors: RevisVectors
) -> None:
    def read(caption: Callable[[CaptionExample], str], blind: bool) -> np.ndarray:
        return np.stack(
            [
                state_by_hand(embedded, None if blind else loaded_image(one.image), caption(one))
                for one in small.captions
            ]
        )

    def true(one: CaptionExample) -> str:
        return one.caption

    def hallucinated(one: CaptionExample) -> str:
        return one.hallucinated

    seen, blind = read(true, blind=False), read(true, blind=True)
    prior = np.linalg.svd(read(hallucinated, blind=True) - read(lambda _: "No image is given.", blind=True))[2][0]
    left = (seen - blind) @ (np.eye(len(prior)) - np.outer(prior, prior))
    visual = np.linalg.svd(left)[2][0]
    assert abs(vectors.prior[1] @ prior) == pytest.approx(1, abs=1e-4)
    assert abs(cosine(vectors.visual[1], visual)) == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(vectors.visual[1]) == pytest.approx(np.linalg.norm(left, axis=1).mean(), rel=1e-4)
    nearer = cosine(seen, vectors.visual[1]) > cosine(read(hallucinated, blind=False), vectors.visual[1])
    assert vectors.separation[1] == nearer.mean()


def test_false_positives_and_factual_answers_are_those_of_the_model_itself(
    embedded: TransformersEngine, small: RevisData, vectors: RevisVectors
) -> None:
    texts = [embedded.layout.user_text(one.question, YES_NO, None) for one in small.questions]
    risks: dict[str, list[float]] = {"false_positives": [], "factual": []}
    for one, text in zip(small.questions, texts, strict=True):
        answer = parse_answer(embedded.original_answer(loaded_image(one.image), text), YES_NO)
        if answer not in (one.answer, "yes"):
            continue
        inputs = embedded.original_inputs([embedded.encoder.encode(Query(loaded_image(one.image), text, ()))])
        with torch.inference_mode():
            states = embedded.model(**inputs, output_hidden_states=True).hidden_states
        kind = "factual" if answer == one.answer else "false_positives"
        risks[kind].append(float(risk(states[2][0, -1].numpy(), vectors.visual[1])))  # the first are embeddings
    counts = {kind: len(found) for kind, found in risks.items()}
    assert vectors.counts == {"captions": 12, "questions": 60} | counts
    assert min(counts.values()) > 0
    assert vectors.choice.factual_risk[1] == pytest.approx(np.mean(risks["factual"]), abs=1e-4)
    assert vectors.choice.false_positive_risk[1] == pytest.approx(np.mean(risks["false_positives"]), abs=1e-4)


def test_a_model_whose_cache_is_not_trusted_is_fitted_alike(
    embedded: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = microworld_data(captions=2, questions=8)
    shared = fit_revis(embedded, data)
    monkeypatch.setattr(embedded, "level", LEVELS[-1])
    assert fit_revis(embedded, data).counts == shared.counts


def test_a_model_that_reads_prompts_one_at_a_time_is_fitted_so(
    llava: TransformersEngine, about_images: RevisData, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    read = llava.reader.read

    def counting(inputs: Any, *arguments: Any, **options: Any) -> Any:
        rows.append(len(inputs["input_ids"]))
        return read(inputs, *arguments, **options)

    monkeypatch.setattr(llava.reader, "read", counting)
    monkeypatch.setattr(llava, "max_new_tokens", 3)
    monkeypatch.setattr(llava, "level", LEVELS[1])
    fit_revis(llava, about_images, batch_size=4)
    assert set(rows) == {1}


def test_steering_changes_what_the_model_sees_and_is_undone(
    embedded: TransformersEngine, small: RevisData, vectors: RevisVectors
) -> None:
    assert vectors.choice.layer is not None, vectors.choice.reason
    changed = []
    for one in small.questions:  # where the gate stays closed, nothing is steered
        inputs = embedded.original_inputs([embedded.encoder.encode(Query(loaded_image(one.image), one.question, ()))])
        plain = embedded.reader.read(inputs).logits
        with vectors.steering(embedded.model):
            changed.append(not torch.allclose(embedded.reader.read(inputs).logits, plain, atol=1e-3))
        assert torch.equal(embedded.reader.read(inputs).logits, plain)
    assert any(changed)
    assert not all(changed)


def test_without_false_positives_revis_stays_inactive_and_says_why(
    embedded: TransformersEngine, small: RevisData
) -> None:
    present = tuple(one for one in small.questions if one.answer == "yes")[:4]
    inactive = fit_revis(embedded, RevisData(small.captions[:2], present, "present things"), strength=2.5)
    assert inactive.choice.layer is None
    assert inactive.choice.reason == "no false positive among the presence questions"
    assert inactive.strength == 2.5
    inputs = embedded.original_inputs([embedded.encoder.encode(Query(None, present[0].question, ()))])
    plain = embedded.reader.read(inputs).logits
    with inactive.steering(embedded.model):
        assert torch.equal(embedded.reader.read(inputs).logits, plain)


def test_a_caption_with_the_placeholder_of_images_is_refused(embedded: TransformersEngine, small: RevisData) -> None:
    caption = CaptionExample(small.captions[0].image, "an <image>", "a dog")
    with pytest.raises(UnpriorError, match="'an <image>' contains the model's own image placeholder"):
        fit_revis(embedded, RevisData((caption,), small.questions, "odd"))


def test_vectors_come_back_from_their_file_with_the_recipe(
    embedded: TransformersEngine, small: RevisData, vectors: RevisVectors, tmp_path: Path
) -> None:
    path = tmp_path / "revis.safetensors"
    vectors.save(path)
    again = RevisVectors.load(path, embedded)
    np.testing.assert_array_equal(again.visual, vectors.visual)
    np.testing.assert_array_equal(again.prior, vectors.prior)
    for name in ("choice", "separation", "strength", "counts", "recipe"):
        assert getattr(again, name) == getattr(vectors, name)
    assert again.recipe["data_digest"] == small.digest
    assert again.recipe["fingerprint"] == embedded.fingerprint


def test_vectors_of_another_model_are_refused(
    deep_llava: TransformersEngine, vectors: RevisVectors, tmp_path: Path
) -> None:
    path = tmp_path / "revis.safetensors"
    vectors.save(path)
    with pytest.raises(UnpriorError, match=r"made with embedded, which differs from .* in model, weights.*; fit REVIS"):
        RevisVectors.load(path, deep_llava)


def test_files_that_hold_no_vectors_are_refused(
    embedded: TransformersEngine, vectors: RevisVectors, tmp_path: Path
) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "revis.safetensors"
    with pytest.raises(UnpriorError, match="no such file"):
        RevisVectors.load(path, embedded)
    path.write_text("not a tensor in sight")
    with pytest.raises(UnpriorError, match="not a whole file of REVIS vectors"):
        RevisVectors.load(path, embedded)
    vectors.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UnpriorError, match="not a whole file of REVIS vectors"):
        RevisVectors.load(path, embedded)
    save_file({"visual": vectors.visual}, path)
    with pytest.raises(UnpriorError, match="this is no file of REVIS vectors; fit REVIS anew"):
        RevisVectors.load(path, embedded)
    save_file({"visual": vectors.visual}, path, metadata={"format": "unprior.revis", "about": '{"version": 1}'})
    with pytest.raises(UnpriorError, match="not a whole file of REVIS vectors"):
        RevisVectors.load(path, embedded)
    save_file({"visual": vectors.visual}, path, metadata={"format": "unprior.revis", "about": '{"version": 2}'})
    with pytest.raises(UnpriorError, match="written in version 2, this is 1"):
        RevisVectors.load(path, embedded)
