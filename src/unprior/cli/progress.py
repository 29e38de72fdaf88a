"""How a long run shows where it stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unprior.cli.console import errors

if TYPE_CHECKING:
    from unprior.scoring.run import Progress

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
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), TextColumn("{task.fields[failed]}", style="red"),
    )  # fmt: skip
    with Bar(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(doing, total=None, rate="", failed="")
        rate_of = _Rate()

        def report(where: Progress) -> None:
            rate = rate_of(where)
            failed = f"{where.failed} failed" if where.failed else ""
            bar.update(
                task, description=where.doing or doing, completed=where.done, total=where.total,
                rate="" if where.doing else f"{rate:.1f}/s", failed=failed,
            )  # fmt: skip

        yield report


class _Rate:
    """How many are done per second, without what was stored before and without the time it took to start."""

    def __init__(self) -> None:
        self._begun, self._first = time.monotonic(), 0

    def __call__(self, where: Progress) -> float:
        now, fresh = time.monotonic(), where.done - where.reused
        rate = (fresh - self._first) / max(now - self._begun, 1e-9)
        if self._first == 0 and fresh > 0:
            self._begun, self._first = now, fresh
        return rate


def _plain_progress(done: str) -> Callable[[Progress], None]:
    rate_of = _Rate()
    said = [time.monotonic()]

    def report(where: Progress) -> None:
        if where.doing is not None:
            return
        now, rate = time.monotonic(), rate_of(where)
        if now - said[0] >= _PLAIN_SECONDS:
            said[0] = now
            left = f", {(where.total - where.done) / rate:,.0f} s left" if rate > 0 else ""
            failed = f", {where.failed} failed" if where.failed else ""
            errors.print(f"{done} {where.done:,} of {where.total:,} ({rate:.1f}/s{left}{failed})", soft_wrap=True)

    return report
