"""The application: its commands, and how mistakes end."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from unprior.cli import answers, ask, baseline, calibrate, data, doctor, reproduce, run, score, study, tables
from unprior.cli.console import errors
from unprior.cli.distributed import RayCommand
from unprior.errors import UnpriorError

_BOTH = re.compile(r"[\w.]+(?:=\w+|\([^)]*\)) \(command line: ([^)]*)\)")
_TERMINATED = 128 + signal.SIGTERM

app = typer.Typer(
    name="unprior",
    help="Selective Prior Calibration: make vision-language models believe their eyes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("run")(run.run)
app.add_typer(data.app, name="data")
app.command("synth")(tables.synth)
app.command("convert")(tables.convert)
app.command("fit")(calibrate.fit)
app.command("apply")(calibrate.apply)
app.command("evaluate")(calibrate.evaluate)
app.command("evaluate-answers")(answers.evaluate_answers)
app.command("score", cls=RayCommand)(score.score)
app.command("ask")(ask.ask)
app.command("doctor")(doctor.doctor)
app.command("baseline")(baseline.baseline)
app.command("study")(study.study)
app.command("reproduce")(reproduce.reproduce)


def _show_version(wanted: bool) -> None:
    if wanted:
        from unprior._version import __version__

        print(f"unprior {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Selective Prior Calibration: make vision-language models believe their eyes."""


class _Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM."""


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, with its last words and without leftovers; the exit code is 143."""
    asked = False

    def end(*_: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever asks twice does not want to wait
        raise _Terminated

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        if asked:
            sys.exit(_TERMINATED)
        raise
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _in_commands(message: str) -> str:
    """A message in the words of the command line, where it also has those of Python.

    >>> _in_commands("For all rows: split=None (command line: --split all).")
    'For all rows: --split all.'
    """
    return _BOTH.sub(r"\1", message)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a user's mistake ends with its message and exit code 2, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot show Δ gets a ? in its place
            stream.reconfigure(errors="replace")
    try:
        _refuse_broken_text(sys.argv[1:] if arguments is None else arguments)
        with _terminated_like_interrupted():
            app(args=None if arguments is None else list(arguments))
    except UnpriorError as error:
        _fail(_in_commands(str(error)))
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # a name that is too long, a folder without rights, a full disk
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror or error}; choose another path, or check its rights")
    except MemoryError:
        _fail("there is not enough memory for this; ask for less at once (fewer rows, smaller images or batches)")


def _fail(message: str) -> NoReturn:
    errors.print(f"error: {message}", style="red", soft_wrap=True)
    sys.exit(2)


def _refuse_broken_text(arguments: Sequence[str]) -> None:
    """Bytes that are not UTF-8 arrive as halves of characters, which neither models nor files can hold."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode("utf-8", "backslashreplace").decode()
            raise UnpriorError(f"{shown}: this argument is not valid UTF-8; write it in UTF-8") from None
