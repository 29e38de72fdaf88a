"""What people are told about answers that were cut off while the model was thinking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unprior.cli.console import warn

if TYPE_CHECKING:
    from unprior.scores import ScoreTable


def warn_about_cut_off(count: int, total: int) -> None:
    """Say how many answers end before their thinking does, if any, and what helps."""
    if count:
        warn(
            f"{count:,} of {total:,} answers were cut off while the model was thinking; they are not read and count as "
            f"wrong. Let it write more (--max-new-tokens), or switch its thinking off (an instruct version of the "
            f"model, or another chat template)"
        )


def count_cut_off(table: ScoreTable) -> int:
    """Rows of a table without an original answer because the model's thinking was cut off."""
    from unprior.engines.prompts import is_cut_off, thinks

    texts: list[str | None] = table.column("original_text")
    if not thinks(texts):
        return 0
    unread = (table.original < 0).tolist()
    return sum(
        text is not None and none and is_cut_off(text, thinking=True) for text, none in zip(texts, unread, strict=True)
    )
