"""A vision tower that remembers what it has seen, for models whose prompts cannot share their beginning."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from unprior.engines.transformers.cache_fork import equal


class VisionMemory:
    """While it is open, the tower computes every image once in a row."""

    def __init__(self, model: Any) -> None:
        """Find the tower; some models have none that can be told apart."""
        found = model.get_encoder("image") if callable(getattr(model, "get_encoder", None)) else model
        self._tower = None if found is model or not isinstance(found, torch.nn.Module) else found
        self.active = False
        """Whether it remembers now."""
        self.runs = 0
        """How often the tower computed something while it remembered."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Remember all images until the context ends."""
        tower = self._tower
        if tower is None:
            yield
            return
        forward, own = tower.forward, vars(tower).get("forward")
        memory: list[tuple[Any, Any]] = []  # a pass may run the tower several times, for parts of an image

        def remembering(*arguments: Any, **options: Any) -> Any:
            asked = (arguments, options)
            known = next((output for before, output in memory if equal(before, asked)), None)
            if known is None:
                self.runs += 1
                before = copy.deepcopy(asked)
                known = forward(*arguments, **options)
                memory.append((before, known))
            return copy.deepcopy(known)  # some models write into what they get

        tower.forward, self.active = remembering, True
        try:
            yield
        finally:
            del tower.forward  # the class's own is visible again
            if own is not None:  # accelerate keeps its hook there
                tower.forward = own
            self.active = False
