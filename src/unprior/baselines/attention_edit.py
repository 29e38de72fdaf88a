"""PAI's edit of a model: while a context lasts, the last token attends more to the image.

The decoder's attention runs as it always does, through transformers' attention interface; then the last query row is
computed once more with scores a + weight·|a| at the image tokens. Other rows, the vision tower and the weights of the
model stay as they are.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from unprior.baselines.decoder import find_decoder
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError

Tensor: TypeAlias = Any  # torch.Tensor; torch is too large to type-check against

FIRST_LAYER = 2
_EDITABLE = ("sdpa", "eager")
_OTHER_FORMULAS = {"softcap": "soft-capped scores", "s_aux": "attention sinks", "position_bias": "a position bias"}
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
    modules = _attention_modules(decoder)
    implementation = _implementation(decoder, modules)
    depth = len(decoder.layers)
    edit = AttentionEdit(weight, range(first_layer, depth if last_layer is None else last_layer + 1))
    if not edit.layers or edit.layers[0] < 0 or edit.layers[-1] >= depth:
        raise UnpriorError(
            f"the attention edit covers layers {first_layer} to {edit.layers.stop - 1}, but the decoder has layers "
            f"0 to {depth - 1}; choose other layers or a deeper model"
        )
    own = {module: _own_attention(module, implementation) for module in modules}

    def attention(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any) -> Any:
        # A vision tower may share the decoder's configuration, and with it this function; it is never edited.
        plain = own.get(module) or _own_attention(module, implementation)
        output, weights = plain(module, query, key, value, mask, **options)
        if edit.columns is None or module not in own or module.layer_idx not in edit.layers:
            return output, weights
        _refuse_other_formulas(options)
        scaling = options.get("scaling")
        queries, tokens = query.shape[2], key.shape[2]
        # A pass that reads everything anew holds the tokens written so far, which were last ones in their time.
        edited = queries if queries < tokens else tokens - edit.columns.shape[1] + 1
        rows, lasts = [], []
        for place in range(queries - edited, queries):
            row, last = attend(
                query[:, :, place],
                key,
                value,
                scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
                mask=_visible(mask, place, queries, tokens),
                columns=edit.columns,
                weight=edit.weight,
            )
            rows.append(row.to(output.dtype))
            lasts.append(last)
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


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scaling: float,
    mask: Tensor | None,
    columns: Tensor,
    weight: float,
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
    image = torch.nn.functional.pad(columns.to(scores.device), (0, tokens - columns.shape[1]))[:, None]
    scores = torch.where(image, scores + weight * scores.abs(), scores)
    if mask is not None:
        mask = mask.to(scores.device)
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.float()
    weights = torch.softmax(scores, dim=-1)
    output = torch.einsum("bkgt,bktd->bkgd", weights.reshape(rows, shared, heads // shared, tokens), value.float())
    return output.reshape(rows, heads, -1), weights


def image_columns(model: Any, input_ids: Tensor) -> Tensor:
    """Which tokens of prompts stand for the image; ``model`` is an engine or a transformers model."""
    engine = model if isinstance(model, TransformersEngine) else None
    config = (model if engine is None else engine.model).config
    token = getattr(config, "image_token_id", None)
    if token is None:
        token = getattr(config, "image_token_index", None)
    if token is None and engine is not None:
        token = engine.encoder.placeholder
    if token is None:
        raise UnpriorError(
            f"the image tokens of {config.model_type} are unknown: its configuration has neither image_token_id nor "
            f"image_token_index, and its processor no image_token"
        )
    return input_ids == token


def _attention_modules(decoder: Any) -> list[Any]:
    """The attention of every layer; a layer without one that can be edited is refused."""
    name = type(decoder).__name__
    if not getattr(decoder, "_supports_attention_backend", False):
        raise UnpriorError(
            f"the attention of {name} cannot be edited: it does not go through transformers' attention interface "
            f"(_supports_attention_backend is not set)"
        )
    modules = []
    for number, layer in enumerate(decoder.layers):
        found = [part for part in layer.modules() if _is_attention(part)]
        if not found:
            raise UnpriorError(
                f"the attention of {name} cannot be edited: layer {number} has no attention module with layer_idx and "
                f"config that goes through transformers' attention interface"
            )
        modules += found
    return modules


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


def _refuse_other_formulas(options: dict[str, Any]) -> None:
    for name, meaning in _OTHER_FORMULAS.items():
        if options.get(name) is not None:
            raise UnpriorError(f"the attention edit does not know {meaning} ({name}); it would compute something else")


def _visible(mask: Tensor | None, place: int, queries: int, tokens: int) -> Tensor | None:
    """What the query at a place may see; shape (rows, heads or 1, tokens)."""
    if mask is not None:
        return mask[:, :, place, :tokens]
    if queries == 1:
        return None  # nothing is hidden from a single token after its cache
    # Without a mask sdpa aligns queries with the first keys: all of them, or those of an empty cache of fixed size.
    return (torch.arange(tokens) <= place)[None, None]
