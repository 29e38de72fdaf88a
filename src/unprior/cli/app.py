"""The application: its commands, and how mistakes end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated, ClassVar, NoReturn

import typer

from unprior.cli.console import errors, in_commands, showing_warnings
from unprior.cli.lazy import Command, LazyGroup, application
from unprior.errors import UnpriorError


class Commands(LazyGroup):
    """All commands; the module of one is imported when it is called."""

    listed: ClassVar[Mapping[str, Sequence[Command]]] = {
        "Start here": (
            Command("run", "run:run", "Score, calibrate and evaluate a model in one command."),
            Command("ask", "ask:ask", "Ask one question about one image; calibrate the answer."),
        ),
        "Data and scores": (
            Command("data", "data:app", "List, download, check and show benchmarks."),
            Command("score", "score:score", "Score every question of a benchmark.", cls="score:RayCommand"),
            Command("synth", "tables:synth", "Write a synthetic score table, to try without a model."),
            Command("convert", "tables:convert", "Convert score files to one table, or merge them."),
        ),
        "Calibrate": (
            Command("fit", "calibrate:fit", "Fit a calibrator on development rows."),
            Command("apply", "calibrate:apply", "Decide for every row of a score table."),
            Command("evaluate", "calibrate:evaluate", "Compare decisions with the original answers."),
            Command("evaluate-answers", "evaluate_answers:evaluate_answers", "Evaluate a file of raw answers."),
            Command("publish", "publish:publish", "Write a calibrator with its card, here or to the hub."),
            Command("export", "export:export", "Write a run for another program, such as Inspect."),
            Command("plan", "promise:plan", "What so many pairs can promise, before any is labelled."),
            Command("monitor", "promise:monitor", "Test a promise on labelled decisions over time."),
        ),
        "Research": (
            Command("baseline", "baseline:baseline", "Let other methods answer the same questions."),
            Command("study", "study:study", "Compute the paper's experiments for one or several runs."),
            Command("reproduce", "reproduce:reproduce", "Recompute the paper's tables from its score files."),
        ),
        "Serve": (
            Command("serve", "serve:serve", "Serve calibrated decisions, and a page to try them."),
            Command("label", "label:label", "Label what a server decided, to fit and evaluate on it."),
        ),
        "Engines": (
            Command("doctor", "doctor:doctor", "Check whether a model can be scored on this machine."),
            Command("models", "models:models", "List the architectures that are known to work, and how."),
        ),
    }


app = application(name="unprior", cls=Commands, no_args_is_help=True)


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


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, with its last words and without leftovers; the exit code is 143."""
    asked = False

    def end(*_: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever asks twice does not want to wait
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        if asked:
            sys.exit(128 + signal.SIGTERM)
        raise
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a user's mistake ends with its message and exit code 2, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot show Δ gets a ? in its place
            stream.reconfigure(errors="replace")
    try:
        _refuse_broken_text(sys.argv[1:] if arguments is None else arguments)
        with _terminated_like_interrupted(), showing_warnings():
            app(args=None if arguments is None else list(arguments))
    except UnpriorError as error:
        _fail(in_commands(str(error)))
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
