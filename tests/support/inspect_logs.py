"""Reading logs with inspect_ai."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from inspect_ai.log import EvalLog, read_eval_log

Result = TypeVar("Result")


def apart(function: Callable[..., Result], *values: Any, **options: Any) -> Result:
    """What a function of inspect_ai gives in a thread of its own.

    Beside a running event loop, such as playwright's, it replaces `asyncio.run` by one that leaves its loops open, in
    the whole process. A new thread has no such loop.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *values, **options).result()


def read_log(path: Path | str, **options: Any) -> EvalLog:
    """A log as inspect_ai reads it."""
    return apart(read_eval_log, str(path), **options)
