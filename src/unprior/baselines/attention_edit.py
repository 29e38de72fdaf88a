"""PAI's edit of a model: while a context lasts, the last token attends more to the image.

The decoder's attention runs as it always does, through transformers' attention interface; then the last query row is
computed once more with scores a + weight·|a| at the image tokens. Other rows, the vision tower and the weights of the
model stay as they are.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from PIL import Image
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from unprior.baselines.decoder import find_decoder
from unprior.baselines.decoding import image_tokens
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against

FIRST_LAYER = 2
_EDITABLE = ("sdpa", "eager")
_CROSS = {"cross_attention_states", "encoder_hidden_states", "key_value_states"}
"""Arguments of attention to something other than the text."""
_names = (f"unprior_image_attention_{number}" for number in itertools.count())


@dataclass(slots=True, eq=False)
class AttentionEdit:
    """What is edited while the context is open."""

    weight: float
    """How much the scores of image tokens grow, relative to their size."""
    layers: range
    """Edited decoder layers, counted from 0."""
    columns: Tensor | None = None
    """True at the image tokens of the prompts in the next pass, shape (rows, prompt tokens); what was written after the
    prompt is no image. None: nothing is edited, as in a pass without an image."""
    total: int | None = None
    """Tokens of a row up to the end of the next pass, for layers that keep only the last ones; None: all are kept."""
    edited: int = 0
    """Rows of attention that were computed anew, in all layers; none of a model whose attention goes another way."""


@contextmanager
def edited_attention(
    model: Any, *, weight: float, first_layer: int = FIRST_LAYER, last_layer: int | None = None
) -> Iterator[AttentionEdit]:
    """Edit the attention of a model's last token to its image, in all heads; everything is undone at the end.

    Set ``columns`` of what the context gives before each pass. The last token is the last column of a pass, so prompts
    must be padded on the left.

    Parameters
    ----------
    model
        A transformers model whose decoder goes through the library's attention interface, with ``sdpa`` or ``eager``.
    weight
        Scores at the image tokens become a + weight·\\|a\\| before the softmax.
    first_layer, last_layer
        Edited decoder layers, both included, counted from 0; by default from 2 to the last.
    """
    decoder = find_decoder(model)
    depth = len(decoder.layers)
    edit = AttentionEdit(weight, range(first_layer, depth if last_layer is None else last_layer + 1))
    if not edit.layers or edit.layers[0] < 0 or edit.layers[-1] >= depth:
        raise UnpriorError(
            f"the attention edit covers layers {first_layer} to {edit.layers.stop - 1}, but the decoder has layers "
            f"0 to {depth - 1}; choose other layers or a deeper model"
        )
    modules = _attention_modules(decoder, edit.layers)
    implementation = _implementation(decoder, modules)
    own = {module: _own_attention(module, implementation) for module in modules}

    def attention(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any) -> Any:
        # A vision tower may share the decoder's configuration, and with it this function; it is never edited.
        plain = own.get(module) or _own_attention(module, implementation)
        output, weights = plain(module, query, key, value, mask, **options)
        if edit.columns is None or module not in own:
            return output, weights
        formula = _formula(options, implementation)
        scaling = options.get("scaling")
        queries, tokens = query.shape[2], key.shape[2]
        columns, edited = _seen(edit.columns, edit.total, queries, tokens)
        rows, lasts = [], []
        for place in range(queries - edited, queries):
            row, last = attend(
                query[:, :, place],
                key,
                value,
                scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
                mask=_visible(mask, place, queries, tokens),
                columns=columns,
                weight=edit.weight,
                **formula,
            )
            rows.append(row.to(output.dtype))
            lasts.append(last)
        edit.edited += edited
        output = torch.cat([output[:, :-edited], torch.stack(rows, dim=1)], dim=1)
        if weights is not None:
            weights = torch.cat([weights[:, :, :-edited], torch.stack(lasts, dim=2).to(weights.dtype)], dim=2)
        return output, weights

    configs = {id(part.config): part.config for part in (decoder, *modules)}.values()
    name = next(_names)
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[implementation])
    try:
        for config in configs:  # not the public setter: that one would reach into a vision configuration below
            config._attn_implementation_internal = name
        yield edit
    finally:
        for config in configs:
            config._attn_implementation_internal = implementation
        del AttentionInterface._global_mapping[name], AttentionMaskInterface._global_mapping[name]


def check_edit(engine: TransformersEngine, inputs: dict[str, Any], first_layer: int = FIRST_LAYER) -> None:
    """Refuse a model whose attention is not edited, or that scores differently when nothing is added to it.

    ``inputs`` are those of a prompt with its image.
    """
    plain = engine.reader.read(inputs).logits[0, -1].log_softmax(dim=-1)
    with edited_attention(engine.model, weight=0.0, first_layer=first_layer) as edit:
        edit.columns = image_columns(engine, inputs["input_ids"])
        same = engine.reader.read(inputs).logits[0, -1].log_softmax(dim=-1)
    if not edit.edited:
        raise UnpriorError("its attention does not go through transformers' attention interface, so nothing is edited")
    probable = plain.topk(min(10, len(plain))).indices
    difference = float((plain - same)[probable].abs().max())
    if not difference <= engine.tolerance:
        raise UnpriorError(
            f"its attention has another formula: computed anew, with nothing added, it moves scores by "
            f"{difference:.2g} nats"
        )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scaling: float,
    mask: Tensor | None,
    columns: Tensor,
    weight: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of one query per row with edited scores, in float32.

    Parameters
    ----------
    query
        Shape (rows, heads, size).
    key, value
        Shape (rows, key-value heads, tokens, size); each serves as many heads as there are for it.
    mask
        Added to the scores, or True where a token may be seen; shape (rows, heads or 1, tokens).
    columns
        True at image tokens; shape (rows, at most tokens).
    softcap
        Scores are bent to stay below this size, c·tanh(a/c), before they are edited.
    sinks
        A score for every head that takes its share of the softmax and gives nothing; shape (heads).

    Returns
    -------
    tuple
        The output (rows, heads, size) and the attention weights (rows, heads, tokens).
    """
    rows, heads, _ = query.shape
    shared, tokens = key.shape[1:3]
    if columns.shape[0] != rows or columns.shape[1] > tokens:
        raise UnpriorError(
            f"image columns of {columns.shape[0]} prompts with {columns.shape[1]} tokens do not fit a pass over {rows} "
            f"rows with {tokens} tokens; set them before each pass"
        )
    grouped = query.float().reshape(rows, shared, heads // shared, -1)
    scores = torch.einsum("bkgd,bktd->bkgt", grouped, key.float()).reshape(rows, heads, tokens) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    image = torch.nn.functional.pad(columns.to(scores.device), (0, tokens - columns.shape[1]))[:, None]
    scores = torch.where(image, scores + weight * scores.abs(), scores)
    if mask is not None:
        mask = mask.to(scores.device)
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.float()
    if sinks is not None:
        scores = torch.cat([scores, sinks.float().to(scores.device)[None, :, None].expand(rows, -1, 1)], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., :tokens]
    output = torch.einsum("bkgt,bktd->bkgd", weights.reshape(rows, shared, heads // shared, tokens), value.float())
    return output.reshape(rows, heads, -1), weights


def image_columns(engine: TransformersEngine, input_ids: Tensor) -> Tensor:
    """Which tokens of prompts with an image stand for it."""
    for token in image_tokens(engine):
        if (input_ids == token).any():
            return input_ids == token
    return input_ids == _token_of_images(engine)


def _token_of_images(engine: TransformersEngine) -> int:
    """The most frequent of the tokens by which a prompt with an image is longer than the same without one."""
    query = Query(Image.new("RGB", (64, 64)), "?", ())
    with_image, plain = (
        engine.original_inputs([engine.encoder.encode(each)])["input_ids"][0].tolist()
        for each in (query, replace(query, image=None))
    )
    more: Counter[int] = Counter(with_image) - Counter(plain)
    if not more:
        raise UnpriorError(f"no token of {engine.model_type} stands for the image: prompts are alike with and without")
    return more.most_common(1)[0][0]


def _seen(columns: Tensor, total: int | None, queries: int, tokens: int) -> tuple[Tensor, int]:
    """Image columns among the tokens that a layer still holds, and how many queries at the end are edited."""
    # A pass that reads everything anew holds the tokens written so far, which were last ones in their time.
    from_start = queries == (tokens if total is None else total)
    if total is None:
        total = max(tokens, columns.shape[1])
    return columns[:, max(0, total - tokens) :], total - columns.shape[1] + 1 if from_start else queries


def _attention_modules(decoder: Any, layers: range) -> list[Any]:
    """Self-attention of the layers, where they have it: others are recurrent, or convolutions."""
    name = type(decoder).__name__
    every = [[part for part in layer.modules() if _is_attention(part)] for layer in decoder.layers]
    if any(not _CROSS.isdisjoint(inspect.signature(part.forward).parameters) for layer in every for part in layer):
        raise UnpriorError(
            f"{name} sees its image by cross-attention, where no text competes with it; there is no attention that "
            f"could be moved from the text to the image"
        )
    found = [part for number in layers for part in every[number]]
    if not found:
        raise UnpriorError(
            f"the attention of {name} cannot be edited: layers {layers[0]} to {layers[-1]} have no self-attention that "
            f"goes through transformers' attention interface"
        )
    return found


def _is_attention(module: Any) -> bool:
    named = "Attention" in type(module).__name__ and hasattr(module, "layer_idx") and hasattr(module, "config")
    return named and hasattr(_source(module), "ALL_ATTENTION_FUNCTIONS")


def _implementation(decoder: Any, modules: list[Any]) -> str:
    used = {str(part.config._attn_implementation) for part in (decoder, *modules)}
    if len(used) > 1 or not used <= set(_EDITABLE):
        raise UnpriorError(
            f"attention can be edited with the implementations {' and '.join(_EDITABLE)}, the model uses "
            f"{', '.join(sorted(used))}; load it with attention='sdpa'"
        )
    return used.pop()


def _own_attention(module: Any, implementation: str) -> Callable[..., Any]:
    """The function that the module itself would call."""
    source = _source(module)
    eager = getattr(source, "eager_attention_forward", None)
    if implementation == "eager" and eager is None:
        raise UnpriorError(f"{source.__name__} has no eager_attention_forward; load the model with attention='sdpa'")
    interface = getattr(source, "ALL_ATTENTION_FUNCTIONS", ALL_ATTENTION_FUNCTIONS)
    function: Callable[..., Any] = interface.get_interface(implementation, eager)
    return function


def _source(module: Any) -> Any:
    """The Python module where the forward pass of a part is written."""
    return sys.modules[next(kind for kind in type(module).__mro__ if "forward" in vars(kind)).__module__]


def _formula(options: dict[str, Any], implementation: str) -> dict[str, Any]:
    """What else enters the scores; the library's sdpa knows none of it."""
    softcap, sinks = options.get("softcap"), options.get("s_aux")
    for name, unknown in (("s_aux", sinks is not None and implementation != "eager"),
                          ("position_bias", options.get("position_bias") is not None)):  # fmt: skip
        if unknown:
            raise UnpriorError(f"the attention edit does not know {name} here; it would compute something else")
    return {"softcap": softcap, "sinks": sinks}


def _visible(mask: Tensor | None, place: int, queries: int, tokens: int) -> Tensor | None:
    """What the query at a place may see; shape (rows, heads or 1, tokens)."""
    if mask is not None:
        return mask[:, :, place, :tokens]
    if queries == 1:
        return None  # nothing is hidden from a single token after its cache
    # Without a mask sdpa aligns queries with the first keys: all of them, or those of an empty cache of fixed size.
    return (torch.arange(tokens) <= place)[None, None]
