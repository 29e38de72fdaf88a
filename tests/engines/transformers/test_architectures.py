"""Every architecture against brute force: whole passes through the library alone, on a second copy of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image

import tiny_models
from support_matrix import measured, on_vllm
from unprior.engines.precision import HALF
from unprior.engines.protocol import Answered, CandidateScores, Proposed, Query
from unprior.engines.support import known_architectures
from unprior.engines.transformers import proposals
from unprior.engines.transformers.engine import TransformersEngine

# Some processors make NumPy arrays of tensors in a way that NumPy will not take for ever.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

REFUSED = {
    "blip-2": "cannot read a question without an image",
    "instructblip": "cannot read a question without an image",
    "kosmos-2": "cannot read a question without an image",
    "idefics": "cannot read a question without an image",
    "florence2": "is an encoder–decoder",
    "t5gemma2": "is an encoder–decoder",
}
LEVELS = {"llama4": "shared", "emu3": "shared", "paligemma": "whole prompts", "granite4_vision": "full passes"}
"""Those that do not share their beginnings in batches: padding changes their scores, they read prompts in both
directions, or they give no cache away."""
HIDDEN_TOWERS = ("emu3", "chameleon")
"""Images become words there: the library does not say what makes them."""
LENGTHS = (1, 2, 5, 9)
QUESTIONS = ("How many legs does the dog have?\nA. four\nB. five\nAnswer with a single letter (A or B).", "Is it red?")


@dataclass
class BruteForce:
    """A model and its processor as the library loads them; knows nothing of the engine."""

    model: Any
    processor: Any
    has_template: bool

    @classmethod
    def load(cls, folder: Path, architecture: str) -> BruteForce:
        model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        processor = transformers.AutoProcessor.from_pretrained(folder)
        return cls(model, processor, tiny_models.REGISTRY[architecture].prompt is None)

    def prompt(self, image: Image.Image | None, text: str) -> str:
        if not self.has_template:
            place = "" if image is None else str(getattr(self.processor, "image_token", None) or "")
            return f"{place}{text}\nAnswer:"
        content = [*([] if image is None else [{"type": "image"}]), {"type": "text", "text": text}]
        template = self.processor.chat_template or self.processor.tokenizer.chat_template
        off = {name: False for name in ("enable_thinking", "thinking") if f" {name}" in template}
        return str(
            self.processor.apply_chat_template(
                [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True, **off
            )
        )

    def inputs(self, image: Image.Image | None, text: str) -> dict[str, Any]:
        tokenizer = self.processor.tokenizer
        add = tokenizer.bos_token is None or not text.startswith(tokenizer.bos_token)
        if image is None:
            ending = "\n" if type(self.processor).__name__ == "PaliGemmaProcessor" else ""
            if type(self.processor).__name__ == "ChameleonProcessor":
                ending = tokenizer.sep_token
            return dict(tokenizer([text + ending], return_tensors="pt", add_special_tokens=add))
        try:
            made = self.processor(text=[text], images=[[image]], return_tensors="pt", add_special_tokens=add)
        except ValueError:
            made = self.processor(text=[text], images=[image], return_tensors="pt", add_special_tokens=add)
        return {
            name: value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
            for name, value in made.items()
            if name != "labels"
        }

    @torch.inference_mode()
    def score(self, image: Image.Image | None, text: str, candidate: str) -> float:
        """One whole pass over prompt and candidate: no cache, no padding, no batch, positions of the model's own."""
        inputs = self.inputs(image, self.prompt(image, text + "\nFinal answer:"))
        if "PaliGemma" in type(self.processor).__name__:  # a prompt is read in both directions, what follows is not
            inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
        tail = torch.tensor([self.processor.tokenizer(candidate, add_special_tokens=False)["input_ids"]])
        length = tail.shape[1]
        for name, value in inputs.items():
            if name == "input_ids":
                inputs[name] = torch.cat([value, tail], dim=1)
            elif name == "token_type_ids" and "PaliGemma" in type(self.processor).__name__:
                inputs[name] = torch.cat([value, torch.ones_like(tail)], dim=1)
            elif "token_type_ids" in name:
                inputs[name] = torch.cat([value, torch.zeros_like(tail)], dim=1)
            elif name == "attention_mask":
                inputs[name] = torch.cat([value, torch.ones_like(tail)], dim=1)
            elif name == "cross_attention_mask":
                inputs[name] = torch.cat([value, value[:, -1:].expand(-1, length, -1, -1)], dim=1)
        self._forget()
        logits = self.model(**inputs, use_cache=False).logits[0].float()
        return float(torch.log_softmax(logits[-length - 1 : -1], dim=-1).gather(1, tail.T).sum())

    @torch.inference_mode()
    def written(self, image: Image.Image, text: str, most: int) -> list[int]:
        inputs = self.inputs(image, self.prompt(image, text))
        self._forget()
        made = self.model.generate(**inputs, max_new_tokens=most, do_sample=False)
        return list(made[0, inputs["input_ids"].shape[1] :].tolist())

    def _forget(self) -> None:
        for part in self.model.modules():
            if hasattr(part, "rope_deltas"):
                part.rope_deltas = None


@dataclass
class Subject:
    """The engine beside brute force."""

    name: str
    engine: TransformersEngine
    plain: BruteForce
    candidates: tuple[str, ...]

    def expected(self, image: Image.Image | None, text: str) -> Any:
        scores = [self.plain.score(image, text, candidate) for candidate in self.candidates]
        return pytest.approx(scores, abs=1e-4)

    def query(self, image: Image.Image | None, text: str) -> Query:
        return Query(image, text, self.candidates)


def available(name: str) -> None:
    missing = tiny_models.REGISTRY[name].missing()
    if missing:
        pytest.skip(f"the processor of {name} needs {' and '.join(missing)}")


@pytest.fixture(scope="module", params=[name for name in tiny_models.REGISTRY if name not in REFUSED])
def subject(request: pytest.FixtureRequest, model_folder: Callable[[str], Path]) -> Subject:
    name = request.param
    available(name)
    folder = model_folder(name)
    engine = TransformersEngine(folder, device="cpu", max_new_tokens=4)
    return Subject(name, engine, BruteForce.load(folder, name), of_lengths(engine.encoder.tokenizer))


def first_layer(tower: torch.nn.Module) -> torch.nn.Module:
    return next(part for part in tower.modules() if not [*part.children()] and [*part.parameters()])


def of_lengths(tokenizer: Any) -> tuple[str, ...]:
    """Candidates of one, two, five and nine tokens."""
    long = " yes, seventeen zebras and one rhinoceros"
    starts = [long[:end] for end in range(2, len(long)) if long[end - 1].isalpha()]
    counts = {len(tokenizer(start, add_special_tokens=False)["input_ids"]): start for start in reversed(starts)}
    return tuple(counts[length] for length in LENGTHS)


def test_it_is_exact_and_encodes_an_image_once(subject: Subject, images: list[Image.Image]) -> None:
    """Two images of two sizes in one batch, four lengths of candidates, and the greedy answer."""
    engine, calls = subject.engine, []
    # The first part of the tower that computes: its calls are counted, and compared with those of one plain pass.
    part = first_layer(engine.model.get_encoder("image"))
    engine.reader.read(engine.original_inputs([engine.encoder.encode(subject.query(images[0], QUESTIONS[0]))]))
    hook = part.register_forward_hook(lambda *_: calls.append(1))
    engine.reader.read(engine.original_inputs([engine.encoder.encode(subject.query(images[0], QUESTIONS[0]))]))
    once = len(calls)
    before = engine.encoded_images
    asked = list(zip(images[:2], QUESTIONS, strict=True))
    results = engine.answer_batch([subject.query(image, text) for image, text in asked])
    hook.remove()
    assert engine.level.name == LEVELS.get(subject.name, "shared in batches")
    assert engine.encoded_images - before == len(asked)
    if subject.name not in HIDDEN_TOWERS:
        assert once <= len(calls) - once <= len(asked) * once
    for result, (image, text) in zip(results, asked, strict=True):
        assert isinstance(result, Answered), result
        assert result.scored.token_counts == LENGTHS
        assert result.scored.scores == subject.expected(image, text)
        tokens = [t for t in subject.plain.written(image, text, 4) if t not in engine.stop_tokens]
        assert result.text == engine.text_of(tokens)


def test_the_support_matrix_tells_the_truth(subject: Subject) -> None:
    """`make support` writes it again."""
    stored = {each.name: asdict(each) for each in known_architectures()}
    if subject.name in stored:
        found = measured(subject.engine)
        assert found == {name: stored[subject.name][name] for name in found}
        assert stored[subject.name]["vllm"] == on_vllm(subject.name)


def test_text_after_an_image_and_back(subject: Subject, images: list[Image.Image]) -> None:
    text = QUESTIONS[0]
    for image in (images[1], None, images[2]):
        scored = subject.engine.score_batch([subject.query(image, text)])[0]
        assert isinstance(scored, CandidateScores), scored
        assert scored.scores == subject.expected(image, text)
    for result, asked in zip(
        subject.engine.score_batch([subject.query(None, text) for text in QUESTIONS]), QUESTIONS, strict=True
    ):
        assert isinstance(result, CandidateScores), result
        assert result.scores == subject.expected(None, asked)


def test_answers_are_proposed_and_scored_with_their_end(
    subject: Subject, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the image and without it, and the image is encoded once."""
    monkeypatch.setattr(proposals, "MAX_ANSWER_TOKENS", 2)
    engine = subject.engine
    end, before = engine.encoder.tokenizer.convert_ids_to_tokens(engine.encoder.end), engine.encoded_images
    for image in (images[1], None):
        proposed = engine.propose_batch([Query(image, QUESTIONS[1], (" seventeen zebras",))], 8)[0]
        assert isinstance(proposed, Proposed), proposed
        assert len(proposed.candidates) > 1
        expected = [subject.plain.score(image, QUESTIONS[1], text + end) for text in proposed.candidates]
        assert proposed.scored.scores == pytest.approx(expected, abs=1e-4)
    assert engine.encoded_images - before == 1


def test_images_matter(subject: Subject, images: list[Image.Image]) -> None:
    """Otherwise the equalities above would prove little."""
    first, second = (subject.engine.score_batch([subject.query(image, QUESTIONS[0])])[0] for image in images[:2])
    assert isinstance(first, CandidateScores)
    assert isinstance(second, CandidateScores)
    assert max(abs(one - other) for one, other in zip(first.scores, second.scores, strict=True)) > 0.01


@pytest.mark.parametrize("name", ["llava", "qwen3_5", "gemma3", "mllama"])
def test_half_precision_explains_what_sharing_changes(name: str, tmp_path: Path) -> None:
    """The largest difference over all architectures is in docs/reference/models.md; the margin is wider."""
    engine = TransformersEngine(tiny_models.build(name, tmp_path / name), device="cpu", dtype="bfloat16")
    assert engine.shares_prefix
    assert 0 < engine.self_test.trials[-1].difference < HALF


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_scored_is_refused_with_its_reason(name: str, tmp_path: Path) -> None:
    available(name)
    with pytest.raises(Exception, match=REFUSED[name]):
        TransformersEngine(tiny_models.build(name, tmp_path / name), device="cpu")
