"""Files of one finished pipeline, made once, and a way to run a command in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import unprior
from unprior import SelectivePriorCalibrator, synthesize
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.schema import Example
from unprior.benchmarks.user_file import write_questions
from unprior.cli import main

Rows = list[dict[str, Any]]
_PAIRS_PER_SUBCATEGORY = 1


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def refused(self, *fragments: str) -> None:
        """A user's mistake: exit code 2, the message on standard error, nothing else anywhere."""
        assert self.code == 2
        for fragment in fragments:
            assert fragment in self.err
        assert "Traceback" not in self.err
        assert self.out == ""


@dataclass(frozen=True)
class Files:
    """Do not write into this folder: all tests share it."""

    scores: Path
    calibrator: Path
    decisions: Path


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("pipeline")
    made = Files(folder / "scores.jsonl", folder / "cal.json", folder / "decisions.jsonl")
    table = synthesize(seed=11)
    table.write(made.scores)
    calibrator = SelectivePriorCalibrator().fit(table)
    calibrator.save(made.calibrator)
    calibrator.predict(table).write(made.decisions)
    return made


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _tested_once: None) -> None:
    """Relative names in the tests mean files of the test, and so does the data directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNPRIOR_DATA", str(tmp_path / "data"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def run_here(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exited:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(int(exited.value.code or 0), captured.out, captured.err)

    return run_here


@pytest.fixture
def run_command() -> Callable[..., Result]:
    """The installed command in a process of its own, its output piped."""

    def run_there(*arguments: object, **environment: str) -> Result:
        command = [str(Path(sys.executable).parent / "unprior"), *(str(argument) for argument in arguments)]
        variables = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"} | environment
        variables["PYTHONPATH"] = str(Path(unprior.__file__).parents[1])  # what is tested here runs there
        done = subprocess.run(command, capture_output=True, env=variables, timeout=60, check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run_there


@pytest.fixture
def rewrite() -> Callable[..., Path]:
    """Write a changed copy of a JSONL file."""

    def rewrite_lines(source: Path, target: str, change: Callable[[Rows], Rows]) -> Path:
        rows = change(read_lines(source))
        path = Path(target)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return rewrite_lines


def read_lines(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def small_world(default_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pairs of every subcategory of the microworld, as questions of one's own."""
    world = microworld(default_run)
    kept: list[Example] = []
    seen: dict[Any, list[Any]] = {}
    for example in world:
        numbers = seen.setdefault((example.subcategory, example.split), [])
        if example.pair_id not in numbers and len(numbers) < _PAIRS_PER_SUBCATEGORY:
            numbers.append(example.pair_id)
        if example.pair_id in numbers:
            kept.append(example)
    path = tmp_path_factory.mktemp("world") / "small.jsonl"
    write_questions(path, world.with_examples(kept))
    return path
