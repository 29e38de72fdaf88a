"""Stage 1: the vision tower learns to tell every state of every concept, all states equally often."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional
from transformers import LlavaForConditionalGeneration

from optimizer import Optimizer, schedule
from progress import Checkpoints, Reporter
from recipe import Recipe
from unprior.benchmarks.microworld.render import render
from unprior.benchmarks.microworld.world import CONCEPTS, TRAINING_SEEDS

CLASSES = [(place, state) for place, concept in enumerate(CONCEPTS) for state in range(len(concept.states))]
"""One class per state of a concept."""


def draw_image(place: int, state: int, seed: str, size: int, *, clean: bool = False) -> NDArray[np.uint8]:
    """An image as the model's processor would hand it over, before normalisation."""
    concept = CONCEPTS[place]
    image = render(concept, concept.states[state], seed, size=2 * size, clean=clean)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))


def to_pixels(images: NDArray[np.uint8]) -> torch.Tensor:
    """Normalised pixel values (mean 0.5, deviation 0.25)."""
    return torch.tensor(images).permute(0, 3, 1, 2).float().div_(63.75).sub_(2.0)


class Tower(torch.nn.Module):
    """The model's vision tower with a classifier on its class token, which is for training and measuring only."""

    def __init__(self, model: LlavaForConditionalGeneration, width: int) -> None:
        """Share the tower with the model."""
        super().__init__()
        self.tower = model.model.vision_tower
        self.classifier = torch.nn.Linear(width, len(CLASSES))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Logits of the classes."""
        logits: torch.Tensor = self.classifier(self.features(pixels)[:, 0])
        return logits

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """What the projector gets: the last layer's states of all tokens."""
        states: torch.Tensor = self.tower(pixels, output_hidden_states=True).hidden_states[-1]
        return states


def train_tower(tower: Tower, recipe: Recipe, seed: int, checkpoints: Checkpoints, report: Reporter) -> None:
    """Train the tower, going on from a checkpoint if there is one."""
    stage = recipe.vision
    optimizer = Optimizer(tower.named_parameters(), stage)
    start = checkpoints.load("vision", tower, optimizer)
    for step, pixels, classes in _batches(recipe, seed, start):
        loss = functional.cross_entropy(tower(pixels), classes)
        loss.backward()
        optimizer.step(step)
        report("vision", step + 1, stage.steps, loss.item())
        checkpoints.save("vision", step + 1, stage.steps, tower, optimizer)


def adopt_tower(tower: Tower, folder: Path) -> None:
    """Take the vision tower of a finished model, which has no classifier any more."""
    prefix = "vision_tower.vision_model."
    weights = load_file(folder / "model.safetensors")
    tower.tower.load_state_dict(
        {name.removeprefix(prefix): value.float() for name, value in weights.items() if name.startswith(prefix)}
    )


def train_classifier(
    tower: Tower, seen: NDArray[np.float16], recipe: Recipe, checkpoints: Checkpoints, report: Reporter
) -> None:
    """Train the classifier of a tower that stays as it is, on the class tokens of images: (class, image, width)."""
    stage = recipe.classifier
    if checkpoints.load("vision", tower):
        return
    tokens = torch.from_numpy(seen.reshape(-1, seen.shape[-1])).float()
    classes = torch.arange(len(seen)).repeat_interleave(seen.shape[1])
    optimizer = torch.optim.AdamW(tower.classifier.parameters(), lr=stage.other_rate)
    generator = torch.Generator().manual_seed(0)
    for step in range(stage.steps):
        chosen = torch.randint(len(tokens), (stage.batch,), generator=generator)
        loss = functional.cross_entropy(tower.classifier(tokens[chosen]), classes[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = stage.other_rate * schedule(step, stage)
        optimizer.step()
        report("classifier", step + 1, stage.steps, loss.item())
    checkpoints.save("vision", stage.steps, stage.steps, tower)


def _batches(recipe: Recipe, seed: int, start: int) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Batches from a pool of images that is drawn anew whenever each was used a few times.

    The pool and the choice from it depend on the step alone, so a resumed run sees what an unbroken one would.
    """
    stage = recipe.vision
    steps_per_pool = recipe.reuse * recipe.pool_images // stage.batch
    world = TRAINING_SEEDS[seed]
    pool_number = -1
    for step in range(start, stage.steps):
        if step // steps_per_pool != pool_number:
            pool_number = step // steps_per_pool
            rng = random.Random(f"pool/{seed}/{pool_number}")
            classes = [rng.randrange(len(CLASSES)) for _ in range(recipe.pool_images)]
            pool = np.stack(
                [
                    draw_image(*CLASSES[number], f"{world}/vision/{pool_number}/{place}", recipe.image_size)
                    for place, number in enumerate(classes)
                ]
            )
        chosen = np.random.default_rng([seed, 1, step]).integers(len(pool), size=stage.batch)
        yield step, to_pixels(pool[chosen]), torch.tensor(classes)[chosen]


@torch.inference_mode()
def tower_accuracy(tower: Tower, recipe: Recipe, seeds: list[str], *, clean: bool) -> dict[str, float]:
    """Share of right states among the states of the same concept, by subcategory, on images of the given seeds."""
    right: dict[str, list[bool]] = {}
    for place, concept in enumerate(CONCEPTS):
        first = CLASSES.index((place, 0))
        last = first + len(concept.states)
        for seed in seeds:
            pixels = to_pixels(
                np.stack([draw_image(place, s, seed, recipe.image_size, clean=clean) for s in range(last - first)])
            )
            best = tower(pixels)[:, first:last].argmax(dim=1)
            right.setdefault(concept.subcategory, []).extend((best == torch.arange(last - first)).tolist())
    return {name: float(np.mean(values)) for name, values in right.items()}
