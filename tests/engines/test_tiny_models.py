"""Every random model loads like a published one, works with the library alone, and looks at its image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import tiny_models

# Some processors make NumPy arrays of tensors in a way that NumPy will not take for ever.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

QUESTIONS = ("How many legs does the dog have? A. four B. five", "Is there a cat in the image? Answer with yes or no.")
BENCH = ("llava", "qwen3_vl", "gemma3", "qwen3_5")


@dataclass(frozen=True)
class Loaded:
    """A model and its processor as the library loads them."""

    name: str
    folder: Path
    model: Any
    processor: Any

    def inputs(self, images: Sequence[Image.Image | None]) -> dict[str, Any]:
        """The questions about the images, as many as there are, as one batch."""
        architecture = tiny_models.REGISTRY[self.name]
        pairs = list(zip(QUESTIONS, images, strict=False))
        if architecture.prompt is None:
            batch = self.processor.apply_chat_template(
                [[{"role": "user", "content": _content(question, image)}] for question, image in pairs],
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                add_generation_prompt=True,
                processor_kwargs={"padding": True},
            )
        else:
            texts = [architecture.text(question, image is not None) for question, image in pairs]
            seen = [[image] if architecture.nested else image for image in images if image is not None]
            reader = self.processor if seen else self.processor.tokenizer  # some processors insist on images
            batch = reader(text=texts, return_tensors="pt", padding=True, **({"images": seen} if seen else {}))
        return {
            key: value.to(self.model.dtype) if value.is_floating_point() else value
            for key, value in batch.items()
            if key != "labels"
        }

    def scores(self, images: Sequence[Image.Image | None]) -> torch.Tensor:
        """Log-probabilities of the next token."""
        inputs = self.inputs(images)
        if self.model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = torch.full(
                (len(images), 1), self.model.generation_config.decoder_start_token_id
            )
        with torch.no_grad():
            return self.model(**inputs).logits[:, -1].log_softmax(-1)

    def written(self, images: Sequence[Image.Image | None]) -> torch.Tensor:
        """Three tokens of an answer."""
        inputs = self.inputs(images)
        with torch.no_grad():
            tokens = self.model.generate(**inputs, max_new_tokens=3, do_sample=False)
        return tokens[:, 1 if self.model.config.is_encoder_decoder else inputs["input_ids"].shape[1] :]


def _content(question: str, image: Image.Image | None) -> list[dict[str, Any]]:
    shown = [] if image is None else [{"type": "image", "image": image}]
    return [*shown, {"type": "text", "text": question}]


def _noise(seed: int, width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture(scope="module", params=tiny_models.REGISTRY)
def loaded(request: pytest.FixtureRequest, model_folder: Callable[[str], Path]) -> Loaded:
    name = request.param
    if missing := tiny_models.REGISTRY[name].missing():
        pytest.skip(f"the processor of {name} needs {' and '.join(missing)} (pip install {' '.join(missing)})")
    folder = model_folder(name)
    model, info = transformers.AutoModelForImageTextToText.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    return Loaded(name, folder, model.eval(), transformers.AutoProcessor.from_pretrained(folder))


def test_it_is_what_its_name_says(loaded: Loaded) -> None:
    made = tiny_models.REGISTRY[loaded.name].make(tiny_models.SHAPES["tiny"])
    assert type(loaded.processor).__name__ == made.processor["processor_class"]
    assert type(loaded.model.config) is type(made.config)
    assert (loaded.processor.chat_template is None) == (tiny_models.REGISTRY[loaded.name].prompt is not None)
    assert sum(file.stat().st_size for file in loaded.folder.iterdir()) < 5e6


def test_scores_depend_on_the_image_and_on_nothing_beside_it(loaded: Loaded) -> None:
    first, other, wide = _noise(0, 64, 64), _noise(1, 64, 64), _noise(2, 80, 48)
    together = loaded.scores([first, wide])
    exchanged = loaded.scores([other, wide])
    assert torch.isfinite(together).all()
    assert (together[0] - exchanged[0]).abs().median() > 0.01
    torch.testing.assert_close(together[1], exchanged[1], atol=1e-4, rtol=0)


def test_it_writes_with_and_without_an_image(loaded: Loaded) -> None:
    prompts: list[list[Image.Image | None]] = [[_noise(0, 64, 64), _noise(2, 80, 48)]]
    if tiny_models.REGISTRY[loaded.name].reads_text_alone:
        prompts.append([None, None])
    for images in prompts:
        scores = loaded.scores(images)
        assert torch.isfinite(scores).all()
        torch.testing.assert_close(loaded.written(images)[:, 0], scores.argmax(-1))


@pytest.mark.parametrize("name", BENCH)
def test_models_for_measurements_have_the_size_of_real_prompts(name: str, tmp_path: Path) -> None:
    made = tiny_models.REGISTRY[name].make(tiny_models.SHAPES["bench"])
    with torch.device("meta"):
        assert 40e6 < sum(weight.numel() for weight in made.model().parameters()) < 60e6
    if missing := tiny_models.REGISTRY[name].missing():
        pytest.skip(f"the processor of {name} needs {' and '.join(missing)}")
    made.config.save_pretrained(tmp_path)
    made.save_processor(tmp_path)
    content = _content(QUESTIONS[0], _noise(0, 224, 224))
    prompt = transformers.AutoProcessor.from_pretrained(tmp_path).apply_chat_template(
        [{"role": "user", "content": content}], tokenize=True, return_dict=True
    )
    image = made.config.image_token_id
    assert np.count_nonzero(np.array(prompt["input_ids"]) == image) >= 600
