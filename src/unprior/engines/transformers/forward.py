"""Passes of a model: read prompts from the start, go on from their cache, and branch off as often as needed.

The only module that knows how transformers keeps its state. No architecture is named here: what a pass needs is made
by the model's own ``prepare_inputs_for_generation`` and its relatives, as ``generate`` does it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from unprior.engines.protocol import QueryRefusedError
from unprior.engines.transformers.cache_fork import CacheForks
from unprior.engines.transformers.vision_memory import VisionMemory

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against
Inputs: TypeAlias = Mapping[str, Any]
"""Arguments of a model's forward pass: token ids, mask, and those of images."""

POSITIONS = "position_ids"


@dataclass(frozen=True)
class Branch:
    """Prompts that the model has read, one a row."""

    cache: Any
    ids: Tensor
    """All tokens so far, padding included; shape (rows, tokens)."""
    per_token: dict[str, Tensor]
    """Inputs that have an entry for every token: mask, positions, kinds of tokens."""
    logits: Tensor
    """Logits after the last tokens that were read, float32; shape (rows, kept tokens, vocabulary)."""
    forks: CacheForks

    def rows(self, chosen: Tensor) -> Branch:
        """Choose rows, also several times, without disturbing this branch."""
        return Branch(
            self.forks.rows(self.cache, chosen),
            self.ids[chosen],
            {name: value.index_select(_row_axis(name, value), chosen) for name, value in self.per_token.items()},
            self.logits[chosen],
            self.forks,
        )


class Reader:
    """Feeds tokens to a model."""

    def __init__(self, model: Any) -> None:
        """Find out what the model takes."""
        self.model = model
        self.device = model.get_input_embeddings().weight.device
        self.forks = CacheForks()
        self.memory = VisionMemory(model)
        """Of the last image, for models that must read it several times."""
        self.per_token: frozenset[str] = frozenset({"attention_mask"})
        """Inputs that have an entry for every token."""
        taken = inspect.signature(model.forward).parameters
        self._takes_positions, self._keeps_logits = POSITIONS in taken, "logits_to_keep" in taken
        text = model.config.get_text_config()
        self._most_tokens: int | None = getattr(text, "max_position_embeddings", None)
        self._remembering_positions = [part for part in model.modules() if hasattr(part, "rope_deltas")]
        self.passes = 0
        """Forward passes so far, counted per row: a pass over a batch of eight counts eight."""
        self.longest = 0
        """Most tokens of a prompt and its continuation since this was set to 0."""
        self.encoded_images = 0
        """Images that went through the vision tower so far."""

    def read(self, inputs: Inputs, keep: int = 1, *, cached: bool = True) -> Branch:
        """Read prompts from the start: token ids, mask, and image inputs where there are images."""
        arguments = self.on_device(inputs)
        ids = arguments.pop("input_ids")
        self.forget_positions()
        if self._takes_positions:
            arguments[POSITIONS] = self.model._prepare_position_ids_for_generation(ids, arguments)
        per_token = {name: arguments.pop(name) for name in self._growing(arguments)}
        remembered = self.memory.runs
        output = self._run(ids, None, None, {**per_token, **arguments}, keep, cached=cached)
        if arguments and not (self.memory.active and self.memory.runs == remembered):
            self.encoded_images += len(ids)
        return Branch(output.past_key_values, ids, per_token, _last(output, keep), self.forks)

    def follow(self, branch: Branch, ids: Tensor, keep: int = 1, *, spend: bool = False) -> Branch:
        """Read more tokens after a branch, which stays as it is unless it may be spent.

        Rows have equally many tokens. A shorter one may be filled up at its end if nobody looks there and the result is
        not read on.
        """
        ids = ids.to(self.device)
        per_token = self._grown(branch.per_token, ids.shape[1])
        so_far = torch.cat([branch.ids, ids], dim=1)
        cache = branch.cache if spend else self.forks.fork(branch.cache)
        output = self._run(so_far, ids.shape[1], cache, per_token, keep)
        return Branch(output.past_key_values, so_far, per_token, _last(output, keep), self.forks)

    def with_tail(self, inputs: Inputs, ids: Tensor) -> dict[str, Any]:
        """Inputs of the same prompts with more text tokens at their ends."""
        per_token = {name: inputs[name] for name in self._growing(inputs)}
        grown = self._grown(per_token, ids.shape[1])
        return {**inputs, **grown, "input_ids": torch.cat([inputs["input_ids"], ids], dim=1)}

    def without_tail(self, inputs: Inputs, count: int) -> dict[str, Any]:
        """Inputs of the same prompts before their last tokens."""
        cut = {name: inputs[name][:, :-count] for name in ("input_ids", *self._growing(inputs))}
        return {**inputs, **cut}

    def learn_per_token(self, shorter: Inputs, longer: Inputs) -> None:
        """Find out which inputs have an entry for every token, from prompts of two lengths about one image."""
        lengths = [inputs["input_ids"].shape[1] for inputs in (shorter, longer)]
        self.per_token |= {
            name
            for name, value in shorter.items()
            if name != "input_ids"
            and isinstance(value, torch.Tensor)
            and value.ndim > 1
            and [inputs[name].shape[1] for inputs in (shorter, longer)] == lengths
        }

    def learn_forks(self, branch: Branch, ids: Tensor) -> None:
        """Find out how caches can be forked cheaply, by reading tokens after a branch; it is of no use afterwards."""

        def use(cache: Any) -> None:
            cache.reorder_cache(torch.arange(len(branch.ids), device=self.device))
            read = self.follow(replace(branch, cache=cache), ids, spend=True)
            self.follow(read, ids[:, :1], spend=True)

        with torch.inference_mode():
            self.forks.learn(branch.cache, use)

    def knows(self, token: int) -> bool:
        """Whether the vocabulary has a token of this number; stored settings may name others."""
        return 0 <= token < len(self.model.get_input_embeddings().weight)

    def room_behind(self, ids: Tensor) -> int:
        """Tokens that the model can read behind these."""
        return (self._most_tokens or sys.maxsize) - int(ids.shape[1])

    def forget_positions(self) -> None:
        """Some models remember an offset of positions from the last image they saw, also for a text without one."""
        for part in self._remembering_positions:
            part.rope_deltas = None

    def _run(
        self, ids: Tensor, new: int | None, cache: Any, arguments: Inputs, keep: int, *, cached: bool = True
    ) -> Any:
        """One pass; ``new`` tokens at the end are not in the cache yet, None: there is no cache."""
        self.passes += len(ids)
        self.longest = max(self.longest, ids.shape[1])
        if self._most_tokens is not None and ids.shape[1] > self._most_tokens:
            raise QueryRefusedError(
                f"the prompt with its answer has {ids.shape[1]:,} tokens or more, and the model takes "
                f"{self._most_tokens:,}; shorten the question or the options, or show a smaller image (resize)"
            )
        kept = {"logits_to_keep": keep} if self._keeps_logits else {}
        with torch.inference_mode():
            prepared = self.model.prepare_inputs_for_generation(
                ids, next_sequence_length=new, past_key_values=cache, is_first_iteration=new is None,
                use_cache=cached, **arguments, **kept,
            )  # fmt: skip
            return self.model(**prepared, return_dict=True)

    def on_device(self, inputs: Inputs) -> dict[str, Any]:
        """Inputs on the model's device, numbers in its precision."""
        dtype = self.model.dtype
        return {
            name: value.to(self.device, dtype if value.is_floating_point() else value.dtype)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in inputs.items()
        }

    def _growing(self, arguments: Inputs) -> list[str]:
        return [name for name in arguments if name in self.per_token or name == POSITIONS]

    def _grown(self, per_token: Mapping[str, Tensor], count: int) -> dict[str, Tensor]:
        """The inputs of more text tokens, as the model itself extends them; else their last column again."""
        grown = dict(per_token)
        for _ in range(count):
            grown = self.model._update_model_kwargs_for_generation({}, grown, is_encoder_decoder=False)
        for name, value in per_token.items():
            axis = -1 if name == POSITIONS else 1
            missing = value.shape[axis] + count - grown[name].shape[axis]
            if missing:
                last = value.narrow(axis, value.shape[axis] - 1, 1)
                grown[name] = torch.cat([grown[name], *[last] * missing], dim=axis)
        return grown


class Rereader:
    """Reads everything anew for every token: for models whose cache cannot be trusted, one prompt at a time."""

    def __init__(self, reader: Reader) -> None:
        """Read with another reader, but never go on from its cache."""
        self._reader = reader

    def read(self, inputs: Inputs) -> Branch:
        """Read a prompt from the start, and remember it whole."""
        return replace(self._reader.read(inputs, cached=False), cache=dict(inputs))

    def follow(self, branch: Branch, ids: Tensor) -> Branch:
        """Read the prompt again, with more tokens."""
        return self.read(self._reader.with_tail(branch.cache, ids))


TokenReader: TypeAlias = Reader | Rereader


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
        chosen = torch.tensor([row for row, _, _ in tails], device=branch.ids.device)
        ids, _ = pad_right([tokens[:-1] for _, _, tokens in tails], 0)
        read = reader.follow(branch.rows(chosen), ids, keep=ids.shape[1], spend=True)
        after = torch.log_softmax(read.logits, dim=-1)
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
    rows = len(streams[0].ids)
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
            streams = [stream.rows(torch.tensor(going, device=stream.ids.device)) for stream in streams]
            running, tokens = [running[index] for index in going], [tokens[index] for index in going]
        if len(written[running[0]]) == most:
            break
        ids = torch.tensor(tokens, dtype=torch.long)[:, None]
        for number, stream in enumerate(streams):
            if before_pass:
                before_pass(number, running)
            streams[number] = reader.follow(stream, ids)
    return written


def _row_axis(name: str, value: Tensor) -> int:
    """Where rows are counted; positions may have further dimensions before them."""
    return value.ndim - 2 if name == POSITIONS else 0


def _last(output: Any, keep: int) -> Tensor:
    return output.logits[:, -keep:].float()
