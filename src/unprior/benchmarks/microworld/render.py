"""From a concept, a state and a seed to an image; every seed draws it differently."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from PIL import Image

from unprior.benchmarks.microworld.canvas import Canvas, Colour, jitter
from unprior.benchmarks.microworld.concepts import Concept

_BACKDROPS = (
    (236, 231, 219), (219, 231, 238), (226, 238, 221), (240, 224, 222), (230, 224, 240), (244, 238, 208),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conditions:
    """How an image is taken; shared by the two images of a pair."""

    x: float = 0.0
    y: float = 0.0
    scale: float = 0.84
    angle: float = 0.0
    backdrop: tuple[int, int, int] = _BACKDROPS[0]
    brightness: float = 1.0
    haze: float = 0.0
    """How far the image fades towards its backdrop, from 0 (clear) to 1 (nothing to see)."""
    noise: float = 0.0
    """Standard deviation of the grain, in grey levels, as seen at 72×72 pixels."""
    spots: tuple[tuple[float, float, float], ...] = ()
    """Small discs in front of the image: x, y, radius."""

    @classmethod
    def draw(cls, rng: random.Random) -> Conditions:
        """Chance conditions."""
        spots = rng.choices((0, 1, 2), (5, 3, 2))[0]
        return cls(
            x=rng.uniform(-0.1, 0.1),
            y=rng.uniform(-0.1, 0.1),
            scale=rng.uniform(0.72, 0.9),
            angle=rng.uniform(-9, 9),
            backdrop=rng.choice(_BACKDROPS),
            brightness=rng.uniform(0.85, 1.1),
            haze=rng.uniform(0.0, 0.5),
            noise=rng.uniform(1.0, 7.0),
            spots=tuple((rng.uniform(-0.9, 0.9), rng.uniform(-0.9, 0.9), rng.uniform(0.05, 0.1)) for _ in range(spots)),
        )


def render(concept: Concept, state: str, seed: str, *, size: int = 288, clean: bool = False) -> Image.Image:
    """Draw a concept in a state; the seed decides looks and conditions, the state changes nothing else.

    >>> from unprior.benchmarks.microworld.body_parts import CONCEPTS
    >>> render(CONCEPTS[0], "6 fingers", "a seed").size
    (288, 288)
    """
    conditions = Conditions() if clean else Conditions.draw(random.Random(f"conditions/{concept.name}/{seed}"))
    image = Image.new("RGB", (2 * size, 2 * size), conditions.backdrop)
    canvas = Canvas.on(image)
    _backdrop(canvas, conditions.backdrop)
    board = canvas.moved(conditions.x, conditions.y, scale=conditions.scale, angle=conditions.angle)
    concept.draw(board, state, random.Random(f"looks/{concept.name}/{seed}"))
    for x, y, radius in conditions.spots:
        spot: Colour = (*jitter(conditions.backdrop, -0.25), 255)
        canvas.circle(x, y, radius, spot, outline=None)
    return _photograph(image.reduce(2), conditions, seed)


def _backdrop(canvas: Canvas, colour: tuple[int, int, int]) -> None:
    canvas.rectangle(-1, 0.55, 1, 1, jitter(colour, -0.07), outline=None)


def _photograph(image: Image.Image, conditions: Conditions, seed: str) -> Image.Image:
    """Brightness, haze and grain."""
    if conditions == Conditions(scale=conditions.scale, backdrop=conditions.backdrop):
        return image
    pixels = np.asarray(image, dtype=np.float32)
    faded = pixels + conditions.haze * (np.asarray(conditions.backdrop, dtype=np.float32) - pixels)
    generator = np.random.default_rng(list(seed.encode()))
    grain = generator.standard_normal(pixels.shape[:2], dtype=np.float32)[..., None]
    sigma = conditions.noise * image.width / 72  # grain averages out when the image is made smaller
    values = faded * conditions.brightness + min(sigma, 12.0) * grain
    return Image.fromarray(values.clip(0, 255).astype(np.uint8))
