"""A small benchmark of noise images about hands, for tests that ask a real small model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

PAIRS = 3


def write_benchmark(folder: Path, pairs: int = PAIRS, development: int = 1) -> Path:
    """Pairs of images with a choice and a yes/no question each: four examples per pair."""
    generator = np.random.default_rng(0)
    rows = []
    for pair in range(pairs):
        for side in ("cf", "cs"):
            name = f"{pair}-{side}.png"
            pixels = generator.integers(0, 256, (40 + 8 * pair, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name)
            common = {"image": name, "pair": pair, "side": side, "split": "dev" if pair < development else "test"}
            options = ["five", "six", "seven", "four"]
            question = f"How many fingers does hand {pair} have?"
            rows.append(common | {"question": question, "options": options, "answer": "six", "id": f"{pair}-{side}-mc"})
            rows.append(common | {"question": f"Is hand {pair} red?", "answer": "no", "id": f"{pair}-{side}-qa"})
    path = folder / "hands.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path
