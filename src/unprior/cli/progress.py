"""How long work shows where it stands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unprior.cli.console import errors
from unprior.progress import Progress, Report

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.status import Status

_PLAIN_SECONDS = 10.0
_SCORING = "Scoring"
_DONE = {_SCORING: "scored", "Answering": "answered"}  # what plain lines tell of


@contextmanager
def reporting() -> Iterator[Report]:
    """A spinner or a bar with rate and time left in a terminal, a plain line now and then elsewhere."""
    doing = ""

    def report(where: Progress) -> None:
        nonlocal doing
        doing = where.doing
        shown(where)

    shown = _Terminal() if errors.is_terminal else _Plain()
    try:
        yield report
    except KeyboardInterrupt:
        shown.stop()
        if doing.startswith(_SCORING):
            errors.print("Stopped. What was scored is stored; the same command goes on from there.", soft_wrap=True)
        raise
    finally:
        shown.stop()


class _Terminal:
    """Shows one piece of work at a time, and nothing when it is over."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._bar: Bar | None = None
        self._doing, self._rate = "", _Rate()

    def __call__(self, where: Progress) -> None:
        if where.doing != self._doing or (where.total and self._status is not None):
            self.stop()
            self._doing, self._rate = where.doing, _Rate()
        if where.total:
            self._show_bar(where)
        elif self._status is None:
            self._status = errors.status(f"{where.doing} …")
            self._status.start()

    def _show_bar(self, where: Progress) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
                TextColumn("{task.fields[failed]}", style="red"),
            )  # fmt: skip
            self._bar = Bar(*columns, console=errors, transient=True)
            self._bar.start()
            self._bar.add_task(where.doing, total=None, rate="", failed="")
        failed = f"{where.failed} failed" if where.failed else ""
        rate = f"{self._rate(where):.1f}/s" if _done(where) else ""
        self._bar.update(self._bar.task_ids[0], completed=where.done, total=where.total, rate=rate, failed=failed)

    def stop(self) -> None:
        """Leave the terminal as it was."""
        for shown in (self._status, self._bar):
            if shown is not None:
                shown.stop()
        self._status = self._bar = None
        self._doing = ""


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


class _Plain:
    """A line now and then about work that takes long."""

    def __init__(self) -> None:
        self._doing, self._rate, self._said = "", _Rate(), time.monotonic()

    def __call__(self, where: Progress) -> None:
        done = _done(where)
        if done is None:
            return
        if where.doing != self._doing:
            self._doing, self._rate = where.doing, _Rate()
        now, rate = time.monotonic(), self._rate(where)
        if now - self._said >= _PLAIN_SECONDS:
            self._said = now
            left = f", {(where.total - where.done) / rate:,.0f} s left" if rate > 0 else ""
            failed = f", {where.failed} failed" if where.failed else ""
            errors.print(f"{done} {where.done:,} of {where.total:,} ({rate:.1f}/s{left}{failed})", soft_wrap=True)

    def stop(self) -> None:
        """Lines stay where they are."""


def _done(where: Progress) -> str | None:
    """The word for what is done, of work whose examples are counted."""
    return next((word for doing, word in _DONE.items() if where.doing.startswith(doing)), None)
