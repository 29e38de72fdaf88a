from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import unprior
from unprior.tables.format import format_p

ANSI = re.compile(r"\x1b\[")


def test_version(run: Callable) -> None:
    result = run("--version")
    assert (result.code, result.out, result.err) == (0, f"unprior {unprior.__version__}\n", "")


@pytest.mark.parametrize("command", ["run", "score", "ask", "synth", "convert", "fit", "apply", "evaluate"])
def test_every_command_has_help(run: Callable, command: str) -> None:
    assert command in run("--help").out
    result = run(command, "--help")
    assert result.code == 0
    assert f" {command} [OPTIONS]" in result.out
    assert "--json" in result.out


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["fit"], "Missing argument"),
        (["fit", "scores.jsonl"], "Missing option '--out'"),
        (["apply", "cal.json", "--out", "d.jsonl"], "Missing argument"),
        (["evaluate", "scores.jsonl"], "Missing argument"),
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
    assert "Fitted standard SPC on 280 rows" in fitted.out
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
