"""Errors that a user can act on: every message names the thing and the remedy."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

_SHOWN_REASONS, _SHOWN_LINES, _SHOWN_NAMES, _SHOWN_LETTERS = 50, 8, 5, 60


class UnpriorError(ValueError):
    """A mistake in the input, not in the program; the command line shows it without a traceback.

    >>> raise UnpriorError("scores.jsonl does not exist")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: scores.jsonl does not exist
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to follow the complaint about an unknown name, or nothing if no known one is like it.

    >>> did_you_mean("cdhbench", ["cdh-bench", "pope"]), did_you_mean("nonsense", ["pope"])
    (' (did you mean cdh-bench?)', '')
    """
    alike = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(str(name).casefold(), alike, n=1, cutoff=0.6)
    return f" (did you mean {alike[found[0]]}?)" if found else ""


def format_option(name: str, value: object = ..., *, flag: str | None = None) -> str:
    """An option in the words of Python and of the command line, which shows its own words alone.

    >>> print(format_option("dtype", "float32"))
    dtype='float32' (command line: --dtype float32)
    >>> format_option("allow_censored", True), format_option("resize")
    ('allow_censored=True (command line: --allow-censored)', 'resize=... (command line: --resize)')
    """
    flag = flag or f"--{name.replace('_', '-')}"
    value = fspath(value) if isinstance(value, PathLike) else value
    shown = "..." if value is ... else repr(value)
    values = value if isinstance(value, list | tuple) else [value]
    if value is False:
        flag, values = flag.replace("--", "--no-", 1), [...]
    written = " ".join(flag if each is ... or each is True else f"{flag} {each}" for each in values)
    return f"{name}={shown} (command line: {written})"


def format_names(names: Sequence[str]) -> str:
    """The first few names, and how many more there are.

    >>> format_names(["a", "b"]), format_names(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def wrong_type(name: str, value: object, takes: str) -> UnpriorError:
    """What is wrong with an argument: its name, what it takes, and what it got.

    >>> print(wrong_type("table", [1], "a score table"))
    table: give a score table, not a list
    """
    shown = repr(value) if value is None or isinstance(value, str | int | float) else ""
    article = "an" if type(value).__name__[0] in "aeiouAEIOU" else "a"
    got = shown if 0 < len(shown) <= _SHOWN_LETTERS else f"{article} {type(value).__name__}"
    return UnpriorError(f"{name}: give {takes}, not {got}")


def require_type(name: str, value: object, kind: Any, takes: str) -> None:
    """Refuse an argument of another type.

    >>> require_type("model", 3, str, "a text, such as 'embedded'")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: model: give a text, such as 'embedded', not 3
    """
    if not isinstance(value, kind):
        raise wrong_type(name, value, takes)


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Why one row of a score table was refused.

    >>> str(RowProblem(line=7, reason="K is 1, at least 2 candidates are needed"))
    'line 7: K is 1, at least 2 candidates are needed'
    """

    line: int
    """Line of a JSONL file or row of a Parquet file, counted from 1."""
    reason: str
    """What is wrong with it."""

    def __str__(self) -> str:
        """Line and reason."""
        return f"line {self.line}: {self.reason}"


class InvalidScoresError(UnpriorError):
    """Some rows of a score table are invalid; ``problems`` lists every one of them.

    >>> error = InvalidScoresError("scores.jsonl", 2, (RowProblem(1, "K is 1"),))
    >>> print(error)
    scores.jsonl: 1 of 2 rows is invalid
      line 1: K is 1
    Correct it, or leave it out with skip_invalid=True (command line: --skip-invalid).
    """

    def __init__(self, source: str, total: int, problems: tuple[RowProblem, ...], *, skippable: bool = True) -> None:
        """Say which rows of ``source`` are wrong and what can be done."""
        self.source = source
        self.problems = problems
        one = len(problems) == 1
        lines = [f"{source}: {len(problems)} of {total} rows {'is' if one else 'are'} invalid"]
        by_reason: dict[str, list[int]] = {}
        for problem in problems:
            by_reason.setdefault(problem.reason, []).append(problem.line)
        for reason, where in list(by_reason.items())[:_SHOWN_REASONS]:
            if len(where) <= _SHOWN_LINES:
                lines += [f"  {RowProblem(line, reason)}" for line in where]
            else:
                first = ", ".join(str(line) for line in where[:_SHOWN_LINES])
                lines.append(f"  lines {first} and {len(where) - _SHOWN_LINES} more: {reason}")
        if len(by_reason) > _SHOWN_REASONS:
            lines.append(f"  … and {len(by_reason) - _SHOWN_REASONS} more reasons")
        them = "it" if one else "them"
        skip = f", or leave {them} out with {format_option('skip_invalid', True)}" if skippable else ""
        lines.append(f"Correct {them}{skip}.")
        super().__init__("\n".join(lines))


class UnpriorWarning(UserWarning):
    """Something that a person should act on although the work goes on; the command line prints it."""


class UnpriorNote(UnpriorWarning):
    """Something that a person should know and need not act on, such as a size that images are brought to."""


class FailedExamplesWarning(UnpriorWarning):
    """Some examples could not be done; ``failures`` has the name of each and the reason.

    >>> print(FailedExamplesWarning("1 of 2 examples of mine could not be scored", [("q1", "no such image")]))
    1 of 2 examples of mine could not be scored:
      q1: no such image
    """

    def __init__(self, message: str, failures: Iterable[tuple[str, str]]) -> None:
        """Name the first of them."""
        self.failures = tuple(failures)
        lines = [f"  {name}: {reason}" for name, reason in self.failures[:_SHOWN_LINES]]
        more = len(self.failures) - len(lines)
        super().__init__("\n".join([f"{message}:", *lines, *([f"  … and {more:,} more"] if more else [])]))


def warn(message: str | UnpriorWarning) -> None:
    """Warn the caller of the library; silence it with :mod:`warnings` as usual.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("only 12 pairs")
    >>> caught[0].category.__name__
    'UnpriorWarning'
    """
    warnings.warn(UnpriorWarning(message) if isinstance(message, str) else message, stacklevel=3)
