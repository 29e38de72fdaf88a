"""Processes that run cases: a case may raise, hang, eat memory or kill its process, and the others go on."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection, wait
from pathlib import Path

from fuzz.case import NOTES, Case, DifferentResultError, MakeTarget, on_linux

DEADLINE = 20.0
"""Seconds after which a case hangs; time that it waits for a processor does not count."""
MAX_MEMORY = 2 << 30
"""Bytes that the process of a case may hold."""
_SETUP_DEADLINE = 300.0
_LOG = "log.txt"
_FAREWELL = 10.0
_LOOK = 0.1  # seconds between two looks at time and memory


class Verdict(StrEnum):
    """How a case ended."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    RAISED = "raised"
    DIFFERENT = "different result"
    HANG = "hang"
    MEMORY = "memory"
    DIED = "died"

    @property
    def failed(self) -> bool:
        """Whether this is a fault."""
        return self not in (Verdict.ACCEPTED, Verdict.REFUSED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case."""

    index: int
    verdict: Verdict
    detail: str = ""
    """The message of a refusal, or the traceback of a failure."""
    place: str = ""
    """Where it failed: failures of one place are one fault."""
    seconds: float = 0.0
    memory: int = 0
    """Most bytes that the process held."""


class SetupError(Exception):
    """A target could not be prepared; no case was run."""


def run_cases(
    target: str, factory: str, seed: int, indices: Iterator[int], *, folder: Path, workers: int = 1,
    deadline: float = DEADLINE, max_memory: int = MAX_MEMORY,
) -> Iterator[tuple[Outcome, Path]]:  # fmt: skip
    """Run cases until there are no more; gives each outcome with the folder of its case, which is then removed.

    ``factory`` names the function that prepares the target, as ``module:name``.
    """
    pool: list[_Worker] = []
    try:
        pool = [_Worker(target, factory, seed, folder) for _ in range(workers)]
        for worker in pool:
            worker.begin(next(indices, None))
        while busy := [worker for worker in pool if worker.index is not None]:
            wait([worker.pipe for worker in busy], timeout=_LOOK)
            for worker in busy:
                outcome = worker.look(deadline, max_memory)
                if outcome is None:
                    continue
                yield outcome, worker.case_folder(outcome.index)
                shutil.rmtree(worker.case_folder(outcome.index), ignore_errors=True)
                worker.begin(next(indices, None))
    finally:
        for worker in pool:
            worker.end()


class _Worker:
    """One process at a time; after a hang or a crash, the next one."""

    def __init__(self, target: str, factory: str, seed: int, folder: Path) -> None:
        self.target, self.factory, self.seed = target, factory, seed
        self.folder = Path(tempfile.mkdtemp(dir=folder, prefix=f"{target}-"))
        self.index: int | None = None
        self._start()

    def case_folder(self, index: int) -> Path:
        return self.folder / str(index)

    def begin(self, index: int | None) -> None:
        self.index = index
        if index is None:
            return
        if not self.process.is_alive():
            self._start()
        self.case_folder(index).mkdir()
        self.began, self.waited_before = time.monotonic(), _waited(self.process.pid)
        self.pipe.send(index)

    def look(self, deadline: float, max_memory: int) -> Outcome | None:
        """The outcome of the case, or None while it runs."""
        assert self.index is not None
        seconds = time.monotonic() - self.began
        if self.pipe.poll():
            try:
                outcome = self.pipe.recv()
            except (EOFError, OSError):
                return self._died(seconds)
            assert isinstance(outcome, Outcome)
            if outcome.memory > max_memory and not outcome.verdict.failed:
                return self._too_much(seconds, outcome.memory)
            return outcome
        held = _held(self.process.pid)
        if held > max_memory:
            self._kill()
            return self._too_much(seconds, held)
        used = seconds - (_waited(self.process.pid) - self.waited_before)
        if used > deadline:
            self._kill()
            return Outcome(self.index, Verdict.HANG, f"no end after {used:.0f} s", self._noted(), seconds, held)
        return None

    def end(self) -> None:
        if self.index is None:
            self.pipe.close()  # it waits for the next case, and sees that there is none
            self.process.join(_FAREWELL)
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _too_much(self, seconds: float, held: int) -> Outcome:
        assert self.index is not None
        return Outcome(
            self.index, Verdict.MEMORY, f"{held / (1 << 30):.1f} GB of memory", self._noted(), seconds, held
        )  # fmt: skip

    def _noted(self) -> str:
        """What the case wrote down first; where a killed process was, nobody knows."""
        assert self.index is not None
        notes = self.case_folder(self.index) / NOTES
        return notes.read_text(encoding="utf-8").partition("\n")[0] if notes.is_file() else ""

    def _died(self, seconds: float) -> Outcome:
        assert self.index is not None
        self.process.join()
        code = self.process.exitcode or 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        log = (self.folder / _LOG).read_text(encoding="utf-8", errors="replace")[-4000:]
        return Outcome(self.index, Verdict.DIED, f"the process ended with {how}\n{log}", how, seconds)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # no threads and no state of the parent
        self.pipe, other = context.Pipe()
        shared = Path(tempfile.mkdtemp(dir=self.folder, prefix="shared-"))
        self.process = context.Process(
            target=_serve, args=(other, self.target, self.factory, self.seed, self.folder, shared), daemon=True
        )
        self.process.start()
        other.close()
        try:
            problem = self.pipe.recv() if self.pipe.poll(_SETUP_DEADLINE) else "it takes too long"
        except EOFError:
            problem = "its process died"
        if problem is not None:
            self._kill()
            raise SetupError(f"{self.target}: cannot be prepared: {problem}")

    def _kill(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection, target: str, factory: str, seed: int, folder: Path, shared: Path) -> None:
    """Run cases until the parent goes away; what they print goes to a log."""
    with (folder / _LOG).open("w", encoding="utf-8") as log, Path(os.devnull).open(encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 0)  # a question must not wait for an answer
        for printed in (1, 2):
            os.dup2(log.fileno(), printed)
    faulthandler.enable()
    os.environ["COLUMNS"] = "100"
    try:
        module, _, name = factory.partition(":")
        make: MakeTarget = getattr(importlib.import_module(module), name)
        run = make(shared)
    except BaseException:
        pipe.send(traceback.format_exc())
        return
    pipe.send(None)
    while True:
        try:
            index = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(_outcome(run, Case(target, seed, index, folder / str(index))))


def _outcome(run: Callable[[Case], bool], case: Case) -> Outcome:
    from unprior.errors import UnpriorError

    _forget_peak()
    began = time.monotonic()
    detail, place = "", ""
    try:
        verdict = Verdict.ACCEPTED if run(case) else Verdict.REFUSED
    except UnpriorError as error:
        verdict, detail = Verdict.REFUSED, str(error)
    except DifferentResultError as error:
        verdict, detail, place = Verdict.DIFFERENT, str(error), _words(str(error))
    except BaseException as error:
        verdict, detail, place = Verdict.RAISED, traceback.format_exc(), _place(error)
    return Outcome(case.index, verdict, detail, place, time.monotonic() - began, _peak())


def _place(error: BaseException) -> str:
    """Kind of the error, and the innermost line of the package that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}unprior{os.sep}" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__} at {where}"


def _words(message: str) -> str:
    """A message without what differs from case to case."""
    return message.partition(":")[0]


def _forget_peak() -> None:
    if on_linux():
        with contextlib.suppress(OSError):  # not permitted in every container; peaks then add up
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> int:
    if on_linux():
        return _status(os.getpid(), "VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _held(pid: int | None) -> int:
    return _status(pid, "VmRSS:") if pid and on_linux() else 0


def _status(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name)), 0)


def _waited(pid: int | None) -> float:
    """Seconds that a process was ready to run but had no processor: a busy machine is no fault of the case."""
    waits = [0.0]
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat") if pid and on_linux() else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            waits.append(int(path.read_text(encoding="ascii").split()[1]) / 1e9)
    return max(waits)
