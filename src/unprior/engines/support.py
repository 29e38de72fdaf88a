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
_FASTEST = "shared in batches"
_COLUMNS = ("Architecture", "Exact", "Images", "Window", "bfloat16", "Thinking", "Methods", "vLLM", "Needs", "Example")


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


def support_table(*, short: bool = False) -> Table:
    """All architectures as a table; ``short`` for a narrow terminal."""
    columns = ("Architecture", "Exact", "Images", "Methods", "vLLM", "Needs") if short else _COLUMNS
    places = [_COLUMNS.index(column) for column in columns]
    usual = f"yes, {_FASTEST}"
    rows = [[cells[place] for place in places] for cells in map(_row, known_architectures())]
    if short:
        rows = [["yes" if cell == usual else cell for cell in row] for row in rows]
    caption = (
        "Small random models of each architecture, in float32, against whole passes without a cache (within 1e-4). "
        "bfloat16: difference from the model's own generate() in half precision, in nats. "
        "Images: how often an image is encoded for an example. Methods: VCD, MFCD, PAI, REVIS, NoLan, Focus on Vision. "
        "vLLM: scores of a real server against transformers. Other architectures are tried in the same way when they "
        "are loaded, and refused if no way to their scores is exact."
    )
    return Table.plain("Architectures", columns, rows, caption, text_columns=len(columns))


def _row(support: Support) -> tuple[str, ...]:
    if support.refused:
        return (support.name, f"no: {support.refused}", "–", "–", "–", "–", "–", "–", "–", support.example)
    left_out = [name for name, reason in (support.methods or {}).items() if reason]
    return (
        support.name,
        f"yes, {support.level}",
        str(support.encodings),
        "–" if support.window is None else str(support.window),
        "–" if support.half is None else f"{support.half:.3f}",
        support.thinking or "–",
        f"all but {', '.join(left_out)}" if left_out else "all",
        support.vllm or "–",
        ", ".join(support.needs) or "–",
        support.example,
    )
