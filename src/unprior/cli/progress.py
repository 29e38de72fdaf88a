"""How a long run shows where it stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unprior.cli.console import errors

if TYPE_CHECKING:
    from unprior.engines.scoring import Progress

_PLAIN_SECONDS = 10.0


@contextmanager
def progress(doing: str, done: str) -> Iterator[Callable[[Progress], None]]:
    """A bar with rate and time left in a terminal, a plain line now and then elsewhere."""
    if not errors.is_terminal:
        yield _plain_progress(done)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(), TextColumn("[red]{task.fields[failed]}"),
    )  # fmt: skip
    with Bar(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(doing, total=None, rate="", failed="")
        start = time.monotonic()

        def report(where: Progress) -> None:
            rate = (where.done - where.reused) / max(time.monotonic() - start, 1e-9)
            failed = f"{where.failed} failed" if where.failed else ""
            bar.update(
                task, description=where.doing or doing, completed=where.done, total=where.total,
                rate="" if where.doing else f"{rate:.1f}/s", failed=failed,
            )  # fmt: skip

        yield report


def _plain_progress(done: str) -> Callable[[Progress], None]:
    start = time.monotonic()
    said = [start]

    def report(where: Progress) -> None:
        if where.doing is not None:
            return
        now = time.monotonic()
        if now - said[0] >= _PLAIN_SECONDS:
            said[0] = now
            rate = (where.done - where.reused) / (now - start)
            left = f", {(where.total - where.done) / rate:,.0f} s left" if rate > 0 else ""
            failed = f", {where.failed} failed" if where.failed else ""
            errors.print(f"{done} {where.done:,} of {where.total:,} ({rate:.1f}/s{left}{failed})", soft_wrap=True)

    return report
