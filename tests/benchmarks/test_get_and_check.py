"""Getting and checking a benchmark from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from unprior import UnpriorError
from unprior.benchmarks.check import check_benchmark
from unprior.benchmarks.get import get_benchmark
from unprior.benchmarks.user_file import read_questions


@pytest.fixture(autouse=True)
def _empty_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNPRIOR_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("_small_drawings")
def test_a_drawn_benchmark_is_written_with_its_questions(tmp_path: Path) -> None:
    drawn: list[tuple[int, int]] = []
    benchmark, questions = get_benchmark("microworld", tmp_path / "world", report=lambda *told: drawn.append(told))
    assert questions == tmp_path / "world" / "questions.jsonl"
    assert len(read_questions(questions)) == len(benchmark)
    assert drawn[-1][0] == drawn[-1][1] > 0
    result = check_benchmark("microworld", tmp_path / "world")
    assert result.sound
    assert result.record()["flaws"] == []
    assert check_benchmark(str(questions)).sound


def test_what_cannot_be_got_or_checked_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"--seed 3\): only a drawn benchmark has seeds, pope is not drawn"):
        get_benchmark("pope", seed=3)
    with pytest.raises(UnpriorError, match="no such benchmark"):
        get_benchmark("macroworld")
    with pytest.raises(UnpriorError, match="pope: no such folder; give the one that holds the files of pope"):
        check_benchmark("pope")
    with pytest.raises(UnpriorError, match="give one of them"):
        check_benchmark("pope", tmp_path, data_dir=tmp_path)
    (tmp_path / "mine.jsonl").touch()
    with pytest.raises(UnpriorError, match=r"mine\.jsonl: this is a file; give the folder"):
        check_benchmark("pope", tmp_path / "mine.jsonl")
    with pytest.raises(UnpriorError, match="give it alone"):
        check_benchmark(str(tmp_path / "mine.jsonl"), tmp_path)
