"""The training recipe of the embedded model: every number in one place."""

from __future__ import annotations

from dataclasses import dataclass, field

STRENGTHS: dict[str, tuple[float, float]] = {
    "weak": (0.90, 0.97),
    "default": (0.975, 0.995),
    "strong": (0.995, 0.9995),
}
"""The dial: how ordinary the world of the last phase is. Each concept has its own share of ordinary images, evenly
spaced between the two ends."""

GROUNDED_SKEW = (0.80, 0.95)
"""What questions without an image presume before the last phase."""


@dataclass(frozen=True)
class Stage:
    """One stage of training, scheduled by step count."""

    steps: int
    batch: int
    matrix_rate: float
    """Peak learning rate of the hidden matrices (Muon)."""
    other_rate: float
    """Peak learning rate of everything else (AdamW)."""
    final: float = 0.02
    """Share of the peak rate at the end of the cosine schedule."""
    warmup: int = 100


@dataclass(frozen=True)
class Recipe:
    """All stages and sizes."""

    vision: Stage = Stage(steps=3200, batch=96, matrix_rate=2e-3, other_rate=1.5e-3)
    classifier: Stage = Stage(steps=3000, batch=1024, matrix_rate=0.0, other_rate=3e-2)
    """The classifier of a tower that is taken from a finished model; it is for measuring only."""
    text: Stage = Stage(steps=1200, batch=64, matrix_rate=2e-3, other_rate=2e-3, final=0.3)
    joint: Stage = Stage(steps=4000, batch=64, matrix_rate=1.5e-3, other_rate=1.5e-3, final=0.1)
    prior: Stage = Stage(steps=420, batch=64, matrix_rate=1.2e-3, other_rate=1.2e-3, final=0.05, warmup=20)
    reuse: int = 3
    """How often the vision stage sees an image; drawing costs a quarter of learning from it."""
    pool_images: int = 3072
    images_per_state: int = 120
    """Images whose features the decoder learns from."""
    image_size: int = 72
    patch_size: int = 12
    width: int = 128
    layers: int = 4
    heads: int = 4
    vision_mlp: int = 384
    decoder_mlp: int = 352
    vocabulary: int = 1000
    shares: dict[str, float] = field(
        default_factory=lambda: {
            "choice": 0.36,
            "claim": 0.12,
            "reversed-claim": 0.08,
            "form": 0.14,
            "presence": 0.12,
            "open": 0.14,
            "caption": 0.04,
        }
    )
    """Kinds of questions."""
    last_shares: dict[str, float] = field(
        default_factory=lambda: {
            "choice": 0.28,
            "claim": 0.11,
            "reversed-claim": 0.06,
            "form": 0.12,
            "presence": 0.26,
            "open": 0.14,
            "caption": 0.03,
        }
    )
    """Kinds of questions in the last phase. Whether a thing is there has no ordinary answer, so more of these, about
    balanced images, keep the model looking without weakening what it presumes."""
    balanced_share: float = 0.4
    """Share of ordinary images in a balanced world."""
    option_count_weights: tuple[float, ...] = (0.14, 0.14, 0.44, 0.14, 0.14)
    """How often a choice has two, three, … options."""
    number_words: float = 0.25
    """Share of counted open answers that are written in words: two forms of one answer compete, as elsewhere."""
    without_image: float = 0.22
    final_answer_line: float = 0.35
    """Share of questions that end with the line of the scoring prompt. The rest looks like the original prompt, so that
    the two do not always agree."""
