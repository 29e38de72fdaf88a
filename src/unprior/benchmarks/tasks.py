"""Questions with options, open questions, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from unprior.errors import UnpriorError, did_you_mean, format_option

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

TASKS = ("closed", "open", "both")
OPEN_VARIANT = "open"
"""The variant of a benchmark that asks its questions without options."""


def check_task(task: object) -> None:
    """Refuse what is no kind of questions.

    >>> check_task("opened")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: task='opened' (command line: --task opened): choose closed, open or both (did you ...
    """
    if task is not None and task not in TASKS:
        like = did_you_mean(str(task), TASKS)
        raise UnpriorError(f"{format_option('task', task)}: choose closed, open or both{like}")


def of_task(benchmark: Benchmark, task: str | None, asked_openly: Callable[[], Benchmark]) -> Benchmark:
    """The questions of a benchmark that are of some kind; None takes all that it has.

    Parameters
    ----------
    benchmark
        The questions.
    task
        ``closed`` (with options, or answered by yes or no), ``open``, or ``both``.
    asked_openly
        Gives the same questions without options, for a benchmark that has no open ones.
    """
    check_task(task)
    if task is None:
        return benchmark
    closed = [example for example in benchmark if not example.is_open]
    chosen = closed if task != "open" else []
    if task != "closed":
        own = [example for example in benchmark if example.is_open]
        chosen = [*chosen, *(own or asked_openly())]
    if not chosen or (task == "both" and not closed):
        raise UnpriorError(
            f"{format_option('task', task)}: {benchmark.name} has no questions with options; leave the option "
            f"out, or choose open"
        )
    return benchmark.with_examples(chosen)
