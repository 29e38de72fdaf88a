"""Plain greedy decoding: the matched reference of the methods that change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from unprior.baselines.method import Method


@dataclass(frozen=True, slots=True)
class Plain(Method):
    """Greedy decoding of the example as it is.

    >>> Plain().matched() == Plain()
    True
    """

    name: ClassVar[str] = "plain"
    label: ClassVar[str] = "Plain decoding"
    kind: ClassVar[str] = "decoder"

    def matched(self) -> Self:
        """There is nothing to switch off."""
        return self
