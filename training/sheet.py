"""A sheet of all subcategories for docs/explanation/embedded-model.md: ordinary states above, contradictions below."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from unprior.benchmarks.microworld import CONCEPTS, render
from unprior.benchmarks.taxonomy import SUBCATEGORIES
from unprior.plots.style import LIGHT

_SHOWN = {
    "Animal Parts": "rabbit ears", "Plant Structure": "clover leaves", "Everyday Objects": "bicycle wheels",
    "Animal Behavior": "fish behavior", "Size Scale": "elephant and mouse size", "Causality": "match effect",
    "Material": "house material", "Physical State": "honey state",
}  # fmt: skip


def draw_sheet(path: Path) -> None:
    """Two rows of seven pairs."""
    with LIGHT.applied():
        figure = Figure(figsize=(10.5, 7.2), dpi=110, layout="constrained")
        grid = figure.subplots(4, 7)
        for place, (_, subcategory, _) in enumerate(SUBCATEGORIES):
            concepts = [concept for concept in CONCEPTS if concept.subcategory == subcategory]
            wanted = _SHOWN.get(subcategory, concepts[0].name)
            concept = next(concept for concept in concepts if concept.name == wanted)
            row, column = 2 * (place // 7), place % 7
            for below, state in enumerate((concept.ordinary, concept.alternatives[1])):
                axes = grid[row + below][column]
                axes.imshow(render(concept, state, "sheet/1", size=220, clean=True), interpolation="antialiased")
                axes.set_xticks([])
                axes.set_yticks([])
                axes.set_xlabel(state, fontsize=8)
                if not below:
                    axes.set_title(subcategory.replace("/", "/\n"), fontsize=8.5, loc="center")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


if __name__ == "__main__":
    draw_sheet(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/microworld.png"))
