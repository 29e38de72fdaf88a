"""What to say when a table lacks what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unprior.errors import did_you_mean


def no_such_row(found: Sequence[Any], values: Mapping[str, Any], name: str) -> str:
    """Why no row has these values: what the named column holds instead.

    >>> no_such_row(["dev", "dev"], {"split": "test"}, "split")[:64]
    "no row has split 'test'; in this table split is one of: dev. For"
    """
    wanted = " and ".join(f"{key} {value!r}" for key, value in values.items() if value is not None)
    known = sorted({str(entry) for entry in found if entry is not None})
    shown = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    like = did_you_mean(str(values[name]), known)
    has = f"{name} is one of: {shown}{like}" if known else f"{name} is not set in any row"
    everything = " For all rows: split=None (command line: --split all)." if name == "split" else ""
    return f"no row has {wanted}; in this table {has}.{everything}"
