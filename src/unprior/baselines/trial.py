"""A dry run: a method answers one small question before it is accepted for a model."""

from __future__ import annotations

import numpy as np
from PIL import Image

from unprior.baselines.decoding import Question, decode_freely, view_inputs
from unprior.baselines.method import IMAGE, Method
from unprior.baselines.plain import Plain
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.load_errors import told
from unprior.errors import UnpriorError

_TOKENS = 3
_SIDE = 64


def try_method(engine: TransformersEngine, method: Method, written: dict[str, list[int]] | None = None) -> None:
    """Let a method and its matched reference answer a question about noise; refuse a model on which they cannot.

    ``written`` keeps what the model itself writes after a text, for the next method.
    """
    pixels = np.random.default_rng(0).integers(0, 256, (_SIDE, _SIDE, 3), dtype=np.uint8)
    text = method.layout(engine.layout).user_text("How many stripes are there?", ("A", "B"), ("two", "three"))
    question = Question(Image.fromarray(pixels), text, "dry run")
    try:
        method.check(engine, view_inputs(engine, IMAGE, [question]))
        decode_freely(engine, method, question, _TOKENS)
        matched = method.matched()
        if matched is not None:
            written = {} if written is None else written
            if text not in written:
                written[text] = decode_freely(engine, Plain(), question, _TOKENS)
            if decode_freely(engine, matched, question, _TOKENS) != written[text]:
                raise UnpriorError("with its correction switched off it does not write what the model writes")
    except Exception as error:  # a model's own code may raise anything
        raise UnpriorError(f"{method.label} cannot run on {engine.model_type}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Why something failed: what this package says whole, of other errors the first line."""
    return str(error) if isinstance(error, UnpriorError) else told(error)
