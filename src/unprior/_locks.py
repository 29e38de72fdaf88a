"""Locks on files that go when the process does, however it ends, on Unix and on Windows."""

from __future__ import annotations

from typing import IO, Any

__all__ = ["fcntl", "lock_at_once"]

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_at_once(stream: IO[Any]) -> None:
    """Lock an open file for this process until it is closed.

    Raises BlockingIOError if another one has it, and OSError where files cannot be locked.
    """
    if fcntl is not None:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    stream.seek(0)
    try:
        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
    except PermissionError as error:  # so it says that somebody else has the byte
        raise BlockingIOError(error.errno, error.strerror) from None
