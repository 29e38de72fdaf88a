"""Scoring a benchmark from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny_models
from hand_questions import write_benchmark
from unprior import UnpriorError
from unprior.benchmarks.user_file import read_questions
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import FailedExamplesWarning, UnpriorWarning
from unprior.progress import Progress
from unprior.scoring import score
from unprior.scoring.benchmark import check_images, part_of, score_benchmark

pytestmark = pytest.mark.filterwarnings("ignore:the candidates hold only:unprior.errors.UnpriorWarning")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> TransformersEngine:
    return TransformersEngine(tiny_models.build("llava", tmp_path_factory.mktemp("llava")), device="cpu")


def test_parts_add_up_to_the_full_table(engine: TransformersEngine, tmp_path: Path) -> None:
    benchmark = read_questions(write_benchmark(tmp_path))
    seen: list[Progress] = []
    first = score(engine, benchmark, tmp_path / "out", shard="1/2", report=seen.append)
    second = score(engine, benchmark, tmp_path / "out", shard="2/2", views=("white",))
    again = score_benchmark(engine, benchmark, tmp_path / "out", views=("white",))
    assert (len(first), len(second)) == (6, 6)  # the views of the first part are not there yet
    assert (again.summary.examples, len(again.table())) == (12, 12)
    assert {where.doing for where in seen} == {"Scoring"}
    assert (seen[-1].done, seen[-1].total) == (6, 6)


def test_failures_are_warned_about_and_left_out(engine: TransformersEngine, tmp_path: Path) -> None:
    benchmark = read_questions(write_benchmark(tmp_path))
    (tmp_path / "0-cf.png").write_bytes(b"junk")
    with pytest.warns(FailedExamplesWarning, match="2 of 12 examples of hands could not be scored") as caught:
        table = score(engine, benchmark, tmp_path / "out")
    assert len(table) == 10
    (failed,) = [each.message for each in caught.list if isinstance(each.message, FailedExamplesWarning)]
    assert [name for name, _ in failed.failures] == ["0-cf-mc", "0-cf-qa"]
    for path in tmp_path.glob("*.png"):
        path.write_bytes(b"junk")
    with pytest.warns(FailedExamplesWarning), pytest.raises(UnpriorError, match="no example could be scored"):
        score(engine, benchmark, tmp_path / "other")


def test_images_that_are_not_there(tmp_path: Path) -> None:
    benchmark = read_questions(write_benchmark(tmp_path))
    check_images(benchmark)
    (tmp_path / "0-cf.png").unlink()
    with pytest.warns(UnpriorWarning, match="1 of 6 images of hands are missing"):
        check_images(benchmark)
    with pytest.raises(UnpriorError, match="give part and number of parts"):
        part_of(benchmark, shard="3/2")
