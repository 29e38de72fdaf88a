"""Forward passes with a shared prefix: fill a cache once, then branch from it as often as needed.

The only module that knows how transformers keeps its state. Positions are always passed explicitly, because some
models (Qwen3-VL) otherwise remember an offset from the last image they saw.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against


@dataclass(frozen=True)
class Branch:
    """A prompt that the model has read: its cache, which tokens are real, and the next-token logits."""

    cache: Any
    mask: Tensor
    """1 for real tokens, 0 for padding; shape (rows, tokens read)."""
    offset: Tensor
    """What multimodal positions add to the count of real tokens; shape (rows, 1)."""
    logits: Tensor
    """Logits after the last tokens that were read, float32; shape (rows, kept tokens, vocabulary)."""

    def rows(self, chosen: Tensor) -> Branch:
        """Choose rows, also several times, without disturbing this branch."""
        cache = _shallow_copy(self.cache)
        cache.batch_select_indices(chosen)
        return Branch(cache, self.mask[chosen], self.offset[chosen], self.logits[chosen])

    def without_last(self, count: int) -> Branch:
        """The same prompts before their last tokens were read; there are no logits there."""
        cache = _shallow_copy(self.cache)
        cache.crop(-count)
        return Branch(cache, self.mask[:, :-count], self.offset, self.logits[:, :0])


class Reader:
    """Feeds tokens to a model."""

    def __init__(self, model: Any) -> None:
        """Find out whether the model counts image positions in three dimensions."""
        self.model = model
        self.device = model.get_input_embeddings().weight.device
        self._base = getattr(model, "model", model)
        self.three_dimensional = hasattr(self._base, "rope_deltas")
        self.passes = 0
        """Forward passes so far, counted per row: a pass over a batch of eight counts eight."""
        self.encoded_images = 0
        """Images that went through the vision tower so far."""

    def read(self, inputs: Mapping[str, Tensor], keep: int = 1) -> Branch:
        """Read prompts from the start: token ids, mask, and image inputs where there are images."""
        arguments = {name: value.to(self.device) for name, value in inputs.items()}
        mask = arguments["attention_mask"]
        with_image = any(name not in ("input_ids", "attention_mask", "mm_token_type_ids") for name in arguments)
        if not with_image:
            arguments.pop("mm_token_type_ids", None)
        if self.three_dimensional:
            self._base.rope_deltas = None
        if not (self.three_dimensional and with_image):
            arguments["position_ids"] = self._positions(mask, torch.zeros_like(mask[:, :1]), mask.shape[1])
        self.passes += mask.shape[0]
        self.encoded_images += mask.shape[0] if with_image else 0
        with torch.inference_mode():
            output = self.model(**arguments, use_cache=True, logits_to_keep=keep)
        offset = torch.zeros_like(mask[:, :1])
        if self.three_dimensional and with_image:
            offset = self._base.rope_deltas.to(mask.device).reshape(-1, 1)
        return Branch(output.past_key_values, mask, offset, output.logits[:, -keep:].float())

    def follow(self, branch: Branch, ids: Tensor, mask: Tensor) -> Branch:
        """Read more tokens after a branch, which stays as it is; padding stands on the right."""
        mask = torch.cat([branch.mask, mask.to(self.device)], dim=1)
        length = ids.shape[1]
        self.passes += ids.shape[0]
        with torch.inference_mode():
            output = self.model(
                input_ids=ids.to(self.device),
                attention_mask=mask,
                position_ids=self._positions(mask, branch.offset, length),
                past_key_values=_shallow_copy(branch.cache),
                use_cache=True,
                logits_to_keep=length,
            )
        return Branch(output.past_key_values, mask, branch.offset, output.logits[:, -length:].float())

    def _positions(self, mask: Tensor, offset: Tensor, length: int) -> Tensor:
        positions = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -length:] + offset
        return positions.expand(3, -1, -1) if self.three_dimensional else positions


class Rereader:
    """Reads everything anew for every token: for models whose cache cannot be trusted, one prompt at a time."""

    def __init__(self, reader: Reader) -> None:
        """Read with another reader, but never go on from its cache."""
        self._reader = reader

    def read(self, inputs: Mapping[str, Tensor]) -> Branch:
        """Read a prompt from the start, and remember it whole."""
        return replace(self._reader.read(inputs), cache=dict(inputs))

    def follow(self, branch: Branch, ids: Tensor, mask: Tensor) -> Branch:
        """Read the prompt again, with more tokens."""
        inputs = dict(branch.cache)
        append_tokens(inputs, ids)
        return self.read(inputs)


TokenReader: TypeAlias = Reader | Rereader


def append_tokens(inputs: dict[str, Tensor], tail: Tensor) -> None:
    """Add text tokens, one row per prompt, to model inputs."""
    additions = {
        "input_ids": tail,
        "attention_mask": torch.ones_like(tail),
        "mm_token_type_ids": torch.zeros_like(tail),
    }
    for name, addition in additions.items():
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], addition], dim=1)


def _shallow_copy(cache: Any) -> Any:
    """A cache that can grow without changing the original: layers replace their tensors when they grow."""
    branch = copy.copy(cache)
    branch.layers = [copy.copy(layer) for layer in cache.layers]
    return branch


def pad_right(rows: Sequence[Sequence[int]], filler: int) -> tuple[Tensor, Tensor]:
    """Token lists as one matrix with its mask."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), filler, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[index, : len(row)] = 1
    return ids, mask


def pad_left(rows: Sequence[Sequence[int]], filler: int) -> tuple[Tensor, Tensor]:
    """Token lists as one matrix with its mask, aligned at their ends."""
    ids, mask = pad_right([list(reversed(row)) for row in rows], filler)
    return ids.flip(1), mask.flip(1)


def score_after(reader: Reader, branch: Branch, candidates: Sequence[Sequence[Sequence[int]]]) -> list[list[float]]:
    """Summed log-probabilities of candidate token lists, for every row of a branch that has read its prompt.

    ``branch.logits`` must hold one distribution per row. One-token candidates cost nothing more; the tails of longer
    ones are read in one further pass over all of them.
    """
    first = torch.log_softmax(branch.logits[:, -1], dim=-1)
    scores = [[float(first[row, tokens[0]]) for tokens in lists] for row, lists in enumerate(candidates)]
    tails = [
        (row, position, tokens)
        for row, lists in enumerate(candidates)
        for position, tokens in enumerate(lists)
        if len(tokens) > 1
    ]
    if tails:
        chosen = torch.tensor([row for row, _, _ in tails], device=branch.mask.device)
        ids, mask = pad_right([tokens[:-1] for _, _, tokens in tails], 0)
        after = torch.log_softmax(reader.follow(branch.rows(chosen), ids, mask).logits, dim=-1)
        for index, (row, position, tokens) in enumerate(tails):
            scores[row][position] += sum(float(after[index, step, token]) for step, token in enumerate(tokens[1:]))
    return scores


def decode_greedily(reader: TokenReader, branch: Branch, stop: set[int], most: int) -> list[list[int]]:
    """Continue every row with its most probable token until it stops."""
    return decode_together(reader, [branch], lambda logits: logits[0].argmax(dim=-1), stop, most)


def decode_together(
    reader: TokenReader,
    branches: Sequence[Branch],
    choose: Callable[[list[Tensor]], Tensor],
    stop: set[int],
    most: int,
    before_pass: Callable[[int, list[int]], None] | None = None,
) -> list[list[int]]:
    """Continue several readings of the same examples with one common text, token by token.

    Parameters
    ----------
    branches
        One per stream, each with its own cache and as many rows as there are examples.
    choose
        From the next-token logits of all streams, each of shape (rows, vocabulary), to one token per row.
    stop, most
        Tokens that end a row, and the most tokens that a row may get.
    before_pass
        Told the stream and the examples that its next pass reads; those that have stopped cost nothing more.
    """
    streams = list(branches)
    rows = streams[0].mask.shape[0]
    written: list[list[int]] = [[] for _ in range(rows)]
    running = list(range(rows))
    for _ in range(most):
        tokens = choose([stream.logits[:, -1] for stream in streams]).tolist()
        going = []
        for index, (row, token) in enumerate(zip(running, tokens, strict=True)):
            if token not in stop:
                written[row].append(token)
                going.append(index)
        if not going:
            break
        if len(going) < len(running):
            streams = [stream.rows(torch.tensor(going, device=stream.mask.device)) for stream in streams]
            running, tokens = [running[index] for index in going], [tokens[index] for index in going]
        if len(written[running[0]]) == most:
            break
        ids = torch.tensor(tokens, dtype=torch.long)[:, None]
        for number, stream in enumerate(streams):
            if before_pass:
                before_pass(number, running)
            streams[number] = reader.follow(stream, ids, torch.ones_like(ids))
    return written
