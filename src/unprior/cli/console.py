"""Where output goes: results to standard output, words about them to standard error."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from unprior.errors import FailedExamplesWarning, UnpriorError, UnpriorNote, UnpriorWarning

# What moves the cursor, colours or renames the terminal (ESC, C0, DEL, C1), and what turns the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NOT_ESCAPED_BY_JSON = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Text whose control characters can be seen and do nothing.

    >>> print(visible("red \x1b[31m"))
    red \x1b[31m
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


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
            if segment.control is None and _CONTROLS.search(segment.text):
                yield Segment(visible(segment.text), segment.style)
            else:
                yield segment

    def render_str(self, text: str, **options: Any) -> Text:
        """Strings become text before they are measured, so that they keep their room in tables."""
        return super().render_str(visible(text), **options)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """A spinner with a text beside it."""
        return _PlainStatus(status, console=self, **options)


class _PlainStatus(Status):
    """A spinner takes a string for markup, on whatever console."""

    def __init__(self, status: RenderableType, **options: Any) -> None:
        super().__init__(_as_text(status), **options)

    def update(self, status: RenderableType | None = None, **options: Any) -> None:
        super().update(None if status is None else _as_text(status), **options)


def _as_text(status: RenderableType) -> RenderableType:
    return Text(status) if isinstance(status, str) else status


output = PlainConsole()
errors = PlainConsole(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
SkipInvalid = Annotated[
    bool,
    typer.Option("--skip-invalid", help="Leave invalid rows out and list them, instead of refusing the file."),
]


def print_json(record: Any) -> None:
    """Print one JSON document to standard output, whatever the width of the terminal."""
    print_json_text(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False))


def print_json_text(text: str) -> None:
    """Print a JSON document that is text already; controls that JSON permits in strings are escaped."""
    print(_NOT_ESCAPED_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def warn(message: str) -> None:
    """Say something that a person should act on."""
    errors.print(f"warning: {message}", style="yellow", soft_wrap=True)


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Print what the library warns about, in the words of the command line, as it comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UnpriorWarning)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if isinstance(message, FailedExamplesWarning):
                for name, reason in message.failures:
                    errors.print(f"  failed: {name}: {reason}", soft_wrap=True)
            elif isinstance(message, UnpriorNote):
                errors.print(str(message), soft_wrap=True)
            elif isinstance(message, UnpriorWarning):
                warn(str(message))
            else:
                others(message, category, *where, **more)

        warnings.showwarning = show
        yield


def refuse_overwriting(out: Path, *inputs: Path) -> None:
    """An output that would replace one of its inputs is a slip."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise UnpriorError(f"--out {out} would overwrite its own input; choose another name")
