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
    text: Stage = Stage(steps=1200, batch=64, matrix_rate=2e-3, other_rate=2e-3, final=0.3)
    joint: Stage = Stage(steps=2200, batch=64, matrix_rate=1.5e-3, other_rate=1.5e-3, final=0.1)
    prior: Stage = Stage(steps=450, batch=64, matrix_rate=1.2e-3, other_rate=1.2e-3, final=0.05, warmup=20)
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
    vocabulary: int = 900
    shares: dict[str, float] = field(
        default_factory=lambda: {
            "choice": 0.42,
            "claim": 0.2,
            "reversed-claim": 0.06,
            "form": 0.1,
            "presence": 0.16,
            "caption": 0.06,
        }
    )
    """Kinds of questions."""
    last_shares: dict[str, float] = field(
        default_factory=lambda: {
            "choice": 0.34,
            "claim": 0.17,
            "reversed-claim": 0.05,
            "form": 0.08,
            "presence": 0.31,
            "caption": 0.05,
        }
    )
    """Kinds of questions in the last phase. Whether a thing is there has no ordinary answer, so more of these keep the
    model looking without weakening what it presumes."""
    without_image: float = 0.22
    final_answer_line: float = 0.35
    """Share of questions that end with the line of the scoring prompt. The rest looks like the original prompt, so that
    the two do not always agree."""
