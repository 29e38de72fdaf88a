"""Where output goes: results to standard output, words about them to standard error."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from unprior._text import visible
from unprior.errors import FailedExamplesWarning, UnpriorNote, UnpriorWarning

if TYPE_CHECKING:
    from unprior.tables.model import Table

_IN_COMMANDS = " (command line: "
_NOT_ESCAPED_BY_JSON = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class PlainStatus(Status):
    """A spinner with a text beside it; rich's own takes a string for markup, on whatever console."""

    def update(self, status: RenderableType | None = None, **options: Any) -> None:
        """Show another text, as it is."""
        super().update(Text(status) if isinstance(status, str) else status, **options)


class PlainConsole(Console):
    """A terminal for text that others wrote.

    Names, answers and messages may hold brackets, which must not be taken for markup, and control characters, which
    must not reach the terminal; what rich itself sends to it is not touched.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        """Write to standard output or standard error, whatever these are at the moment."""
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything that is shown passes here, piece by piece."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        """Strings become text before they are measured, so that they keep their room in tables."""
        return super().render_str(visible(text), **options)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """A spinner with a text beside it."""
        return PlainStatus(Text(status) if isinstance(status, str) else status, console=self, **options)


output = PlainConsole()
errors = PlainConsole(stderr=True)


def flag(panel: str, text: str, *names: str, **more: Any) -> Any:
    """An option that stands under this heading of the help."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


AsJson = Annotated[bool, flag("Output", "Print the result as JSON, for programs.", "--json")]
SkipInvalid = Annotated[
    bool, flag("Input", "Leave invalid rows out and list them, instead of refusing the file.", "--skip-invalid")
]


def print_json(record: Any) -> None:
    """Print one JSON document to standard output, whatever the width of the terminal."""
    print_quoted(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False))


def print_quoted(text: str) -> None:
    """Print JSON or TOML to standard output, with an escape for every character that would do something there."""
    print(_NOT_ESCAPED_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_tables(*tables: Table) -> None:
    """Print tables to standard output, each in parts that fit the terminal."""
    from unprior.tables.terminal import as_rich, fitting

    for table in tables:
        for part in fitting(table, output.width - 1):
            output.print(as_rich(part))
        output.print()


def warn(*messages: str) -> None:
    """Say something that a person should act on, or know before relying on results."""
    for message in messages:
        errors.print(f"warning: {in_commands(message)}", style="yellow", soft_wrap=True)


def in_commands(message: str) -> str:
    """A message of the library in the words of the command line, where it has those of Python, too.

    >>> in_commands("For all rows: split=None (command line: --split all).")
    'For all rows: --split all.'
    """
    told, *others = message.split(_IN_COMMANDS)
    for each in others:
        command, closed, rest = each.partition(")")
        # The words of Python end here; those in brackets and quotes may have blanks between them.
        bracket = {")": "(", "]": "[", "'": "'", '"': '"'}.get(told[-1:])
        start = told.rfind(" ", 0, None if bracket is None else max(0, told.rfind(bracket, 0, -1))) + 1
        in_python = any(sign in told[start:] for sign in "=(")
        told = told[:start] + command + rest if closed and in_python else told + _IN_COMMANDS + each
    return told


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Print every warning of the library as the commands print theirs, each time it is given."""
    with warnings.catch_warnings():  # puts back what is changed here
        show_others = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int,
            file: TextIO | None = None, line: str | None = None,
        ) -> None:  # fmt: skip
            if isinstance(message, FailedExamplesWarning):
                for name, reason in message.failures:
                    errors.print(f"  failed: {name}: {in_commands(reason)}", soft_wrap=True)
            elif isinstance(message, UnpriorNote):
                errors.print(in_commands(str(message)), soft_wrap=True)
            elif issubclass(category, UnpriorWarning):
                warn(str(message))
            else:
                show_others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        warnings.simplefilter("always", UnpriorWarning)
        yield


@contextmanager
def counting(doing: str, counted: str) -> Iterator[Callable[[int, int], None]]:
    """A spinner that tells how many are done."""
    with errors.status(f"{doing} …") as status:
        yield lambda done, total: status.update(f"{counted}: {done:,} of {total:,} …")
