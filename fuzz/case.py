"""What a case is, and how it can end."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

NOTES = "case.txt"
"""File in the folder of a case that says what was done."""


class DifferentResultError(Exception):
    """An input was accepted, and the result is not what it must be."""


@dataclass(frozen=True)
class Case:
    """One input; everything about it follows from the target, the seed and the index."""

    target: str
    seed: int
    index: int
    folder: Path
    """An empty folder of its own; what lies there is kept when the case fails."""

    @cached_property
    def random(self) -> random.Random:
        """The only source of chance."""
        return random.Random(f"{self.target} {self.seed} {self.index}")

    def note(self, text: str) -> None:
        """Write down what is done, for the person who looks at a failure; survives a killed process."""
        with (self.folder / NOTES).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{text}\n")

    def write(self, name: str, content: bytes) -> Path:
        """Put a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


Target = Callable[[Case], bool]
"""Runs a case: True if the input was accepted, False (or an UnpriorError) if it was refused, else it raises."""
MakeTarget = Callable[[Path], Target]
"""Prepares a target once in every process, with a folder for what its cases share."""


def require(holds: bool, message: str) -> None:
    """Say that a result is not what it must be."""
    if not holds:
        raise DifferentResultError(message)


def on_linux() -> bool:
    """Whether memory and waiting times can be read from ``/proc``."""
    return sys.platform == "linux"
