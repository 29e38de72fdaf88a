"""Beams of a model: rows of one branch that grow together, or whole passes where a cache cannot be trusted."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from unprior.engines.transformers.forward import Branch, Inputs, Reader, Rereader

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against


class BranchedBeams:
    """Beams that are the rows of one branch; there are never more of them than are named in a step."""

    def __init__(self, reader: Reader, branch: Branch) -> None:
        """Begin with the rows of a branch, which stays as it is."""
        self._reader, self._branch = reader, branch
        self._own = False  # whether the branch is ours to spend

    def log_probabilities(self) -> Tensor:
        """Of the next token of every beam; shape (beams, vocabulary)."""
        return torch.log_softmax(self._branch.logits[:, -1], dim=-1)

    def follow(self, parents: list[int], tokens: list[int]) -> None:
        """Read one token after each of some beams, which replace all others."""
        branch, own = self._branch, self._own
        if parents != list(range(len(branch.ids))):
            branch, own = branch.rows(torch.tensor(parents, device=branch.ids.device)), True
            self._branch = branch  # the rows before are not needed any more
        self._branch = self._reader.follow(branch, torch.tensor(tokens)[:, None], spend=own)
        self._own = True


class RereadBeams:
    """Beams of one prompt, each of which is read from the start at every step."""

    def __init__(self, reader: Rereader, inputs: Inputs) -> None:
        """Begin with the end of a prompt."""
        self._reader = reader
        self._branches = [reader.read(inputs)]

    def log_probabilities(self) -> Tensor:
        """Of the next token of every beam; shape (beams, vocabulary)."""
        return torch.log_softmax(torch.cat([branch.logits[:, -1] for branch in self._branches]), dim=-1)

    def follow(self, parents: list[int], tokens: list[int]) -> None:
        """Read one token after each of some beams, which replace all others."""
        self._branches = [
            self._reader.follow(self._branches[parent], torch.tensor([[token]]))
            for parent, token in zip(parents, tokens, strict=True)
        ]
