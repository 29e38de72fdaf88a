"""How often a gate on hidden states opens."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateActivity:
    """How often a method that edits hidden states did so while it answered one question.

    >>> GateActivity(positions=200, active=50).share
    0.25
    """

    positions: int
    """Token positions, of the prompt and of the answer, that went through the edited layer."""
    active: int
    """Those that were edited."""

    @property
    def share(self) -> float:
        """Edited ones among all."""
        return self.active / self.positions if self.positions else math.nan
