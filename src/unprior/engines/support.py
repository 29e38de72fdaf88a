"""Which architectures are known to work, and how: measured on small random models by `make support`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from unprior._files import parse_json
from unprior.tables.model import Table

FILE = "support.json"
_NOTHING = "–"
_FIRST = ("Exact", "Images", "Window", "bfloat16", "Thinking")
_LAST = ("vLLM", "Needs", "Example")
CAPTION = (
    "Small random models of each architecture, in float32, against whole passes without a cache (within 1e-4). "
    "Images: how often an image is encoded for an example. Window: tokens of the sliding window that was exceeded. "
    "bfloat16: difference from the model's own generate() in half precision, in nats. Thinking: how the chat template "
    "is kept from it. Methods: whether they run. vLLM: scores of a real server against transformers. Needs: packages "
    "beside transformers. Other architectures are tried in the same way when they are loaded, and refused if no way to "
    "their scores is exact."
)


@dataclass(frozen=True, slots=True)
class Support:
    """What was measured of one architecture."""

    name: str
    """As a model's configuration calls it."""
    example: str
    """The smallest public model of that kind that we know of."""
    needs: tuple[str, ...] = ()
    """Packages that its processor needs beside transformers."""
    refused: str = ""
    """Why it cannot be scored; empty if it can."""
    level: str = ""
    """The fastest way to its scores that agrees with its own ``generate``."""
    encodings: int = 0
    """How often an image is encoded for an example."""
    window: int | None = None
    """Tokens of the sliding window that was exceeded, where it has one."""
    thinking: str = ""
    """How its chat template is kept from thinking; empty if it does not."""
    half: float | None = None
    """Largest difference in nats between that way and ``generate`` in bfloat16."""
    methods: Mapping[str, str | None] | None = None
    """For every other method None if it runs, and otherwise the reason."""
    vllm: str = ""
    """What was measured behind a real vLLM; empty if nothing was."""


@cache
def known_architectures() -> tuple[Support, ...]:
    """All architectures that were tried, in the order of their names.

    >>> [each.name for each in known_architectures()][:2]
    ['aya_vision', 'blip-2']
    """
    stored: list[dict[str, Any]] = parse_json((files("unprior.engines") / FILE).read_bytes())
    return tuple(Support(**each | {"needs": tuple(each["needs"])}) for each in stored)


def describe_support(support: Support, *, reasons: bool = False) -> dict[str, str]:
    """What is known of an architecture in words, by column; the methods have one each, with ``reasons`` if wanted.

    >>> mllama = next(each for each in known_architectures() if each.name == "mllama")
    >>> found = describe_support(mllama)
    >>> found["Exact"], found["bfloat16"], found["vcd"], found["pai"]
    ('yes, shared in batches', '0.046', 'yes', 'no')
    """
    if support.refused:
        return {"Exact": f"no: {support.refused}", "Example": support.example}
    methods = {
        name: "yes" if reason is None else f"no: {reason}" if reasons else "no"
        for name, reason in (support.methods or {}).items()
    }
    half = _NOTHING if support.half is None else f"{support.half:#.2g}"
    window = _NOTHING if support.window is None else str(support.window)
    first = (f"yes, {support.level}", str(support.encodings), window, half, support.thinking or _NOTHING)
    last = (support.vllm or _NOTHING, ", ".join(support.needs) or _NOTHING, support.example)
    return dict(zip(_FIRST, first, strict=True)) | methods | dict(zip(_LAST, last, strict=True))


def support_table() -> Table:
    """All architectures as a table, with a column for every method."""
    described = [(each.name, describe_support(each)) for each in known_architectures()]
    methods = next(each.methods for each in known_architectures() if each.methods)
    columns = ("Architecture", *_FIRST, *methods, *_LAST)
    rows = [(name, *(cells.get(column, _NOTHING) for column in columns[1:])) for name, cells in described]
    return Table.plain("Architectures", columns, rows, CAPTION, text_columns=len(columns))
