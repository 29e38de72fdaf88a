"""Score tables without any structure."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_rows(seed: int, pairs: int = 30, counts: tuple[int, ...] = (2, 3, 4)) -> list[dict[str, Any]]:
    """Rows without any structure: hard for an optimiser, and with every kind of agreement between winners."""
    generator = np.random.default_rng(seed)
    rows = []
    for pair in range(pairs):
        for task in ("mc", "qa"):
            count = int(generator.choice(counts))
            candidates = [f"c{index}" for index in range(count)]
            prior = generator.normal(0, 2, count)
            for side in ("cf", "cs"):
                image = generator.normal(0, 2, count) + generator.uniform(0, 1) * prior
                original = None if generator.random() < 0.1 else candidates[int(generator.integers(count))]
                rows.append(
                    {
                        "pair_id": pair,
                        "side": side,
                        "task": task,
                        "split": "dev",
                        "candidates": candidates,
                        "image_scores": image.tolist(),
                        "prior_scores": prior.tolist(),
                        "original": original,
                        "answer": candidates[int(generator.integers(count))],
                    }
                )
    return rows
