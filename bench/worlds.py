"""Worlds of the microworld as one population."""

from __future__ import annotations

from collections.abc import Sequence

from unprior import ScoreTable
from unprior.scores.table import concatenate


def pool_worlds(tables: Sequence[ScoreTable]) -> ScoreTable:
    """Worlds as one table, with pair ids of their own."""
    return concatenate(
        [
            table.with_column("pair_id", [1000 * place + int(pair) for pair in table.column("pair_id")])
            for place, table in enumerate(tables)
        ]
    )
