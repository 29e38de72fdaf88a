"""Targets with one fault each, to see that a hunt finds it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from fuzz.case import Case, DifferentResultError
from unprior import UnpriorError

LARGE = 600 << 20
Target = Callable[[Case], bool]


def _only_in_case_3(fault: Callable[[Case], object]) -> Callable[[Path], Target]:
    def make(folder: Path) -> Target:
        def run(case: Case) -> bool:
            case.note(f"case {case.index}")
            case.write("input.bin", case.random.randbytes(8))
            if case.index == 3:
                fault(case)
            if case.index == 4:
                raise UnpriorError("this input is not accepted; choose another")
            return case.index != 5

        return run

    return make


def _raise(case: Case) -> None:
    raise KeyError("scores")


def _differ(case: Case) -> None:
    raise DifferentResultError(f"the sum is wrong: {case.random.random()}")


def _work_forever(case: Case) -> None:
    while True:
        case.random.random()


def _hold(case: Case) -> None:
    kept = bytearray(LARGE)
    kept[:: 1 << 10] = b"x" * len(kept[:: 1 << 10])
    time.sleep(1000)


def _hold_for_a_moment(case: Case) -> None:
    kept = bytearray(LARGE)
    kept[:: 1 << 10] = b"x" * len(kept[:: 1 << 10])


nothing = _only_in_case_3(lambda case: None)
raises = _only_in_case_3(_raise)
differs = _only_in_case_3(_differ)
sleeps = _only_in_case_3(lambda case: time.sleep(1000))
works_forever = _only_in_case_3(_work_forever)
holds_memory = _only_in_case_3(_hold)
held_memory = _only_in_case_3(_hold_for_a_moment)
dies = _only_in_case_3(lambda case: os.abort())
exits = _only_in_case_3(lambda case: os._exit(0))


def cannot_be_prepared(folder: Path) -> Target:
    raise OSError("no such model")
