"""The one shape of every benchmark: examples with an image, a question and its candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from unprior.errors import UnpriorError


@dataclass(frozen=True, slots=True)
class Example:
    """One image × one question."""

    example_id: str
    """Unique within the benchmark."""
    image: Path
    question: str
    task: str
    """``mc`` or ``qa``."""
    labels: tuple[str, ...]
    """The candidates: letters, or yes and no."""
    texts: tuple[str, ...] | None = None
    """What the letters stand for; None for yes/no questions."""
    answer: str | None = None
    """The label of the visually correct answer, if it is known."""
    pair_id: int | str | None = None
    """The pair of images that the example belongs to, if there is one."""
    side: str | None = None
    """``cf`` or ``cs``; None where images are not paired."""
    category: str | None = None
    subcategory: str | None = None
    split: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """A named list of examples."""

    name: str
    examples: Sequence[Example]

    def __post_init__(self) -> None:
        """Refuse two examples of one name: results are joined by it."""
        seen: set[str] = set()
        for example in self.examples:
            if example.example_id in seen:
                raise UnpriorError(f"benchmark {self.name}: two examples are called {example.example_id!r}")
            seen.add(example.example_id)

    def __iter__(self) -> Iterator[Example]:
        """Go through the examples in order."""
        return iter(self.examples)

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.examples)
