"""Records as data frames; pandas is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unprior.errors import UnpriorError

if TYPE_CHECKING:
    import pandas as pd


def to_pandas(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per record.

    >>> to_pandas([{"task": "mc", "delta_cf": 0.078}]).columns.tolist()
    ['task', 'delta_cf']
    """
    try:
        import pandas as pd
    except ImportError:
        raise UnpriorError("data frames need pandas; install it with: pip install 'unprior[pandas]'") from None
    return pd.DataFrame.from_records([dict(record) for record in records])
