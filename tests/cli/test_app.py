from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import unprior
from unprior.cli.app import Commands
from unprior.errors import UnpriorError
from unprior.tables.format import format_p

HEAVY = ("numpy", "scipy", "pyarrow", "pydantic", "matplotlib", "jinja2", "torch", "rich.progress", "rich.markdown",
         "unprior.scores", "unprior.studies", "unprior.cli.calibrate", "unprior.cli.run")  # fmt: skip
ANSI = re.compile(r"\x1b\[")


def test_version(run: Callable) -> None:
    result = run("--version")
    assert (result.code, result.out, result.err) == (0, f"unprior {unprior.__version__}\n", "")


LISTED = [command for commands in Commands.listed.values() for command in commands]
SINGLE = [command.name for command in LISTED if command.name != "data"]
WITH_EXAMPLES = set(SINGLE)
IN_DATA = ["list", "show", "get", "check", "gallery"]


@pytest.mark.parametrize("command", SINGLE)
def test_every_command_has_help(run: Callable, command: str) -> None:
    result = run(command, "--help")
    assert result.code == 0
    assert f" {command} [OPTIONS]" in result.out
    assert "--json" in result.out


@pytest.mark.parametrize("command", [*sorted(WITH_EXAMPLES), *(f"data {name}" for name in IN_DATA)])
@pytest.mark.parametrize("width", [80, 100])
def test_help_ends_with_two_calls_that_are_understood(
    run: Callable, command: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = run(*command.split(), "--help").out
    known, _, tail = shown.rpartition(" Examples ")
    calls = [call.split() for call in " ".join(tail.split()).split("$ ")[1:]]
    assert len(calls) == 2
    assert "Output" in shown
    for call in calls:
        assert call[: 1 + len(command.split())] == ["unprior", *command.split()]
        for option in (word for word in call if word.startswith("--")):
            assert option in known


@pytest.mark.usefixtures("_small_drawings")
@pytest.mark.parametrize("command", [*SINGLE, "data", *(f"data {name}" for name in IN_DATA)])
def test_a_command_without_arguments_does_its_work_or_says_what_it_lacks(
    run: Callable, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_nothing(*_: object, **__: object) -> None:
        raise UnpriorError("the model was loaded")  # `run` and `doctor` need no arguments

    monkeypatch.setattr("unprior.engines.load.load_engine", load_nothing)
    result = run(*command.split())
    if command in ("run", "doctor", "serve"):
        result.refused("the model was loaded")
    elif command in ("models", "plan", "data list"):
        assert (result.code, result.err) == (0, "")
    elif command == "data":
        assert "gallery" in result.out
    else:
        result.refused()
        assert "Missing " in result.err or "choose --out FILE" in result.err


def test_help_has_one_order_of_groups_and_no_python_types(run: Callable) -> None:
    order = []
    for command in [*SINGLE, *(f"data {name}" for name in IN_DATA)]:
        shown = run(*command.split(), "--help").out
        assert not re.search(r"<(bool|str|int|float|path|list)\b", shown), command
        order.append(re.findall(r"╭─ (\w+) ─", shown))
    longest = [
        "Input",
        "Model",
        "Engine",
        "Prompt",
        "Benchmark",
        "Method",
        "Statistics",
        "Preparing",
        "Cluster",
        "Server",
        "Output",
    ]
    for panels in order:
        known = [name for name in panels if name in longest]
        assert known == sorted(known, key=longest.index)
        assert panels[-1] == "Output"
    assert {name for panels in order for name in panels} == {*longest, "Arguments", "Options", "Columns"}


def test_help_lists_every_command_under_its_heading(run: Callable) -> None:
    shown = run("--help").out
    for heading, commands in Commands.listed.items():
        _, _, below = shown.partition(f"─ {heading} ─")
        panel = below.partition("╰")[0]
        for command in commands:
            assert f"│ {command.name} " in panel
            assert command.summary in panel
    assert run().code == 2
    assert "Start here" in run().out


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys; from unprior.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    assert "evaluate-answers" in done.stdout


def test_a_command_imports_only_itself(files: Any) -> None:
    code = (
        "import sys; from unprior.cli import main\n"
        f"try: main(['fit', {str(files.scores)!r}, '--out', 'cal.json'])\nexcept SystemExit: pass\n"
        "print(*[name for name in sys.modules if name.startswith('unprior.')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert "unprior.cli.calibrate" in loaded
    for absent in ("unprior.cli.study", "unprior.cli.run", "unprior.studies", "unprior.report", "unprior.scoring"):
        assert absent not in loaded


def test_a_slip_in_a_command_is_recognised(run: Callable) -> None:
    run("evalute").refused("No such command 'evalute'. Did you mean 'evaluate'")


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["fit"], "Missing argument"),
        (["fit", "scores.jsonl"], "Missing option '--out'"),
        (["apply", "cal.json", "--out", "d.jsonl"], "Missing argument"),
        (["evaluate"], "Missing argument"),
        (["convert", "--out", "x.jsonl"], "Missing argument"),
        (["synth", "--out", "x.jsonl", "--seed", "-1"], "'--seed'"),
        (["synth", "--out", "x.jsonl", "--repeats", "0"], "'--repeats'"),
        (["fit", "scores.jsonl", "--out", "c.json", "--epsilon-cs", "much"], "'--epsilon-cs'"),
        (["fit", "scores.jsonl", "--out", "c.json", "--nonsense"], "No such option"),
        (["evaluate", "s.jsonl", "d.jsonl", "--resamples", "0"], "'--resamples'"),
    ],
)
def test_a_wrong_call_is_explained(run: Callable, arguments: list[str], fragment: str) -> None:
    run(*arguments).refused(fragment)


def test_the_installed_command_runs_the_pipeline(run_command: Callable) -> None:
    made = run_command("synth", "--out", "scores.parquet", "--seed", 3)
    assert (made.code, made.err) == (0, "")
    assert made.out == "1,200 rows of 300 pairs (280 dev, 920 test) → scores.parquet\n"
    fitted = run_command("fit", "scores.parquet", "--out", "cal.json")
    assert fitted.code == 0
    assert "Fitted SPC (standard, ε = 0.04) on 280 rows" in fitted.out
    applied = run_command("apply", "cal.json", "scores.parquet", "--out", "decisions.jsonl")
    assert applied.code == 0
    assert re.search(r"^\d+ of 1,200 answers revised → decisions\.jsonl$", applied.out, re.MULTILINE)
    evaluated = run_command("evaluate", "scores.parquet", "decisions.jsonl", COLUMNS="120")
    assert evaluated.code == 0
    table = unprior.read_scores("scores.parquet")
    final = unprior.SelectivePriorCalibrator.load("cal.json").predict(table).final_positions
    test = table.mask(split="test")
    for task in unprior.evaluate(table.take(test), final[test]).tasks:
        for metrics in (task.original, task.method):
            assert f" {metrics.cf.value:.3f} " in evaluated.out
            assert f" {metrics.cs.value:.3f} " in evaluated.out
        for side in (task.cf, task.cs):
            assert f"[{100 * side.low:+.1f}, {100 * side.high:+.1f}]" in evaluated.out
            assert f"{side.change.repairs}/{side.change.harms}" in evaluated.out
            assert f" {format_p(side.holm_p)}" in evaluated.out
    assert not any(ANSI.search(result.out + result.err) for result in (made, fitted, applied, evaluated))


def test_the_installed_command_explains_a_mistake_without_colour(run_command: Callable) -> None:
    result = run_command("fit", "nothing.jsonl", "--out", "cal.json")
    result.refused("error: nothing.jsonl: no such file; check the path")
    assert not ANSI.search(result.err)


def test_a_table_that_is_piped_is_not_cut(run_command: Callable, files: object) -> None:
    # Without a terminal the width is 80; a table that needs more would lose the ends of intervals and p-values.
    result = run_command("evaluate", files.scores, files.decisions)
    assert result.code == 0
    assert "…" not in result.out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_cannot_show_every_letter(run_command: Callable, encoding: str) -> None:
    result = run_command("synth", "--out", "scores.jsonl", PYTHONIOENCODING=encoding)
    assert "Traceback" not in result.err
    assert result.code == 0
