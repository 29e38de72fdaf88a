"""Commands run in this process, as the installed ``unprior`` would run them."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

from fuzz.case import require
from unprior.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def accepted(self) -> bool:
        """Whether it did what it was asked for."""
        return self.code != 2

    @property
    def json(self) -> Any:
        """What it printed with ``--json``, and nothing else on standard output."""
        return json.loads(self.out)


def command(*arguments: object, codes: tuple[int, ...] = (0, 2)) -> Ran:
    """Run a command; an exception, another exit code, a refusal without a word or a traceback is a fault."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exited:
            code = exited.code or 0
    printed, said = (_content(stream) for stream in (out, err))
    ran = Ran(code if isinstance(code, int) else 1, printed, said)
    shown = f"unprior {' '.join(map(str, arguments))}\n{ran.err[-2000:]}"
    require(ran.code in codes, f"exit code {ran.code}: {shown}")
    require("Traceback" not in ran.out + ran.err, f"a traceback: {shown}")
    require(ran.code != 2 or bool(ran.err.strip()), f"a refusal without a word: {shown}")
    require("\x1b" not in ran.out + ran.err, f"a terminal escape from the input: {shown!r}")
    return ran


def _content(stream: io.TextIOWrapper) -> str:
    """What was printed, through an encoding as on a real terminal."""
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
