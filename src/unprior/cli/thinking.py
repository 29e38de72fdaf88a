"""Counts answers that were cut off while the model was thinking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from unprior.scores import ScoreTable


def warn_about_cut_off(count: int, total: int) -> None:
    """Say how many answers end before their thinking does, if any, and what helps."""
    if count:
        from unprior.scoring.rows import warn_about_cut_off

        warn_about_cut_off(count, total)


def count_cut_off(table: ScoreTable) -> tuple[int, int]:
    """Rows whose text ends before the model's thinking does: without an original answer, and with one all the same."""
    from unprior.prompts import is_cut_off, thinks

    if table.arrow.column("original_text").null_count == len(table):
        return 0, 0
    unread = read = 0
    model, names = table.codes("model")
    for code in range(len(names)):  # one answer tells how all others of its model are to be read
        rows = np.flatnonzero(model == code)
        texts: list[str | None] = table.arrow.column("original_text").take(rows).to_pylist()
        if thinks(texts):
            cut = np.array([text is not None and is_cut_off(text, thinking=True) for text in texts])
            none = table.original_positions[rows] < 0
            unread += int((cut & none).sum())
            read += int((cut & ~none).sum())
    return unread, read
