"""A finished run to report on, with images, and a real browser to look at the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from finished_run import parts
from unprior import ScoreTable
from unprior.benchmarks.schema import Benchmark, Example
from unprior.report import write_report
from unprior.runs.result import RunResult

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    executable = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if executable is None:
        pytest.skip(f"no browser to look at the page with; install one of {', '.join(_BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(_OPTIONS))
        yield browser
        browser.close()
