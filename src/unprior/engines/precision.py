"""Which differences between two computations of one score a model's precision explains."""

from __future__ import annotations

SINGLE, HALF = 1e-3, 0.25
"""Largest explained difference in single and half precision; the second is a margin that was chosen, not measured."""
CLOSE = (1e-4, 0.1)
"""What the engine's self-test accepts in single and half precision without measuring the model's own noise."""
_BY_TYPE = {"float64": 1e-6, "float32": SINGLE}


def explained_difference(dtype: str) -> float:
    """Largest difference that a type of numbers explains.

    >>> explained_difference("torch.float32"), explained_difference("bfloat16")
    (0.001, 0.25)
    """
    return _BY_TYPE.get(dtype.removeprefix("torch."), HALF)
