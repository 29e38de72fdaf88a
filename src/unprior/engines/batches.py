"""Batches whose faulty members do not affect the others: what fails together is done in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from unprior.engines.protocol import QueryFailure
from unprior.errors import UnpriorError

Item = TypeVar("Item")
Result = TypeVar("Result")


def work_in_parts(items: list[Item], work: Callable[[list[Item]], Sequence[Result]]) -> list[Result | QueryFailure]:
    """Do the work in one batch, or in ever smaller ones when memory runs out or one of them cannot be processed."""
    import torch

    if not items:
        return []
    try:
        return list(work(items))
    except (torch.OutOfMemoryError, MemoryError):
        failure = QueryFailure("out of memory, even alone")
    except UnpriorError as error:
        failure = QueryFailure.from_error(error)
    except Exception as error:  # whatever the model's own code says of one example must not end the run
        told = "out of memory, even alone" if _is_out_of_memory(error) else f"{type(error).__name__}: {error}"
        failure = QueryFailure(told)
    if len(items) == 1:
        return [failure]
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    middle = len(items) // 2
    return [*work_in_parts(items[:middle], work), *work_in_parts(items[middle:], work)]


def _is_out_of_memory(error: Exception) -> bool:
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
