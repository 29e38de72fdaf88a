"""`unprior data`: what benchmarks there are, and getting them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.user_file import read_questions


def test_list(run: Callable) -> None:
    assert "microworld-presence" in run("data", "list").out
    assert set(run("data", "list", "--json").json) == {"microworld", "microworld-forms", "microworld-presence"}


def test_get_writes_pictures_and_questions(run: Callable, tmp_path: Path) -> None:
    made = run("data", "get", "microworld", "--out", tmp_path / "world", "--seed", "2", "--json").json
    questions = tmp_path / "world" / "questions.jsonl"
    assert made == {"benchmark": "microworld-2", "examples": 1200, "images": 600, "out": str(questions)}
    original, read = microworld(tmp_path / "world", 2), read_questions(Path(made["out"]))
    assert list(read) == list(original)
    assert "unprior ask" in run("data", "get", "microworld-presence", "--out", tmp_path / "world", "--seed", "2").out


def test_an_unknown_name_is_refused(run: Callable, tmp_path: Path) -> None:
    run("data", "get", "macroworld", "--out", tmp_path).refused("macroworld: no such benchmark; known are microworld")
