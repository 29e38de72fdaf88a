"""A spinner whose text is never taken for markup."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.status import Status
from rich.text import Text


class PlainStatus(Status):
    """A spinner with a text beside it; rich's own takes a string for markup, on whatever console."""

    def __init__(self, status: RenderableType, **options: Any) -> None:
        """Show the text as it is."""
        super().__init__(_as_text(status), **options)

    def update(self, status: RenderableType | None = None, **options: Any) -> None:
        """Show another text."""
        super().update(None if status is None else _as_text(status), **options)


def _as_text(status: RenderableType) -> RenderableType:
    return Text(status) if isinstance(status, str) else status
