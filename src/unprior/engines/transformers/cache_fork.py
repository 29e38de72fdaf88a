"""Copies of a cache that can grow without changing the original."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against


class CacheForks:
    """Forks caches, and shares what can be shared.

    Most layers replace their tensors when they grow, so a fork may share them until then. Others (recurrent states)
    write into them and must be copied. Which layers those are is found out by trying, not by their names; until then
    everything is copied.
    """

    def __init__(self) -> None:
        """Copy everything at first."""
        self._shared: frozenset[int] | None = None

    def fork(self, cache: Any) -> Any:
        """A cache with the same content."""
        if self._shared is None or not hasattr(cache, "layers"):
            return copy.deepcopy(cache)
        branch = copy.copy(cache)
        branch.layers = [
            copy.copy(layer) if number in self._shared else copy.deepcopy(layer)
            for number, layer in enumerate(cache.layers)
        ]
        return branch

    def rows(self, cache: Any, chosen: Tensor) -> Any:
        """A cache of some rows, also several times; the original stays as it is."""
        branch = self.fork(cache)
        if self._shared is None or not hasattr(cache, "layers"):
            branch.reorder_cache(chosen)
            return branch
        for number, layer in enumerate(branch.layers):
            tensors = _row_tensors(layer)
            if number in self._shared and tensors and all(len(value) == 1 for value in tensors.values()):
                # One row is shown several times without a copy; the layer makes one when it grows.
                for name, value in tensors.items():
                    setattr(layer, name, value.expand(len(chosen), *value.shape[1:]))
            else:
                layer.reorder_cache(chosen)
        return branch

    def learn(self, cache: Any, use: Callable[[Any], object]) -> None:
        """Find out which layers can be shared, by using a cache that shares all of them.

        A layer that was changed by any trial is copied from then on. The cache is of no use afterwards.
        """
        if not hasattr(cache, "layers"):
            return
        before = [copy.deepcopy(vars(layer)) for layer in cache.layers]
        trial = copy.copy(cache)
        trial.layers = [copy.copy(layer) for layer in cache.layers]
        use(trial)
        unchanged = {number for number, layer in enumerate(cache.layers) if equal(before[number], vars(layer))}
        self._shared = frozenset(unchanged if self._shared is None else unchanged & self._shared)


def _row_tensors(layer: Any) -> dict[str, Tensor]:
    return {name: value for name, value in vars(layer).items() if isinstance(value, torch.Tensor) and value.ndim > 1}


def equal(first: Any, second: Any) -> bool:
    """Whether two values are the same, tensors inside of dictionaries and lists included."""
    if isinstance(first, torch.Tensor) or isinstance(second, torch.Tensor):
        both = isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
        return both and first.shape == second.shape and bool(torch.equal(first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(equal(value, second[key]) for key, value in first.items())
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)
