"""From questions and an engine to a score table: what to ask, asking it, storing it, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unprior.scoring.benchmark import Scored, score, score_benchmark

__all__ = ["Scored", "score", "score_benchmark"]


def __getattr__(name: str) -> Any:
    """The parts of this package that need Arrow and a store are imported when they are asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from unprior.scoring import benchmark

    return getattr(benchmark, name)
