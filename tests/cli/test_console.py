from __future__ import annotations

import json
import time
import warnings
from typing import Any

import pytest
from rich.text import Text

from unprior import errors
from unprior.benchmarks.download import Fetched
from unprior.cli import console
from unprior.cli.console import PlainConsole, print_json, showing_warnings, warn
from unprior.cli.data_display import download_progress
from unprior.cli.progress import reporting
from unprior.progress import Progress
from unprior.tables.terminal import plain_table

HOSTILE = "a\x1b[31m\x1b]0;title\x07 \x9b2J\x7f\u202eb :smile: [/x] [red]"
VISIBLE = r"a\x1b[31m\x1b]0;title\x07 \x9b2J\x7f\u202eb :smile: [/x] [red]"


def test_json_is_strict_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "modèle", "value": 0.1 + 0.2, "long": "x" * 500})
    printed = capsys.readouterr().out
    assert "modèle" in printed
    assert json.loads(printed) == {"name": "modèle", "value": 0.1 + 0.2, "long": "x" * 500}
    with pytest.raises(ValueError, match="JSON compliant"):
        print_json({"value": float("nan")})


def test_warnings_go_to_standard_error_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    warn("[bold]model[/bold] " + "x" * 200)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "warning: [bold]model[/bold] " + "x" * 200 + "\n"


@pytest.mark.parametrize("action", ["error", "ignore", "once"])
def test_every_warning_of_the_library_is_shown_each_time(action: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        with showing_warnings():
            for _ in range(3):
                errors.warn("few pairs; see split=None (command line: --split all)")
        assert capsys.readouterr().err == 3 * "warning: few pairs; see --split all\n"
        with warnings.catch_warnings(record=True) as others:
            warnings.simplefilter("always")
            with showing_warnings():
                warnings.warn("something else", DeprecationWarning, stacklevel=1)
    assert [str(other.message) for other in others] == ["something else"]
    assert capsys.readouterr().err == ""


def test_outside_of_the_command_line_a_warning_is_a_warning() -> None:
    with showing_warnings():
        pass
    with pytest.warns(errors.UnpriorWarning, match="few pairs"):
        errors.warn("few pairs")


def controls(text: str) -> set[str]:
    return {letter for letter in text if (ord(letter) < 32 and letter != "\n") or 127 <= ord(letter) < 160}


def test_text_of_others_is_shown_as_it_is_and_controls_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    table = plain_table(HOSTILE)
    table.add_column(HOSTILE)
    table.add_column("")
    table.add_row(HOSTILE, Text(HOSTILE))
    table.caption = HOSTILE
    wide = PlainConsole()
    wide.width = 500
    wide.print(table)
    wide.print(HOSTILE, soft_wrap=True)
    warn(HOSTILE)
    captured = capsys.readouterr()
    assert controls(captured.out + captured.err) == set()
    assert captured.out.count(VISIBLE) == 5
    assert captured.out.count(r"a\x1b[31m") == 6
    assert captured.err == f"warning: {VISIBLE}\n"


def test_json_escapes_all_controls(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: HOSTILE})
    printed = capsys.readouterr().out
    assert controls(printed) == set()
    assert json.loads(printed) == {HOSTILE: HOSTILE}


@pytest.mark.parametrize("terminal", [True, False])
def test_a_spinner_and_a_bar_show_markup_as_text(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = PlainConsole(stderr=True)
    shown._force_terminal, shown.is_interactive, shown.width = terminal, terminal, 200
    for module in ("console", "progress", "data_display"):
        monkeypatch.setattr(f"unprior.cli.{module}.errors", shown)
    with console.errors.status(f"Loading {HOSTILE} …") as status:
        status.update(f"Loaded {HOSTILE} …")
    with reporting() as report:
        report(Progress("Scoring [/x]"))
        report(Progress(f"Measuring {HOSTILE}", 1, 2, 1))
    with download_progress() as watch:
        watch(Fetched(f"data/{HOSTILE.replace('[/x]', '[bold')}", 1, 2, 5, 10))
    written = capsys.readouterr().err
    if terminal:  # colours and the cursor are rich's own; none of the file's escapes are among them
        assert r"Loaded a\x1b[31m" in written
        assert r"Measuring a\x1b[31m" in written
        assert r"1/2 a\x1b[31m" in written
    for escape in ("\x1b]0;", "\x9b", "\x07"):
        assert escape not in written


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Take all: split=None (command line: --split all).", "Take all: --split all."),
        ("f(a=1, b=2) (command line: --a 1), then x=['a b'] (command line: --x).", "--a 1, then --x."),
        ("Take x='a b' (command line: --x a b), too.", "Take --x a b, too."),
        (f"Or {errors.format_option('uncertainty', False)}", "Or --no-uncertainty"),
        (f"Or {errors.format_option('base_urls', ['a', 'b'], flag='--base-url')}", "Or --base-url a --base-url b"),
        ("see the manual (command line: --help)", "see the manual (command line: --help)"),
        ("x=1 (command line: --x", "x=1 (command line: --x"),
        ("a) (command line: --x)", "a) (command line: --x)"),
        ("no method " + "a" * 200_000, "no method " + "a" * 200_000),
        ("a(" * 100_000, "a(" * 100_000),
    ],
)
def test_messages_speak_the_words_of_the_command_line(message: str, told: str) -> None:
    begun = time.monotonic()
    assert console.in_commands(message) == told
    assert time.monotonic() - begun < 5
