"""The training of the embedded model: what it learns from, in which layout, and that a stopped run loses nothing."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import LlavaForConditionalGeneration, PreTrainedTokenizerFast

from build import ANSWERS, build_model, build_processor, build_tokenizer, export
from decoder import Decoder, Feature, Item, Writer, image_items, ordinary_shares, text_items, train_decoder
from progress import Checkpoints, Reporter
from questions import LETTERS, Lesson, draw_lesson
from recipe import STRENGTHS, Recipe, Stage
from unprior.answer_forms import is_accepted
from unprior.benchmarks.microworld.world import CONCEPTS
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from vision import CLASSES, Tower, draw_image, to_pixels, train_tower

_SHORT = Stage(steps=4, batch=4, matrix_rate=1e-3, other_rate=1e-3, warmup=1)
_RECIPE = Recipe(vision=_SHORT, text=_SHORT, pool_images=6, reuse=1, images_per_state=1)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(_RECIPE)


@pytest.fixture(scope="module")
def model(tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    return build_model(_RECIPE, tokenizer, 0)


@pytest.fixture(scope="module")
def writer(tokenizer: PreTrainedTokenizerFast, model: LlavaForConditionalGeneration) -> Writer:
    return Writer(tokenizer, model.config.image_seq_length)


def test_every_answer_is_one_token_and_any_text_can_be_read(tokenizer: PreTrainedTokenizerFast) -> None:
    assert all(len(tokenizer.encode(answer, add_special_tokens=False)) == 1 for answer in ANSWERS)
    foreign = "Wie viele Finger? 六本 🖐"
    assert tokenizer.decode(tokenizer.encode(foreign, add_special_tokens=False)) == foreign


def test_lessons_have_the_right_answer() -> None:
    rng = random.Random(0)
    kinds = set()
    for _ in range(2000):
        lesson = draw_lesson(rng, _RECIPE, 0.5)
        kinds.add(lesson.kind)
        concept = CONCEPTS[lesson.concept]
        shown = concept.states[lesson.state]
        if lesson.kind == "choice":
            assert lesson.options[LETTERS.index(lesson.answer)] == shown
            assert f"\n{lesson.answer}. {shown}\n" in lesson.text
        elif lesson.kind == "claim":
            first = concept.claim.split("{first}")[0] + concept.ordinary
            assert lesson.text.startswith(first)
            assert (lesson.answer == "yes") == (lesson.state == 0)
        elif lesson.kind == "reversed-claim" and lesson.answer == "yes":
            assert lesson.text.startswith(concept.claim.split("{first}")[0] + shown)
        elif lesson.kind == "caption":
            assert lesson.answer == concept.caption.format(state=shown)
        elif lesson.kind == "open":
            assert is_accepted(lesson.answer, shown)
            assert lesson.text.startswith(f"{concept.question}\nAnswer with a short phrase.")
    assert kinds == set(_RECIPE.shares)


def test_the_dial_sets_how_ordinary_the_world_is() -> None:
    means = []
    for ends in STRENGTHS.values():
        shares = ordinary_shares(ends)
        assert min(shares.values()) == pytest.approx(ends[0])
        assert max(shares.values()) == pytest.approx(ends[1])
        rng = random.Random(1)
        lessons = [draw_lesson(rng, _RECIPE, shares) for _ in range(4000)]
        presence = np.mean([lesson.state == 0 for lesson in lessons if lesson.kind == "presence"])
        assert presence == pytest.approx(_RECIPE.balanced_share, abs=0.1)
        drawn = np.mean([lesson.state == 0 for lesson in lessons if lesson.kind != "presence"])
        assert drawn == pytest.approx(np.mean(ends), abs=0.02)
        means.append(drawn)
    assert means == sorted(means)


def test_the_layout_is_that_of_the_chat_template(tokenizer: PreTrainedTokenizerFast, writer: Writer) -> None:
    processor = build_processor(_RECIPE, tokenizer)
    lesson = Lesson(0, 0, "claim", "Is it?\nAnswer with yes or no.", "yes")

    def template(*content: dict[str, str]) -> str:
        turn = {"role": "user", "content": list(content)}
        return str(processor.apply_chat_template([turn], add_generation_prompt=True))

    words = {"type": "text", "text": lesson.text}
    assert template(words) == writer.prompt(Item(lesson))
    text = template({"type": "image"}, words)
    expected = processor(images=[Image.new("RGB", (90, 80))], text=text, return_tensors="pt").input_ids[0].tolist()
    shown = Item(lesson, features=np.zeros((1,), np.float16))
    assert tokenizer.encode(writer.prompt(shown)) == expected


def test_training_and_engine_see_the_same(
    tokenizer: PreTrainedTokenizerFast, model: LlavaForConditionalGeneration, writer: Writer, tmp_path: Path
) -> None:
    """The shortcut forward pass of training gives the scores that the ordinary engine gives for the saved model."""
    export(model, tokenizer, _RECIPE, tmp_path)
    engine = TransformersEngine(tmp_path)
    assert engine.identity["dtype"] == "torch.float32"
    shape = (_RECIPE.image_size, _RECIPE.image_size)
    pixels = draw_image(0, 2, "seed", _RECIPE.image_size)
    options = CONCEPTS[0].states
    letters = LETTERS[: len(options)]
    text = engine.layout.user_text(CONCEPTS[0].question, letters, options)
    lesson = Lesson(0, 2, "choice", text + engine.layout.scoring_suffix, "C", options)
    assert pixels.shape == (*shape, 3)
    with torch.inference_mode():
        features = Tower(model, _RECIPE.width).features(to_pixels(pixels[None]))[0].numpy()
        for shown, image in ((features, Image.fromarray(pixels)), (None, None)):
            *inputs, targets, _ = writer.batch([Item(lesson, features=shown)])
            logits = Decoder(model)(*inputs).log_softmax(dim=-1)
            assert targets.tolist()[:4] == [writer.no, writer.no, writer.letters[2], writer.no]
            scored = engine.score_batch([Query(image, text, tuple(f" {letter}" for letter in letters))])[0]
            assert logits[4, writer.letters[: len(options)]].tolist() == pytest.approx(
                scored.scores, abs=0.01
            )  # stored in half


def test_a_stopped_vision_stage_goes_on_as_if_nothing_happened(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    def train(folder: Path, recipe: Recipe) -> dict[str, torch.Tensor]:
        tower = Tower(build_model(recipe, tokenizer, 7), recipe.width)
        train_tower(tower, recipe, 7, Checkpoints(folder, every=1), Reporter("test"))
        return tower.state_dict()

    whole = train(tmp_path / "whole", _RECIPE)
    interrupted = Checkpoints(tmp_path / "parts", every=3)
    tower = Tower(build_model(_RECIPE, tokenizer, 7), _RECIPE.width)

    class StopError(Exception):
        pass

    def stop_after_three(stage: str, step: int, steps: int, loss: float) -> None:
        if step == 4:
            raise StopError

    with pytest.raises(StopError):
        train_tower(tower, _RECIPE, 7, interrupted, stop_after_three)  # type: ignore[arg-type]
    resumed = train(tmp_path / "parts", _RECIPE)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_decoder_stages_learn_and_leave_the_tower_alone(
    tokenizer: PreTrainedTokenizerFast, writer: Writer, tmp_path: Path
) -> None:
    recipe = replace(_RECIPE, text=replace(_SHORT, steps=12, batch=8))
    model = build_model(recipe, tokenizer, 3)
    tower_before = {name: value.clone() for name, value in model.model.vision_tower.state_dict().items()}
    losses: list[float] = []

    def note(stage: str, step: int, steps: int, loss: float) -> None:
        losses.append(loss)

    features = Feature(np.zeros((len(CLASSES), 1, writer.image_tokens, recipe.width), np.float16))
    decoder = Decoder(model)
    for name, items in (("text", text_items(recipe)), ("joint", image_items(recipe, features, "strong"))):
        checkpoints = Checkpoints(tmp_path / name)
        train_decoder(name, recipe.text, decoder, writer, items, 3, checkpoints, note)  # type: ignore[arg-type]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    after = model.model.vision_tower.state_dict()
    assert all(torch.equal(after[name], value) for name, value in tower_before.items())
