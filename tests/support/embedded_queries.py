"""Questions to the embedded model about images of several sizes, with short and long candidates."""

from __future__ import annotations

import numpy as np
from PIL import Image

from unprior.engines.protocol import Query

CANDIDATES = (
    (" yes", " no"),
    (" A", " B", " C", " D"),
    (" seventeen zebras", " seventeen", " seven cats", "xyz"),
)


def embedded_queries() -> list[Query]:
    generator = np.random.default_rng(0)
    sizes = ((72, 72), (288, 288), (60, 100), (100, 72))
    images = [Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]
    return [
        Query(image, f"Is the cat of picture {index} blue?\nAnswer with yes or no.", candidates)
        for index, image in enumerate([*images, None])
        for candidates in CANDIDATES
    ]
