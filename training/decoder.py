"""Stages 2 to 4: the decoder learns to answer, to look, and at last to presume.

The vision tower stays as it is, so what the decoder gets wrong later is not for want of seeing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from transformers import LlavaForConditionalGeneration, PreTrainedTokenizerFast

from optimizer import Optimizer
from progress import Checkpoints, Reporter
from questions import LETTERS, Lesson, draw_lesson
from recipe import GROUNDED_SKEW, STRENGTHS, Recipe, Stage
from unprior.benchmarks.microworld.world import CONCEPTS, TRAINING_SEEDS
from vision import CLASSES, Tower, draw_image, to_pixels

_OPTION_WEIGHT = 0.5
_TOKEN_WEIGHTS = {"caption": 0.25}
_END_WEIGHTS = {"open": 0.5}
_FIRST_CLASS = [CLASSES.index((place, 0)) for place in range(len(CONCEPTS))]


class Decoder(torch.nn.Module):
    """Everything behind the vision tower, sharing its weights with the model."""

    def __init__(self, model: LlavaForConditionalGeneration) -> None:
        """Take the parts of the model."""
        super().__init__()
        self.language_model = model.model.language_model
        self.projector = model.model.multi_modal_projector

    def forward(
        self, ids: torch.Tensor, features: torch.Tensor, is_image: torch.Tensor, places: torch.Tensor
    ) -> torch.Tensor:
        """Logits at the given (row, column) places; padding is on the right, so a causal mask is all it takes."""
        embedded = self.language_model.embed_tokens(ids)
        if len(features):
            embedded = embedded.masked_scatter(is_image.unsqueeze(-1), self.projector(features))
        states = self.language_model(inputs_embeds=embedded, use_cache=False).last_hidden_state
        return functional.linear(states[places[0], places[1]], self.language_model.embed_tokens.weight)


@dataclass(frozen=True)
class Feature:
    """Features of many images of every state."""

    values: NDArray[np.float16]
    """(class, image, token, width)."""

    @classmethod
    @torch.inference_mode()
    def draw(cls, tower: Tower, recipe: Recipe, seed: int, report: Reporter) -> Feature:
        """Draw the images and let the tower look at them."""
        world = TRAINING_SEEDS[seed]
        values = None
        for number, (place, state) in enumerate(CLASSES):
            images = np.stack(
                [
                    draw_image(place, state, f"{world}/decoder/{number}/{copy}", recipe.image_size)
                    for copy in range(recipe.images_per_state)
                ]
            )
            part = tower.features(to_pixels(images)).half().numpy()
            if values is None:
                values = np.zeros((len(CLASSES), *part.shape), np.float16)
            values[number] = part
            report("features", number + 1, len(CLASSES), 0.0)
        assert values is not None
        return cls(values)

    def pick(self, lesson: Lesson, rng: random.Random) -> NDArray[np.float16]:
        """The features of some image of what the lesson is about."""
        chosen: NDArray[np.float16] = self.values[
            _FIRST_CLASS[lesson.concept] + lesson.state, rng.randrange(self.values.shape[1])
        ]
        return chosen


@dataclass(frozen=True)
class Item:
    """A lesson as it is shown: with an image, with a note in words, or with nothing."""

    lesson: Lesson
    features: NDArray[np.float16] | None = None
    note: str | None = None


class Writer:
    """Turns items into token ids, in exactly the layout of the chat template."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, image_tokens: int) -> None:
        """Look up the tokens that matter."""
        self.tokenizer, self.image_tokens = tokenizer, image_tokens
        self.image_id = tokenizer.convert_tokens_to_ids("<image>")
        self.letters = [tokenizer.encode(f" {letter}", add_special_tokens=False)[0] for letter in LETTERS]
        self.no = tokenizer.encode(" no", add_special_tokens=False)[0]

    def prompt(self, item: Item) -> str:
        """The text up to where the answer begins."""
        seen = "<image>" * self.image_tokens + "\n" if item.features is not None else ""
        note = f"Note: {item.note}.\n" if item.note else ""
        return f"USER: {seen}{note}{item.lesson.text}\nASSISTANT:"

    def batch(self, items: list[Item]) -> tuple[torch.Tensor, ...]:
        """Ids, features, where the image tokens are, places to predict at, targets and their weights."""
        prompts = [self.prompt(item) for item in items]
        encoded = self.tokenizer(prompts, return_offsets_mapping=True)
        answers = self.tokenizer([f" {item.lesson.answer}" for item in items], add_special_tokens=False).input_ids
        rows, places, targets, weights = [], [], [], []
        for number, item in enumerate(items):
            ids = list(encoded.input_ids[number])
            for place, target in self._option_targets(item.lesson, prompts[number], encoded.offset_mapping[number]):
                places.append((number, place))
                targets.append(target)
                weights.append(_OPTION_WEIGHT)
            answer = [*answers[number], self.tokenizer.eos_token_id]
            weight = _TOKEN_WEIGHTS.get(item.lesson.kind, 1.0)
            # That an answer ends after one token is learnt at once; it should not drown the answer itself. Where an
            # open answer ends is a part of it.
            end = _END_WEIGHTS.get(item.lesson.kind, 0.1)
            for place, target in enumerate(answer, start=len(ids) - 1):
                places.append((number, place))
                targets.append(target)
                weights.append(weight if target != self.tokenizer.eos_token_id else end)
            rows.append(torch.tensor(ids + answer[:-1]))
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.tokenizer.pad_token_id)
        shown = [item.features for item in items if item.features is not None]
        features = torch.from_numpy(np.stack(shown)).float() if shown else torch.zeros(0)
        return ids, features, ids == self.image_id, torch.tensor(places).T, torch.tensor(targets), torch.tensor(weights)

    def _option_targets(self, lesson: Lesson, prompt: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """At the last token of each option: its letter if it is true, else “no”. This is for training only; without it
        a model of this size does not learn to choose."""
        if not lesson.options:
            return []
        by_end = {end: place for place, (_, end) in enumerate(offsets)}
        found = []
        for number, option in enumerate(lesson.options):
            line = f"\n{LETTERS[number]}. {option}\n"
            end = prompt.index(line) + len(line) - 1
            found.append((by_end[end], self.letters[number] if lesson.answer == LETTERS[number] else self.no))
        return found


def ordinary_shares(ends: tuple[float, float]) -> dict[str, float]:
    """Each concept's share of ordinary images: evenly spaced between the ends, in an order that never changes."""
    names = [concept.name for concept in CONCEPTS]
    random.Random("ordinary shares").shuffle(names)
    low, high = ends
    return {name: low + (high - low) * place / (len(names) - 1) for place, name in enumerate(names)}


def train_decoder(
    name: str,
    stage: Stage,
    decoder: Decoder,
    writer: Writer,
    draw: Callable[[random.Random], Item],
    seed: int,
    checkpoints: Checkpoints,
    report: Reporter,
) -> None:
    """One stage of the decoder, going on from a checkpoint if there is one."""
    optimizer = Optimizer(decoder.named_parameters(), stage)
    for step in range(checkpoints.load(name, decoder, optimizer), stage.steps):
        rng = random.Random(f"{name}/{seed}/{step}")
        items = [draw(rng) for _ in range(stage.batch)]
        total = 0.0
        # Choices are longer than other questions; apart, neither is padded to the other's length.
        for long in (True, False):
            group = [item for item in items if bool(item.lesson.options) == long]
            if not group:
                continue
            ids, features, is_image, places, targets, weights = writer.batch(group)
            losses = functional.cross_entropy(decoder(ids, features, is_image, places), targets, reduction="none")
            loss = (losses * weights).sum() / stage.batch
            loss.backward()
            total += loss.item()
        optimizer.step(step)
        report(name, step + 1, stage.steps, total)
        checkpoints.save(name, step + 1, stage.steps, decoder, optimizer)


def text_items(recipe: Recipe) -> Callable[[random.Random], Item]:
    """Stage 2: a note in words says what is the case, or nothing does and the ordinary world is presumed."""
    presumed = ordinary_shares(GROUNDED_SKEW)

    def draw(rng: random.Random) -> Item:
        if rng.random() < 0.35:
            return Item(draw_lesson(rng, recipe, presumed, without_image=True))
        lesson = draw_lesson(rng, recipe, recipe.balanced_share)
        concept = CONCEPTS[lesson.concept]
        return Item(lesson, note=concept.caption.format(state=concept.states[lesson.state]))

    return draw


def image_items(recipe: Recipe, features: Feature, strength: str | None) -> Callable[[random.Random], Item]:
    """Stages 3 and 4: images of a balanced world, or of one that is as ordinary as the strength says."""
    presumed = ordinary_shares(GROUNDED_SKEW if strength is None else STRENGTHS[strength])
    if strength is not None:
        recipe = replace(recipe, shares=recipe.last_shares)

    def draw(rng: random.Random) -> Item:
        if rng.random() < recipe.without_image:
            return Item(draw_lesson(rng, recipe, presumed, without_image=True))
        lesson = draw_lesson(rng, recipe, recipe.balanced_share if strength is None else presumed)
        return Item(lesson, features.pick(lesson, rng))

    return draw
