"""A finished run to report on, with images."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from finished_run import parts
from unprior import ScoreTable
from unprior.benchmarks.schema import Benchmark, Example
from unprior.report import write_report
from unprior.runs.result import RunResult


@pytest.fixture(scope="session")
def finished(table: ScoreTable) -> RunResult:
    """A run on synthetic scores whose rows name their examples."""
    rows = [row | {"example_id": f"{row['pair_id']}-{row['side']}-{row['task']}"} for row in table.arrow.to_pylist()]
    return RunResult.from_table(ScoreTable.from_rows(rows))


@pytest.fixture(scope="session")
def benchmark(finished: RunResult, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Images and questions for the run; names and texts try to break out of the page."""
    folder = tmp_path_factory.mktemp("images")
    examples = []
    for row in finished.decisions.table.arrow.to_pylist():
        path = folder / f"{row['pair_id']}-{row['side']}.png"
        if not path.exists():
            colour = (40 * row["pair_id"] % 256, 90, 160 if row["side"] == "cf" else 60)
            Image.new("RGB", (400, 300), colour).save(path)
        texts = tuple(f"{name} <b>state</b>" for name in row["candidates"]) if row["task"] == "mc" else None
        question = f"Is this picture {row['pair_id']} </script><script>alert(1)</script>?"
        examples.append(
            Example(row["example_id"], path, question, row["task"], tuple(row["candidates"]), texts, row["answer"])
        )
    return Benchmark("pictures", examples)


@pytest.fixture(scope="session")
def report(finished: RunResult, benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the run, with images."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    notes = ["Synthetic scores & <images>; `unprior run` makes others."]
    write_report(path, **parts(finished), benchmark=benchmark, notes=notes)
    return path
